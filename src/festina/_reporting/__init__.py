"""From an experiment to its report: run, Report, the page about many of them, and what the command line lists.

Nothing here draws or measures by itself: figures, claims and data come from the experiment. Only the command line,
and the package for its public names `run`, `Report` and `Experiment`, imports from here.
"""
