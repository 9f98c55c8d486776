"""References to equations of other pages name the page: numbers begin anew on each."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.math import MathDomain


class Equations(MathDomain):
    """Sphinx's own domain, with the title of the page behind the number of an equation that stands elsewhere."""

    def resolve_xref(self, env, fromdocname, builder, typ, target, node, contnode):
        found = super().resolve_xref(env, fromdocname, builder, typ, target, node, contnode)
        place = self.equations.get(target)
        if found is not None and place is not None and place[0] != fromdocname:
            found += nodes.Text(f" of {env.titles[place[0]].astext()}")
        return found


def setup(app: Sphinx) -> None:
    app.add_domain(Equations, override=True)
