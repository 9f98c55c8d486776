"""simulate(): networks trained for real, all seeds in one compiled loop.

What changes how training is computed, and not what is learned, belongs here: a faster inner loop is a `Descent`, one
file beside its contract in `descent.py`, with its place in `descents.py`. Nothing here knows a theory, and
`_verbs.solve` knows nothing of this room.
"""
