"""Command-line words to the parameters of an experiment, by the types of their defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._foundation.errors import BadInput, UnknownName


def parse(words: Sequence[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """`--start-strength 0.1 --depths 1,2,3` as {"start_strength": 0.1, "depths": (1, 2, 3)}."""
    values: dict[str, Any] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("--"):
            raise BadInput(f"stray word {word!r}", "parameters as --name value", f"options: {_options(defaults)}")
        name, equals, text = word[2:].partition("=")
        name = name.replace("-", "_")
        if name not in defaults:
            raise UnknownName.among("parameter", name, defaults)
        if not equals:
            if not waiting:
                raise BadInput(
                    f"--{name} without a value", f"--{name} VALUE", f"for example --{name} {_shown(defaults[name])}"
                )
            text = waiting.pop(0)
        values[name] = _converted(name, text, defaults[name])
    return values


def _converted(name: str, text: str, default: Any) -> Any:
    try:
        if isinstance(default, tuple):
            return tuple(_scalar(part.strip(), default[0]) for part in text.split(",") if part.strip())
        return _scalar(text, default)
    except ValueError:
        kind = "comma-separated values" if isinstance(default, tuple) else f"a value of type {type(default).__name__}"
        raise BadInput(f"--{name} {text}", kind, f"for example --{name} {_shown(default)}") from None


def _scalar(text: str, like: Any) -> Any:
    if isinstance(like, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    return type(like)(text)


def _shown(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _options(defaults: Mapping[str, Any]) -> str:
    return ", ".join(f"--{name}" for name in defaults)
