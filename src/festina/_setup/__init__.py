"""The question and the answer: a Setup, its time grid, its JSON, its loss, and the Trajectory that answers it.

The four parts of a setup (tasks, nets, inits, rules) are imported here and know nothing of it. Theories, training and
verbs import from here.
"""
