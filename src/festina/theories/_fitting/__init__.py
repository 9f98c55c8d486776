"""How theories are fitted to what was recorded from a network: `base` is the contract, with one file for each theory.

A theory that has numbers which its setup does not fix, and which a record can tell, declares a `Fitting`; the verb
`festina.fit` does the search. `answer` has what fits share: quality, verdicts, and the answer of a theory that brings
none of its own; `records` reads trajectories.
"""
