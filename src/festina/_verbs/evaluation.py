"""Evaluate a theory at all times of a grid, in compiled programs: its readouts, and observables of its layers."""

from __future__ import annotations

import functools

import jax
import numpy as np
from jaxtyping import Float, PyTree, Shaped

from .._formulas import interpolation
from .._foundation.arrays import AnyArray, Weights
from .._foundation.devices import Lanes
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ..observables import OBSERVABLES
from ..observables.base import Occasion, View
from ..observables.compared_points import Points
from ..observables.request import view_of_seed
from ..theories.base import Theory

CHUNK = 64  # times of a closed form that are evaluated together: their states stay in cache
LONG = 256  # times that are worth a device of their own

Grid = Float[np.ndarray, " time"]
Values = dict[str, Shaped[AnyArray, "time ..."]]  # of every readout
NumpyValues = dict[str, Shaped[np.ndarray, "time ..."]]  # the same, computed


def predicted(theory: Theory, names: tuple[str, ...], constants: PyTree, times: Grid) -> NumpyValues:
    """The readouts at all times."""
    if theory.kind == "reduction":
        values = in_double(_evaluated)(theory, names, constants, times)
        return {name: np.asarray(value) for name, value in values.items()}
    evaluate = functools.partial(in_chunks, theory, names, constants)
    return interpolation.at_times(evaluate, times) if theory.costly(constants) else evaluate(times)


def in_chunks(theory: Theory, names: tuple[str, ...], constants: PyTree, times: Grid) -> NumpyValues:
    """The readouts of a closed form at every time by itself; in chunks, so that memory holds few states."""
    count = len(times)
    # A few lengths serve all grids: compiling costs more than a last time computed twice.
    lanes = Lanes.over(count // LONG)
    share = CHUNK * (1 if lanes.mesh is None else lanes.mesh.size)
    whole = 2 ** (count - 1).bit_length() if count <= CHUNK else -(-count // share) * share
    filled = np.concatenate([times, np.repeat(times[-1:], whole - count)])
    together = min(theory.times_together(constants), whole)
    values = in_double(_evaluated)(theory, names, constants, filled.reshape(-1, together), lanes)
    return {name: np.asarray(value)[:count] for name, value in values.items()}


@compiled(static_argnames=("theory", "names", "lanes"))
def _evaluated(
    theory: Theory,
    names: tuple[str, ...],
    constants: PyTree,
    times: Float[AnyArray, "*chunk time"],
    lanes: Lanes | None = None,
) -> Values:
    """`times` are all of them, or (chunk, time) with lanes to lay the chunks out on."""

    def read(constants: PyTree, times: Float[AnyArray, " time"]) -> Values:
        states = theory.states(constants, times)
        return {name: theory.readouts[name].read(constants, states) for name in names}

    if lanes is None:
        return read(constants, times)
    chunks = lanes.each(read, constants, times)
    return {name: value.reshape(-1, *value.shape[2:]) for name, value in chunks.items()}


def is_derivable(name: str, theory: Theory, setup: Setup) -> bool:
    """Whether an observable can be read off the map or the layers that a theory predicts."""
    observable = OBSERVABLES.get(name)
    if observable is None or observable.lacks(setup):
        return False
    return (observable.of_map is not None and "map" in theory.readouts) or (
        observable.rotation_invariant and theory.knows_layers
    )


def derived(
    theory: Theory, setup: Setup, seed: int, name: str, constants: PyTree, times: Grid, points: Points | None
) -> Shaped[AnyArray, "time ..."]:
    """An observable that is no readout of the theory, read off its map or its layers."""
    return _read_off(theory, name, constants, view_of_seed(Occasion(setup, points), (name,), seed), times)


@in_double
@compiled(static_argnames=("theory", "name"))
def _read_off(
    theory: Theory, name: str, constants: PyTree, view: View, times: Float[AnyArray, " time"]
) -> Shaped[AnyArray, "time ..."]:
    observable, states = OBSERVABLES[name], theory.states(constants, times)
    if observable.of_map is not None:
        return jax.vmap(functools.partial(observable.of_map, view))(theory.readouts["map"].read(constants, states))
    return jax.vmap(functools.partial(observable.read, view))(theory.weights(constants, states))


@in_double
@compiled(effort="little", static_argnames="theory")
def weights_at(theory: Theory, constants: PyTree, time: Float[AnyArray, " only"]) -> Weights:
    """The layers at one time; None if the theory does not know them."""
    layers = theory.weights(constants, theory.states(constants, time))
    return None if layers is None else tuple(layer[0] for layer in layers)
