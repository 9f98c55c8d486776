"""race(): which gating of a task learns first, predicted by theory, and which one a ReLU network follows.

`race` is the verb, `candidates` makes gated networks of what a user gives, `pathways` says what is known of each
pathway before training, and `table` predicts and trains the candidates.
"""
