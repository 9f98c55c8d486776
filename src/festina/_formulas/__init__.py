"""Mathematics: arrays in, arrays out.

A formula belongs here if it needs no Task, Net or Setup, and has a test of its own. Formulas as papers misprint them
are not here but in `experiments/_kit/printed_formulas.py`. Only `_foundation` may be imported here.
"""
