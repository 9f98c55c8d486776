"""The compiled loop behind simulate(): over time, over seeds, over devices.

A run advances in blocks of marks. A mark is an amount of training (steps, or time for a flow)
that ends, or not, in a record. Amounts are traced, so one compilation serves every time grid,
rate and start, and memory does not grow with the number of epochs. Between blocks Python shows
progress and hears Ctrl-C.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from . import _compiled, _thin
from ._errors import BadInput
from ._linalg import shared_modes
from ._narrow import narrowed, widened
from ._objective import Moments, blow_up, descended, gradient, loss, next_key
from ._observables import OBSERVABLES, View
from ._parallel import apart
from ._setup import Discrete, Setup

BLOCK_SECONDS = 0.5  # how long Ctrl-C and the progress bar may wait
MARKS = 64
TRIAL_STEPS = 50_000  # of a slower run, after a divergence


class Carry(NamedTuple):
    """The state of one seed's training."""

    weights: Any  # as the layout holds them
    rule: Any  # state of the rule; for a flow, the last step size and the absolute tolerance
    loss: Any
    limit: Any  # a loss beyond it means that training has diverged
    done: Any  # amount of training so far
    noise: Any = None  # key of what a noisy net draws next


class Lanes(NamedTuple):
    """How seeds, or chunks of times, are laid out: over the devices of `mesh`, and within one device."""

    mesh: Mesh | None
    vectorised: bool

    @classmethod
    def over(cls, count: int) -> Lanes:
        _compiled.look_for_room()  # here begins every program of solve and simulate
        # On a CPU a loop over seeds keeps one network in cache; on a GPU wide batches win.
        devices = jax.devices()[: max(count, 1)]
        mesh = Mesh(np.array(devices), ("seed",), axis_types=(AxisType.Auto,)) if len(devices) > 1 else None
        return cls(mesh, vectorised=devices[0].platform != "cpu")

    def spread(self, tree: Any) -> Any:
        """Place a tree with leading seed axes, repeating the last seed to fill every device."""
        if self.mesh is None:
            return tree
        layout, size = NamedSharding(self.mesh, PartitionSpec("seed")), self.mesh.size

        def place(leaf):
            rows = np.arange(len(leaf) + -len(leaf) % size)
            return jax.device_put(leaf[np.minimum(rows, len(leaf) - 1)], layout)  # NumPy has no random keys

        return jax.tree.map(place, tree)

    def each(self, one: Any, shared: Any, per_seed: Any) -> Any:
        """`one(shared, item)` for every item along the leading axis of `per_seed`."""

        def local(shared, items):
            if self.vectorised:
                return jax.vmap(lambda item: one(shared, item))(items)
            return jax.lax.map(lambda item: one(shared, item), items)

        if self.mesh is None:
            return local(shared, per_seed)
        by_seed = PartitionSpec("seed")
        mapped = jax.shard_map(
            local, mesh=self.mesh, in_specs=(PartitionSpec(), by_seed), out_specs=by_seed, check_vma=False
        )
        return mapped(shared, per_seed)


@jax.jit
def modes_of_starts(task: Any, net: Any, weights: Any) -> Any:
    """The task's modes, fitted to every seed's start."""
    return jax.vmap(lambda start: shared_modes(task.cov_yx, task.cov_x, net.map(start)))(weights)


class Layout(NamedTuple):
    """How a run holds weights, for the sake of speed: some transposed, some stacked."""

    structure: Any
    flips: tuple[bool, ...]
    stacks: tuple[tuple[int, ...], ...]  # numbers of the weights of one stack

    @classmethod
    def of(cls, alike: Any, weights: Any) -> Layout:
        """For weights with a leading seed axis, those that are `alike` as one."""
        leaves, structure = jax.tree.flatten(weights)
        # With their longer axis contiguous XLA's matrix products need no copies.
        flips = tuple(w.ndim == 3 and w.shape[1] > w.shape[2] for w in leaves)
        single = set(range(len(leaves))) - {k for group in alike for k in group}
        return cls(structure, flips, (*alike, *((k,) for k in sorted(single))))

    def hold(self, weights: Any) -> tuple[Any, ...]:
        leaves = jax.tree.leaves(weights)
        groups = [[np.asarray(leaves[k]) for k in stack] for stack in self.stacks]
        return self.turned([np.stack(group, axis=-3) if len(group) > 1 else group[0] for group in groups])

    def weights(self, held: tuple[Any, ...]) -> Any:
        leaves = {}
        # Stacks are turned before they are taken apart: XLA sees then that the parts are put together again.
        for stack, array in zip(self.stacks, self.turned(held), strict=True):
            leaves |= zip(stack, apart(array, -3) if len(stack) > 1 else [array], strict=True)
        return jax.tree.unflatten(self.structure, [leaves[k] for k in range(len(leaves))])

    def turned(self, stacks: Any) -> tuple[Any, ...]:
        return tuple(
            array.swapaxes(-1, -2) if self.flips[stack[0]] else array
            for stack, array in zip(self.stacks, stacks, strict=True)
        )


@functools.partial(jax.jit, static_argnames=("layout", "names", "lanes"))
def _advance(
    view: View,
    rule: Any,
    per_seed: Any,
    amounts: Any,
    kept: Any,
    *,
    layout: Layout,
    names: tuple[str, ...],
    lanes: Lanes,
) -> Any:
    """Take every seed through the marks; returns carries, records and the loss at each mark."""

    def one(shared, item):
        view, rule, amounts, kept = shared
        carry, own, turns = item
        view = dataclasses.replace(view, **own)

        def read(held):
            narrow = layout.weights(held)
            wide = widened(view.net, narrow, turns)
            known = {name: OBSERVABLES[name] for name in names}
            return {name: each.read(view, narrow if each.narrow else wide) for name, each in known.items()}

        def mark(carry, now):
            amount, keep = now
            carry = _travel(view, rule, carry, amount, layout)
            # Marks that only fill the block are free.
            evaluate = lambda carry: loss(view.net, view.seen, layout.weights(carry.weights))  # noqa: E731
            value = jax.lax.cond(keep | (amount > 0), evaluate, lambda carry: carry.loss, carry)
            carry = carry._replace(loss=jnp.where(carry.loss <= carry.limit, value, carry.loss))
            blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(read, carry.weights))
            return carry, (jax.lax.cond(keep, read, lambda _: blank, carry.weights), carry.loss)

        return jax.lax.scan(mark, carry, (amounts, kept))

    return lanes.each(one, (view, rule, amounts, kept), per_seed)


def _travel(view: View, rule: Any, carry: Carry, amount: Any, layout: Layout) -> Carry:
    if _thin.pays(view.net, view.seen, rule):
        return _thin.travel(view, rule, carry, amount, layout)

    def slope(held, rows, key=None):
        descent = lambda held: descended(view.net, view.seen, layout.weights(held), rows, key)  # noqa: E731
        return jax.value_and_grad(descent)(held)

    if not isinstance(rule, Discrete):
        return _flow(slope, rule, carry, amount)

    def step(carry):
        noise, key = next_key(carry.noise)
        weights, rule_state, value = rule.step(functools.partial(slope, key=key), carry.weights, carry.rule)
        return carry._replace(weights=weights, rule=rule_state, loss=value, noise=noise)

    def loop(stride, state):
        def going(state):
            count, carry = state
            return (count + stride <= amount) & (carry.loss <= carry.limit)  # NaN stops it, too

        def stride_of_steps(state):
            count, carry = state
            for _ in range(stride):
                carry = step(carry)
            return count + stride, carry

        return jax.lax.while_loop(going, stride_of_steps, state)

    # Two steps per turn save XLA a copy of the largest weights; the second loop takes an odd last step.
    count, carry = loop(1, loop(2, (jnp.zeros_like(amount), carry)))
    return carry._replace(done=carry.done + count)


def _flow(slope: Any, rule: Any, carry: Carry, duration: Any) -> Carry:
    from ._integrate import integrate

    rtol = jnp.maximum(rule.rtol, jnp.finfo(duration.dtype).eps * 50)  # float32 cannot hold a tighter one

    def follow(carry):
        last, atol = carry.rule
        end, step, reached = integrate(
            lambda weights: jax.tree.map(jnp.negative, slope(weights, None)[1]),
            carry.weights, duration, last, rtol=rtol, atol=atol,
        )  # fmt: skip
        loss = jnp.where(reached, carry.loss, jnp.inf)
        return carry._replace(weights=end, rule=(step, atol), loss=loss, done=carry.done + duration)

    return jax.lax.cond((duration > 0) & jnp.isfinite(carry.loss), follow, lambda carry: carry, carry)


@dataclasses.dataclass(frozen=True)
class Failure:
    """Where a run left the finite numbers; `seed` is an index, `step` None for a flow."""

    seed: int
    step: int | None
    time: float
    loss: float


class Run:
    """A training in progress; `block()` advances it and returns what it recorded."""

    def __init__(self, setup: Setup, seeds: tuple[int, ...], names: tuple[str, ...], view: View, weights: Any):
        self.setup, self.seeds, self.names = setup, seeds, names
        self.rule = jax.tree.map(lambda leaf: np.asarray(leaf, setup.precision), setup.rule)
        self.stepping = isinstance(setup.rule, Discrete)
        self.goals = _goals(setup)
        self.reached, self.at = 0, self.goals.dtype.type(0)
        self.lanes = Lanes.over(len(seeds))
        own = {"modes": view.modes, "start": view.start}  # these have a seed axis
        self.view = view = dataclasses.replace(view, modes=None, start=None)
        # A flow holds every weight to its own tolerance, so its weights stay as they are.
        fewer = self.stepping and setup.rule.follows_gradient and isinstance(view.seen, Moments)
        weights, turns = narrowed(view.net, weights) if fewer else (weights, (None,) * len(view.net.junctions))
        weights, turns = jax.tree.map(lambda leaf: np.asarray(leaf, setup.precision), (weights, turns))
        kind = view.net, view.seen, setup.rule
        self.layout, self.grain = Layout.of(_thin.alike(*kind), weights), _thin.grain(*kind)
        held = self.layout.hold(weights)
        start = functools.partial(_first, dtype=self.goals.dtype, stepping=self.stepping, layout=self.layout)
        carry = start(self.view, self.rule, held, np.asarray(seeds))
        self.per_seed = self.lanes.spread((carry, own, turns))
        self.failure: Failure | None = None
        self.loss = float("nan")
        self.compiled = False
        self.budget = 100.0 if self.stepping else 4.0

    @property
    def weights(self) -> Any:
        """The present weights, with a leading seed axis."""
        carry, _, turns = self.per_seed
        held, turns = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(self.seeds)], (carry.weights, turns))
        return widened(self.view.net, self.layout.weights(held), turns)

    @property
    def total(self) -> float:
        return float(self.goals[-1])

    @property
    def remaining(self) -> bool:
        return self.reached < len(self.goals)

    def block(self) -> dict[str, np.ndarray]:
        """Advance by about BLOCK_SECONDS; observables of the marks passed, axes (seed, time, …)."""
        (amounts, kept, units), began = self._marks(), time.perf_counter()
        how = {"layout": self.layout, "names": self.names, "lanes": self.lanes}
        result = _advance(self.view, self.rule, self.per_seed, amounts, kept, **how)
        carry, (records, losses) = jax.block_until_ready(result)
        self._adapt_budget(units, time.perf_counter() - began)
        count = len(self.seeds)
        losses = np.asarray(losses)[:count]
        self.per_seed = (carry, *self.per_seed[1:])
        keep = self._finite_marks(losses, carry) & kept
        self.loss = float(np.mean(losses[:, -1]))
        self.reached += int(keep.sum())
        return {name: np.asarray(value)[:count][:, keep] for name, value in records.items()}

    def _marks(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The next marks, as many as fit in the budget; a long stretch of steps is cut."""
        amounts, kept, left = np.zeros(MARKS, self.goals.dtype), np.zeros(MARKS, bool), self.budget
        for index in range(min(MARKS, len(self.goals) - self.reached)):
            amount = self.goals[self.reached + index] - self.at
            cost = amount if self.stepping else 1
            if cost > left and (self.stepping or index):
                if self.stepping and (cut := self._whole_grains(max(left, self.grain if index == 0 else 0))):
                    amounts[index] = min(cut, amount)
                    self.at += amounts[index]
                    left -= amounts[index]
                break
            amounts[index], kept[index], left = amount, True, left - cost
            self.at += amount
        return amounts, kept, self.budget - left

    def _whole_grains(self, left: Any) -> int:
        """The most steps that lead to a place where a run may be cut."""
        return max(int(left) - int(self.at + int(left)) % self.grain, 0)

    def _adapt_budget(self, units: float, seconds: float) -> None:
        # The first block compiles, so its time says nothing.
        if not self.compiled:
            self.compiled = True
            return
        fitting = units / max(seconds, 1e-6) * BLOCK_SECONDS
        self.budget = float(np.clip(fitting, self.budget / 8 + 1, self.budget * 8))

    @property
    def done(self) -> float:
        return float(self.at)

    def _finite_marks(self, losses: np.ndarray, carry: Carry) -> np.ndarray:
        fine = losses <= np.asarray(carry.limit)[: len(self.seeds), None]
        if not fine.all():
            seed = int(np.argmin(fine.all(axis=1)))
            mark = int(np.argmin(fine[seed]))
            done = np.asarray(carry.done)[seed]
            step = int(done) if self.stepping else None
            clock = float(done * self.setup.rule.lr) if self.stepping else float(done)
            self.failure = Failure(seed, step, clock, float(losses[seed, mark]))
        return np.logical_and.accumulate(fine.all(axis=0))


def _goals(setup: Setup) -> np.ndarray:
    """Amounts of training at which to record: whole steps, or times."""
    if not isinstance(setup.rule, Discrete):
        return np.asarray(setup.times, setup.precision)
    steps, most = setup.rule.steps(setup.requested_times), np.iinfo(np.int32).max
    if steps[-1] > most:
        raise BadInput(
            f"times up to {setup.requested_times[-1]:g} with lr = {setup.rule.lr:g}: {steps[-1]:.3g} steps",
            f"at most {most:.3g} steps",
            "shorten the run, raise lr, or use rules.GradientFlow()",
        )
    return steps.astype(np.int32)


@functools.partial(jax.jit, static_argnames=("dtype", "stepping", "layout"))
def _first(view: View, rule: Any, weights: Any, seeds: Any, *, dtype: Any, stepping: bool, layout: Layout) -> Carry:
    """The state of every seed before training."""

    def one(weights, seed):
        # The draw of the weights used the seed's own key; the rule gets another.
        key = jax.random.fold_in(jax.random.key(seed), 1)
        zero = jnp.zeros((), jax.tree.leaves(weights)[0].dtype)
        samples = None if isinstance(view.seen, Moments) else view.seen.x.shape[0]
        state = rule.start(weights, samples, key) if stepping else (zero, rule._finest(weights))
        begin = loss(view.net, view.seen, layout.weights(weights))
        noise = jax.random.key_data(jax.random.fold_in(key, 1)) if view.net.noisy else None
        return Carry(weights, state, zero, blow_up(view.seen, begin), jnp.zeros((), dtype), noise)

    return jax.vmap(one)(weights, seeds)


def largest_stable_rate(setup: Setup, seed: int, view: View, weights: Any, horizon: float) -> float | None:
    """An estimate: twice the inverse of the largest curvature where a slower run arrives.

    The rate is quartered until a run stays finite for twice the time to the divergence, or for
    TRIAL_STEPS; None if none of twelve does. Where no curvature can be measured, that slower rate.
    """
    view = dataclasses.replace(view, modes=None, start=None)
    begin = float(_curvature(view, jax.tree.map(lambda leaf: leaf[0], weights)))
    rate = min(float(setup.rule.lr) / 4, 1 / begin if begin > 0 and setup.rule.follows_gradient else np.inf)
    for _ in range(12):
        end_time = min(2 * max(horizon, rate), TRIAL_STEPS * rate)
        slower = setup.replace(rule=dataclasses.replace(setup.rule, lr=rate), times=[end_time])
        run = Run(slower, (seed,), (), view, weights)
        while run.remaining and run.failure is None:
            run.block()
        if run.failure is None:
            end = jax.tree.map(lambda leaf: leaf[0], run.weights)
            curvature = float(_curvature(view, end)) if setup.rule.follows_gradient else 0.0
            # Without curvature (Adam, or a network whose units have died) the slower rate is all we know.
            return 2 / curvature if curvature > 0 else rate
        rate /= 4
    return None


@jax.jit
def _curvature(view: View, weights: Any) -> Any:
    """Largest eigenvalue of the Hessian by power iteration; the Hessian is never formed."""
    slope = lambda w: gradient(view.net, view.seen)(w, None)[1]  # noqa: E731

    def improve(_, state):
        direction, _ = state
        size = jnp.sqrt(sum(jnp.sum(d**2) for d in jax.tree.leaves(direction)))
        unit = jax.tree.map(lambda d: d / size, direction)
        turned = jax.jvp(slope, (weights,), (unit,))[1]
        return turned, sum(jnp.sum(a * b) for a, b in zip(jax.tree.leaves(unit), jax.tree.leaves(turned), strict=True))

    first = jax.tree.map(lambda w: jax.random.normal(jax.random.key(0), w.shape, w.dtype), weights)
    return jax.lax.fori_loop(0, 100, improve, (first, jnp.zeros((), jax.tree.leaves(weights)[0].dtype)))[1]
