"""How theories are fitted to what was recorded from a network: `base` is the contract, with one file for each theory.

A theory that has numbers which its setup does not fix, and which a record can tell, declares a `Fitting`, which stands
here. A recorded Trajectory comes in; curves to fit, predictions from free numbers and an answer with its quality leave,
and the verb `festina.fit` does the search between them. `answer` has what fits share: quality, verdicts, and the answer
of a theory that brings none of its own; `records` reads trajectories.
"""
