"""Trainings of routing networks: from many seeds, from decoupled starts, and as a gated network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from ... import Setup, inits, nets, rules, tasks
from ..._formulas import shared_layer
from ..._foundation.arrays import AnyArray
from . import routing
from .domains import by_domain, rotations
from .labelled import table

if TYPE_CHECKING:
    from xarray import DataArray

MARKS = 100  # records of every run
TOGETHER = 2  # seeds from which the gated network itself is trained
AXES = {  # of each measure of a network, after the axes pairs and seed
    "error": ("mark", "kind"),
    "cosine": ("domain", "domain_", "mode"),
    "overlap": (),
    "twist": (),
    "turned_error": (),
    "shared_strength": (),
}
SMALL = 4  # how much smaller than lr the rate is at which sharing is measured


def gated_network(checked: tuple[int, int], hidden: int, gain: float, lr: float, epochs: int) -> Setup:
    """The gated network in training on its trained pairs; a second task in the sequence measures the other pairs."""
    domains, trained_pairs = checked
    both = [tasks.routing(domains, trained_pairs, pairs=kind) for kind in ("trained", "untrained")]
    rate = routing.slides_units(domains, trained_pairs) * lr
    steps = epochs // MARKS * MARKS
    return Setup(
        tasks.sequence(both, durations=2 * steps * rate),
        nets.Gated.routing(domains, domains, trained_pairs, hidden=hidden),
        inits.Orthogonal(gain),
        rules.GradientDescent(rate),
        times=np.array([0, steps // 2, steps]) * rate,
    )


def trained_from_seeds(
    domains: int,
    hidden: int,
    gain: float,
    pairs: Sequence[int],
    draws: Int[np.ndarray, " seed"],
    rate: float,
    epochs: int,
    checked: tuple[int, int],
    lr: float,
) -> tuple[dict[str, DataArray], Float[AnyArray, "network kind"]]:
    """What is measured in networks from every seed with every number of trained pairs.

    The second result has the final errors of the networks that are also trained as gated networks.
    """
    starts = [np.tile(w, (len(pairs), 1, 1)) for w in routing.orthogonal_starts(domains, hidden, draws, TOGETHER)]
    masks = np.repeat([routing.trained_pairs(domains, count) for count in pairs], len(draws), axis=0)
    few, fewer_pairs = checked
    # Domains without trained pairs change nothing, so that one shape serves both.
    smaller = routing.orthogonal_starts(few, hidden, draws[:TOGETHER], TOGETHER)
    widened = [np.concatenate([a, routing.padded(b, a.shape[1:])]) for a, b in zip(starts, smaller, strict=True)]
    mask_of_few = routing.padded(
        np.repeat(routing.trained_pairs(few, fewer_pairs)[None], TOGETHER, axis=0), masks.shape[1:]
    )
    exist = np.concatenate([masks | True, routing.padded(np.ones((TOGETHER, few, few), bool), masks.shape[1:])])
    rates = np.repeat([rate, routing.slides_units(few, fewer_pairs) * lr], [len(masks), TOGETHER])
    (encoders, shared, _), error = routing.completed(
        tuple(gain * w for w in widened),
        np.concatenate([masks, mask_of_few]),
        rates,
        np.full(len(rates), epochs // MARKS),
        MARKS,
        exist,
    )
    encoders, shared = encoders[: len(masks)], shared[: len(masks)]
    strongest = np.linalg.norm(by_domain(encoders)[..., 0], axis=-1).mean(axis=-1)
    measured = {
        "error": error[: len(masks)],
        "shared_strength": np.linalg.norm(shared, 2, axis=(-2, -1)) / strongest,
        **rotations(by_domain(shared @ encoders), masks),
    }
    shape = (len(pairs), len(draws))
    arrays = {
        name: table(np.reshape(measured[name], (*shape, *np.shape(measured[name])[1:])), "pairs", "seed", *axes)
        for name, axes in AXES.items()
    }
    return arrays, error[len(masks) :, -1]


def law_of_loss(
    domains: int, trained: int, start: float, lr: float, epochs: Float[AnyArray, " epoch"]
) -> Float[np.ndarray, " epoch"]:
    """The slides' loss of a decoupled start by the law of shared layers, all modes from one start."""
    modes = routing.strengths()
    outer, shared = shared_layer.layers(epochs * lr * trained / 14, modes, domains, start)
    return domains * trained / 28 * np.sum((modes[:, None] - outer**2 * shared) ** 2, axis=0)


def from_decoupled(
    domains: int,
    shown: int,
    pairs: Sequence[int],
    sharing: Sequence[int],
    start: float,
    lr: float,
    rates: Sequence[float],
) -> Mapping[str, AnyArray | list[int]]:
    """Gradient descent from decoupled starts.

    `loss`, and `drift`, the drift of M b₁² − b₂² relative to b₂² in the first mode, are measured at several rates.
    `half` is the number of epochs of lr until the first mode is half learned, measured at lr/SMALL, and `law` is what
    the law predicts for it. The first entries are for one pair per domain and every number of domains in `sharing`, the
    others for all domains and every number of trained pairs in `per`.
    """
    per, modes = sorted({*pairs, domains}), routing.strengths()
    settings = [(count, 1) for count in sharing] + [(domains, count) for count in per]
    law = np.array([shared_layer.half_time(modes[0], count, start) * 14 / (k * lr) for count, k in settings])
    runs = [(domains, shown)] * len(rates) + settings
    most = max(count for count, _ in runs)
    masks = np.zeros((len(runs), most, most), bool)
    for mask, (count, k) in zip(masks, runs, strict=True):
        mask[:count, :count] = routing.trained_pairs(count, k)
    whole_start = routing.decoupled_starts(most, [start] * len(modes))
    first_mode = routing.decoupled_starts(most, [start, *[0.0] * (len(modes) - 1)])
    starts = tuple(
        np.stack([a] * len(rates) + [b] * len(settings)) for a, b in zip(whole_start, first_mode, strict=True)
    )
    speeds = np.array([*rates, *[lr / SMALL] * len(settings)])
    units = np.array([routing.slides_units(count, k) for count, k in runs])
    strides = np.array([*np.round(lr / np.array(rates)), *np.ceil(1.5 * SMALL * law / MARKS)]).astype(int)
    (encoders, shared, _), error = routing.completed(starts, masks, units * speeds, strides, MARKS)
    error = error[..., 1]
    # The other modes start at zero and stay there, so the error tells how much of the first is learned.
    half = (modes[0] ** 2 / 4 + np.sum(modes[1:] ** 2)) / np.sum(modes**2)
    cut = len(rates)
    marks = np.array([np.interp(-half, -curve, np.arange(MARKS + 1)) for curve in error[cut:]])
    first, second = np.linalg.norm(by_domain(encoders)[:cut, 0, :, 0], axis=-1), shared[:cut, 0, 0]
    drift = np.abs(domains * first**2 - second**2 - (domains - 1) * start**2) / second**2
    return {
        "loss": error[:cut] * np.mean(modes**2) / 2,
        "drift": drift,
        "law": law,
        "half": marks * strides[cut:] / SMALL,
        "per": per,
    }
