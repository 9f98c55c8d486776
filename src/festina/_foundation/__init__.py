"""What everything else stands on: errors in three parts, frozen nouns, checks, precision, devices, files, progress.

A module belongs here if a library of another science could use it unchanged. Nothing here imports another room of
festina, and every other room may import from here.
"""
