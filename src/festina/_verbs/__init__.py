"""The verbs that ask and compare: solve, covering, compare, fit and race.

A verb is a public function that takes and returns festina's objects, such as setups and trajectories. It may use every
lower subpackage; only `race` also trains.
"""
