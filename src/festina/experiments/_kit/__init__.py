"""What several experiments share: setups, measures and panels of one family of findings.

A function moves here when a second experiment needs it, and on to a theory or a verb when a user would.
"""
