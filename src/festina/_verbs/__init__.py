"""The verbs that ask and compare: solve, covering, compare, fit and race.

A verb takes nouns and returns nouns. It may use every room below; only `race` also trains.
"""
