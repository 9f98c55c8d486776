"""The fit of independent modes: the start of one mode from its recorded strength.

The task gives s and λ, and the network its depth D. The effective initial strength that a random initialisation gives
a mode shows only later, when the mode is learned. The free number is a₀ in da/dt = D |a|^(2 − 2/D) (s − λ a)
[saxe2014, eq. 12], searched as ln(a₀ λ/s).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._formulas import mode_at_depth
from ..._foundation.arrays import AnyArray, Number
from ..._foundation.errors import BadInput
from ..._foundation.nouns import noun, static
from ..._setup.trajectory import Trajectory
from ...tasks.base import TaskSequence
from .base import Fitting
from .records import FitRecord, checked_times, numbered, seed_number, seeded, seeds_of

SCAN = np.log(np.logspace(-30, 1, 80))  # of a₀ λ/s


@noun
class Mode:
    """What is known of a mode, with times in units of the record: s and λ, and the depth of the chain."""

    singular_value: Number
    variance: Number
    depth: int = static()


class ModeFitting(Fitting):
    """The start a₀ of one mode of a deep linear network, from its recorded strength."""

    free = ("start",)
    curves = ("modes",)

    def record(self, trajectory: object, *, seed: object, start: object, mode: object = 0) -> FitRecord:
        known = _checked(trajectory)
        setup, strengths = known.setup, seeded(known, "modes")
        seeds = seeds_of(known, "modes", len(strengths))
        which = seed_number(seed, seeds)
        number = numbered(mode, [str(k) for k in range(strengths.shape[-1])], "mode")
        times, first = checked_times(known.times, start)
        times, curve = times[first:], strengths[which, first:, number]
        modes = setup.modes(0 if seeds is None else seeds[which])
        s, variance = float(modes.singular_values[number]), float(modes.variances[number])
        if not s > 0 or not variance > 0:
            raise BadInput(
                f"mode {number} with singular value {s:g} and input variance {variance:g}",
                "a mode that the task correlates with the target",
                "give the number of a mode that is learned: mode=0",
            )
        duration = times[-1] - times[0]
        names = {"mode": number, "seed": None if seeds is None else seeds[which]}
        return FitRecord(times, curve[None], Mode(s * duration, variance * duration, setup.net.depth), first, names)

    def guesses(self, record: FitRecord) -> Float[np.ndarray, "guess 1"]:
        return SCAN[:, None]

    def predicted(
        self, x: Float[AnyArray, " parameter"], times: Float[AnyArray, " time"], known: Mode
    ) -> Float[AnyArray, "1 time"]:
        target = known.singular_value / known.variance
        t, s, variance, a0 = jnp.broadcast_arrays(times, known.singular_value, known.variance, target * jnp.exp(x[0]))
        return mode_at_depth.strength(t, s, variance, a0, known.depth)[None]

    def units(self, record: FitRecord) -> Float[np.ndarray, " number"]:
        """The end of the mode, s/λ."""
        return np.array([record.known.singular_value / record.known.variance])


FITTING = ModeFitting()


def _checked(trajectory: object) -> Trajectory:
    """A trajectory of the modes of a deep linear network on one task."""
    if not isinstance(trajectory, Trajectory) or "modes" not in trajectory:
        what = ", ".join(trajectory) if isinstance(trajectory, Trajectory) else type(trajectory).__name__
        raise BadInput(
            f"a fit of AlignedModes to {what}",
            "a trajectory with the strengths of modes",
            'record them: simulate(setup, observe=["modes"])',
        )
    setup = trajectory.setup
    if not setup.net.is_linear_chain or setup.net.depth < 2 or isinstance(setup.task, TaskSequence):
        raise BadInput(
            f"a fit of AlignedModes to {setup.net!r} on {setup.task!r}",
            "a linear chain of two layers or more on one task: there learning waits for the start to grow",
            "train nets.DeepLinear(hidden=…)",
        )
    return trajectory
