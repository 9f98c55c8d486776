"""simulate(): networks trained for real, all seeds in one compiled loop.

A Setup and seeds come in; a Trajectory with axes (seed, time, …) leaves. What changes how training is computed, and not
what is learned, belongs here: a faster inner loop is a `Descent`, one file beside its contract in `base.py`, with its
place in `choice.py`. Nothing here knows a theory, and `_verbs.solve` knows nothing of this room.
"""
