"""The compiled loop behind simulate(): over time, over seeds, over devices.

A run advances in blocks of marks (see `marks`). Amounts of training, learning rates and initial weights are traced, so
that one compiled program serves all of them, and memory does not grow with the number of epochs. How weights are stored
and updated is up to a descent (see `base`). Between blocks Python shows progress and responds to Ctrl-C.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._foundation.arrays import AnyArray, Weights
from .._foundation.devices import Lanes
from .._foundation.program_memory import compiled
from .._setup.loss import Moments, divergence_limit, loss
from .._setup.setup import Setup
from ..observables import OBSERVABLES
from ..observables.base import View
from ..rules.base import Discrete, Rule
from .base import Amount, Carry, Descent
from .choice import descent_for
from .layout import Held
from .marks import Course, Marks


class PerSeed(NamedTuple):
    """What differs between seeds, with a leading seed axis, or of one seed."""

    carry: Carry
    parts: dict[str, Any]  # of the view
    descent: Descent


@compiled(static_argnames=("names", "lanes"))
def _advance(
    view: View, rule: Rule, per_seed: PerSeed, marks: Marks, *, names: tuple[str, ...], lanes: Lanes
) -> tuple[Carry, tuple[dict[str, AnyArray], Float[AnyArray, "seed mark"]]]:
    """Take every seed through the marks; returns carries, records and the loss at each mark."""

    def of_seed(shared: tuple[View, Rule, Marks], per_seed: PerSeed):
        (view, rule, marks), (carry, parts, descent) = shared, per_seed
        view = view.with_seed(parts)

        def read(held: Held) -> dict[str, AnyArray]:
            trained, weights = descent.trained(held), descent.weights(held)
            observables = {name: OBSERVABLES[name] for name in names}
            return {name: entry.read(view, trained if entry.narrow else weights) for name, entry in observables.items()}

        def evaluate(carry: Carry) -> Float[AnyArray, ""]:
            return loss(view.net, view.evidence, descent.trained(carry.held))

        def mark(carry: Carry, now: tuple[Amount, Bool[AnyArray, ""]]):
            amount, is_recorded = now
            carry = descent.advance(view.net, view.evidence, rule, carry, amount)
            # Marks that only fill the block are free.
            value = jax.lax.cond(is_recorded | (amount > 0), evaluate, lambda carry: carry.loss, carry)
            carry = carry._replace(loss=jnp.where(carry.is_within_limit, value, carry.loss))
            blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(read, carry.held))
            return carry, (jax.lax.cond(is_recorded, read, lambda _: blank, carry.held), carry.loss)

        return jax.lax.scan(mark, carry, (marks.amounts, marks.recorded))

    return lanes.each(of_seed, (view, rule, marks), per_seed)


@compiled(effort="little", static_argnames="dtype")
def _first(
    view: View, rule: Rule, descent: Descent, held: Held, seeds: Int[AnyArray, " seed"], *, dtype: np.dtype
) -> Carry:
    """The state of every seed before training; `dtype` is that of amounts of training."""

    def of_seed(descent: Descent, held: Held, seed: Int[AnyArray, ""]) -> Carry:
        # The draw of the weights used the seed's own key; the rule gets another.
        key = jax.random.fold_in(jax.random.key(seed), 1)
        samples = None if isinstance(view.evidence, Moments) else view.evidence.x.shape[0]
        begin = loss(view.net, view.evidence, descent.trained(held))
        return Carry(
            held,
            descent.start(rule, held, samples, key),
            jnp.zeros((), jax.tree.leaves(held)[0].dtype),
            divergence_limit(view.evidence, begin),
            jnp.zeros((), dtype),
            jax.random.key_data(jax.random.fold_in(key, 1)) if view.net.noisy else None,
        )

    return jax.vmap(of_seed)(descent, held, seeds)


@dataclasses.dataclass(frozen=True)
class Failure:
    """Where a run left the finite numbers; `seed` is an index, `step` None for a flow."""

    seed: int
    step: int | None
    time: float
    loss: float


class Run:
    """A training in progress; `block()` advances it and returns what it recorded."""

    def __init__(self, setup: Setup, seeds: tuple[int, ...], names: tuple[str, ...], view: View, weights: Weights):
        self.setup, self.seeds, self.names = setup, seeds, names
        self.course = Course(setup)
        self.lanes = Lanes.over(len(seeds))
        self.view = view.with_seed({})
        self.rule = jax.tree.map(lambda leaf: np.asarray(leaf, setup.precision), setup.rule)
        descent, held = descent_for(view.net, view.evidence, setup.rule).hold(view.net, weights)
        carry = _first(self.view, self.rule, descent, held, np.asarray(seeds), dtype=self.course.goals.dtype)
        self.per_seed = self.lanes.spread(PerSeed(carry, view.per_seed, descent))
        self.failure: Failure | None = None
        self.loss = float("nan")

    @property
    def weights(self) -> Weights:
        """The present weights, with a leading seed axis."""
        here = self.per_seed.carry.held, self.per_seed.descent
        held, descent = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(self.seeds)], here)
        return descent.weights(held)

    @property
    def is_going(self) -> bool:
        return self.course.has_more and self.failure is None

    def block(self) -> dict[str, np.ndarray]:
        """Advance by about half a second; observables at the records passed, axes (seed, time, …)."""
        (marks, cost), began = self.course.block(self.per_seed.descent), time.perf_counter()
        result = _advance(self.view, self.rule, self.per_seed, marks, names=self.names, lanes=self.lanes)
        carry, (records, losses) = jax.block_until_ready(result)
        self.course.adapt(cost, time.perf_counter() - began)
        self.per_seed = self.per_seed._replace(carry=carry)
        losses = np.asarray(losses)[: len(self.seeds)]
        kept = self._finite_marks(losses, carry) & marks.recorded
        self.loss = float(np.mean(losses[:, -1]))
        self.course.recorded += int(kept.sum())
        return {name: np.asarray(value)[: len(self.seeds)][:, kept] for name, value in records.items()}

    def _finite_marks(self, losses: Float[np.ndarray, "seed mark"], carry: Carry) -> Bool[np.ndarray, " mark"]:
        """The marks at which no seed has diverged yet; the first seed that has is the failure of the run."""
        fine = losses <= np.asarray(carry.limit)[: len(self.seeds), None]
        if not fine.all():
            seed = int(np.argmin(fine.all(axis=1)))
            mark = int(np.argmin(fine[seed]))
            done = np.asarray(carry.done)[seed]
            rule = self.setup.rule
            if isinstance(rule, Discrete):
                step, clock = int(done), float(rule.time_of_steps(done))
            else:
                step, clock = None, float(done)
            self.failure = Failure(seed, step, clock, float(losses[seed, mark]))
        return np.logical_and.accumulate(fine.all(axis=0))
