"""Mathematics: arrays in, arrays out.

A formula belongs here if it needs no Task, Net or Setup, and if two theories or rooms share it; a formula that
only one theory uses stays in the file of that theory. Only `_foundation` may be imported here.
"""
