"""The question and the answer: a Setup, its time grid, its JSON, its loss, and the Trajectory that answers it.

Task, net, init, rule and times come in, and know nothing of this room; a frozen Setup leaves, and is asked for initial
weights, modes and its grid. Every room on its right imports from here.
"""
