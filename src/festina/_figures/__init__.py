"""The one style of all figures, and the pictures that lay theory over training.

A picture belongs here if it draws any trajectory, comparison or fit; the picture of one finding belongs to its
experiment. Nothing here computes: what is drawn comes in as arrays or as objects whose names it reads.
"""
