"""The verbs that ask and compare: solve, covering, compare, fit and race.

Setups, trajectories and names of theories come in; trajectories, comparisons, fits and tables leave. A verb may use
every room on its left; only `race` also trains.
"""
