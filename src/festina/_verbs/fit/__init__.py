"""fit(): the free numbers of a theory that come nearest to a recorded network.

`fit` is the verb, `search` the least-squares search in compiled programs, and `two_points` fits many pairs of points at
once. What is fitted, and what the answer says, each theory declares by a `Fitting` (`theories._fitting`).
"""
