"""What several experiments share: setups, measures and panels of one family of findings.

Parameters, setups and labelled data of experiments come in; setups, measures and panels leave. The kit knows no
experiment and decides no claim. A function moves here when a second experiment needs it, and on to a theory or a verb
when a user would.
"""
