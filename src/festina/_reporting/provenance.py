"""Where a report comes from: code, versions, device, assumptions, networks."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np

from .._foundation.version import __version__
from .._setup.setup import Setup
from .._setup.trajectory import Trajectory
from ..nets.base import Net


def digest(name: str, parameters: Mapping[str, Any], seed: int) -> str:
    """Names the inputs of a run: experiment, parameters, seed, and the code."""
    inputs = json.dumps([name, parameters, seed, code_fingerprint()], sort_keys=True)
    return hashlib.sha256(inputs.encode()).hexdigest()


@functools.cache
def code_fingerprint() -> str:
    """Fingerprint of festina's own sources, so that changed code is run again."""
    total = hashlib.sha256()
    root = Path(str(resources.files("festina")))
    for path in sorted(root.rglob("*.py")):
        total.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return total.hexdigest()


def networks_of(setups: Mapping[str, Setup]) -> dict[str, list[str]]:
    """The file of every different gated network's picture, with the labels of its setups."""
    different: list[tuple[Net, list[str]]] = []
    for label, setup in setups.items():
        if not setup.net.has_paths:
            continue
        same = next((labels for net, labels in different if net == setup.net), None)
        if same is None:
            different.append((setup.net, [label]))
        else:
            same.append(label)
    return {f"network-{k + 1}.svg": labels for k, (_, labels) in enumerate(different)}


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    named = ("jax", "jaxlib", "diffrax", "numpy", "scipy", "xarray", "matplotlib")
    return {"festina": __version__, "python": platform.python_version(), **{n: metadata.version(n) for n in named}}


def device_name() -> str:
    import jax

    devices = jax.devices()
    return f"{len(devices)} × {devices[0].device_kind}"


def assumptions_of(label: str, trajectory: Trajectory) -> dict[str, Any]:
    facts = trajectory.provenance
    return {
        "theory": trajectory.source,
        "label": label,
        "exact": facts["exact"],
        "note": facts["note"],
        "assumptions": facts["assumptions"],
    }


def json_safe(value: Any) -> Any:
    """JSON has no NaN and no infinity; they are written as texts."""
    if isinstance(value, Mapping):
        return {key: json_safe(v) for key, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [json_safe(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else str(float(value))
    return value.item() if isinstance(value, np.generic) else value
