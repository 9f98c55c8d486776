"""The page that `festina run` and `festina reproduce` write: one HTML file with its style and script inside.

What the `report.json` of every experiment holds comes in, with its figure as SVG; one text of HTML leaves, which
fetches nothing. Nothing is measured or drawn here: `render` puts the page together, `sections`, `pictures` and `words`
have its parts.
"""
