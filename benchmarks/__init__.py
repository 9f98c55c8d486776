"""How fast festina is, against the loops a person would otherwise write: one file per claim."""
