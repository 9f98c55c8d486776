"""An experiment as the report sees it: the finding, references, presets and parameters of one file."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from .. import experiments
from .._foundation import checks
from .._foundation.errors import UnknownName
from ..experiments.base import THEMES
from .references import formatted, link

PARTS = "parts"  # the argument of an experiment's `run` that is no parameter: what an interrupted run has trained


def preset_of(quick: bool, preset: str | None) -> str:
    """The name of a preset; `quick` is short for one of them."""
    checks.truth(quick, "quick")
    if preset is not None:
        checks.text(preset, "preset")
    return preset or ("quick" if quick else "full")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One file of `festina.experiments`: its docstring is the finding; `run`, `claims`, `figure`, `QUICK`."""

    name: str
    module: ModuleType

    def __post_init__(self):
        checks.text(self.name, "name")
        checks.instance(self.module, "module", ModuleType, "use Experiment.named(name)")

    @classmethod
    def named(cls, name: str) -> Experiment:
        """The experiment in the file of this name."""
        checks.choice(name, "experiment", experiments.__all__)
        return cls(name, importlib.import_module(f"festina.experiments.{name}"))

    @property
    def finding(self) -> str:
        """The first sentence of the file."""
        return _one_line((inspect.getdoc(self.module) or "").split("\n\n")[0])

    @property
    def description(self) -> str:
        """What follows the finding: paragraphs, and indented formulas."""
        return (inspect.getdoc(self.module) or "").partition("\n\n")[2].strip()

    @property
    def theme(self) -> str:
        """The theme under which it stands on the page, one of `festina.experiments.base.THEMES`."""
        return self.module.THEME

    @property
    def caption(self) -> str:
        """What the panels of its figure show."""
        return _one_line(self.module.CAPTION)

    @property
    def alt(self) -> str:
        """What is seen in its figure, for readers who cannot see it."""
        return _one_line(self.module.ALT)

    @property
    def reference(self) -> list[dict[str, str]]:
        named = self.module.REFERENCE.items()
        return [{"key": key, "where": where, "text": formatted(key), "link": link(key)} for key, where in named]

    @property
    def presets(self) -> dict[str, dict[str, Any]]:
        """What each preset changes: "full" nothing, "quick" the sizes; others are settings of a source."""
        return {"full": {}, "quick": self.module.QUICK, **getattr(self.module, "PRESETS", {})}

    def parameters(self, quick: bool = False, preset: str | None = None) -> dict[str, Any]:
        """Parameters with the values of the full preset, the quick one, or another by name; no seed among them."""
        chosen = preset_of(quick, preset)
        if chosen not in self.presets:
            raise UnknownName.among(f"preset of {self.name}", chosen, self.presets)
        signature = inspect.signature(self.module.run)
        full = {name: p.default for name, p in signature.parameters.items() if name not in ("seed", PARTS)}
        return full | self.presets[chosen]

    @property
    def is_resumable(self) -> bool:
        """Whether it trains in parts, and takes a folder of finished ones as its argument `parts`."""
        return PARTS in inspect.signature(self.module.run).parameters

    def with_parameters(self, quick: bool, preset: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
        """These parameters with some of them changed."""
        values = self.parameters(quick, preset)
        changes = checks.mapping(changes, "changes", "a dict {parameter: value}", "give changes={} for none")
        for name in changes:
            if name not in values:
                raise UnknownName.among(f"parameter of {self.name}", name, values)
        return values | dict(changes)


def in_story_order(names: Iterable[str]) -> list[str]:
    """Names of experiments in the order of the story: by theme, and by their place in it."""
    themes = list(THEMES)

    def place(name: str) -> tuple[int, int, str]:
        module = Experiment.named(name).module
        return themes.index(module.THEME), module.PLACE, name

    return sorted(names, key=place)


def _one_line(text: str) -> str:
    return " ".join(text.split())
