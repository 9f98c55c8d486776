"""saddles(): every critical value of the loss of a two-layer linear network, and how far a network is from each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._formulas.modes import NOTHING, SAME, Modes, input_defect
from .._foundation import checks, html
from .._foundation.arrays import AnyArray
from .._foundation.checks import is_traced, real_array, whole
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, static
from .._foundation.precision import in_double
from .._setup.setup import Setup
from ..nets.base import Net
from ..tasks.base import Task, TaskSequence
from .base import Occasion, Part, View, of_map
from .lacking import not_linear

if TYPE_CHECKING:
    import xarray

MOST = 2**16  # saddles in one table
SHARED = 1e-6  # largest part of Σˣ outside the modes; the limit of the theories of modes
TIE = 1e-12  # losses closer than this, relative to the largest, are equal up to rounding
ROWS = 24  # of the table that is shown


def saddles(task: Task, hidden: int | Net) -> Saddles:
    """Every critical value of the loss of a two-layer linear network with `hidden` units.

    A critical point has learned a subset J of the task's modes, |J| ≤ hidden, and nothing else:
    W² W¹ = Σ_J (s/λ) u vᵀ, loss = floor + ½ Σ_{not in J} s²/λ [baldi1989, fact 4]; λ is the
    input variance of the mode. Exactly one value is a minimum and the others are strict saddles.
    The modes must diagonalise Σˣ. `hidden` may be a linear net with one hidden layer, such as `DeepLinear(32)`.

    Deeper networks are not covered: with three or more layers, zero is a saddle at which the Hessian
    vanishes, so that it has no index.
    """
    checks.instance(task, "task", Task, "build one with festina.tasks, or give setup.task of a Setup")
    if is_traced(task):
        raise BadInput("a traced task", "concrete numbers", "call saddles outside jit, grad and vmap")
    units = _units(hidden)
    modes = _signal(task)
    count = sum(math.comb(len(modes.variances), size) for size in range(_most_learned(modes, units) + 1))
    if count > MOST:
        raise BadInput(
            f"{len(modes.variances)} modes and {units} hidden units have {count} critical values",
            f"at most {MOST} critical values",
            "lower hidden, or give a task with fewer modes",
        )
    gains = modes.singular_values**2 / modes.variances
    same = _same(modes, gains)
    better = (gains[None, :] > gains[:, None]) & ~same  # (mode i, mode j): j lowers the loss by more than i
    subsets = _subsets(modes, units)
    learned = _members(subsets, len(gains))
    order = _falling((~learned) @ gains)
    learned = learned[order]
    missing = ~learned
    spare = (units - learned.sum(axis=1)) * missing.sum(axis=1)
    return Saddles(
        modes=modes,
        losses=task.floor() + 0.5 * (missing @ gains),
        # A free unit may take up any missing mode; a used one may swap its mode for a better one.
        indices=spare + np.sum((learned.astype(int) @ better) * missing, axis=1),
        family=np.any((learned.astype(int) @ same > 0) & missing, axis=1),
        subsets=tuple(subsets[i] for i in order),
        hidden=units,
        inputs=task.inputs,
        features=task.features,
    )


@noun
class Saddles:
    """The critical values of a two-layer linear network, by falling loss; see `saddles`.

    Each saddle is a manifold of weights that compute the same function. These attributes have one entry per saddle:

    - `subsets`: the tuple J of modes that are learned, 0 being the first of `task.modes()`; saddles of equal loss are
      sorted by size, then by mode;
    - `losses`: the loss;
    - `indices`: the number of negative eigenvalues of the Hessian, (hidden − |J|)(r − |J|) plus the number of pairs
      i in J, j not in J with s_j²/λ_j > s_i²/λ_i, where r is the number of modes;
    - `family`: true where a mode i in J and a mode j not in J have equal s²/λ: the subset then stands for a continuous
      family of functions with this loss and this index, in which directions between u_i and u_j replace u_i.

    `modes` are those with s > 0, as far as `task.modes()` can tell them from 0 (1e-9 of the largest).
    """

    modes: Modes
    losses: Float[AnyArray, " saddle"]
    indices: Int[AnyArray, " saddle"]
    family: Bool[AnyArray, " saddle"]
    subsets: tuple[tuple[int, ...], ...] = static()
    hidden: int = static()
    inputs: tuple[str, ...] | None = static(default=None)
    features: tuple[str, ...] | None = static(default=None)

    def __post_init__(self):
        do = "use festina.saddles(task, hidden)"
        checks.instance(self.modes, "modes", Modes, do)
        whole(self.hidden, "hidden")
        count = len(checks.listed(self.subsets, "subsets", "tuples of modes", do))
        for subset in self.subsets:
            for mode in checks.listed(subset, "subsets", "tuples of modes", do, empty=True):
                whole(mode, "subsets", least=0, most=len(self.modes.variances) - 1)
        for name in ("losses", "indices", "family"):
            if len(real_array(getattr(self, name), name, ndim=1)) != count:
                raise BadInput(f"{name} of another length than subsets", f"{name} of {count} saddles", do)
        for name, side in (("inputs", self.modes.right), ("features", self.modes.left)):
            if getattr(self, name) is not None:
                checks.names(getattr(self, name), name, len(side))

    def __len__(self) -> int:
        return len(self.subsets)

    @property
    def members(self) -> Bool[np.ndarray, "saddle mode"]:
        """Whether a mode is learned."""
        return _members(self.subsets, len(self.modes.variances))

    @property
    def maps(self) -> Float[np.ndarray, "saddle feature input"]:
        """The function at each saddle, Σ_J (s/λ) u vᵀ."""
        strengths = self.members * self.modes.targets()
        return (strengths[:, None, :] * self.modes.left) @ self.modes.right.T

    @property
    def minimum(self) -> int:
        """The position of the global minimum; of the first one, where it is a family."""
        return int(np.flatnonzero(self.indices == 0)[0])

    def nested(self) -> Int[np.ndarray, " size"]:
        """Positions of {}, {0}, {0, 1}, …: modes in the order in which they are learned, by falling s.

        Training from small weights visits these saddles and no others, until all hidden units are used. If the last of
        them is not the minimum, there are fewer units than modes, and some mode is later given up for one of larger
        s²/λ. Modes of equal s are learned at the same time: training does not come near the saddles between them.
        """
        where = {subset: position for position, subset in enumerate(self.subsets)}
        return np.array([where[tuple(range(k))] for k in range(_most_learned(self.modes, self.hidden) + 1)])

    def distance(self, maps: object) -> np.ndarray:
        """Frobenius distance of maps (…, feature, input) to the function at every saddle, (…, saddle)."""
        matrices = real_array(maps, "maps")
        shape = (self.modes.left.shape[0], self.modes.right.shape[0])
        if matrices.shape[-2:] != shape:
            raise BadInput(
                f"maps has shape {matrices.shape}",
                f"shape (…, {shape[0]}, {shape[1]}), to match the task",
                "give (out, in) matrices, such as trajectory['map']",
            )
        return np.asarray(in_double(distances)(self.modes, self.members.astype(float), matrices))

    def weights(self, position: int, hidden_basis_seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Balanced weights (W¹, W²) at a saddle; the seed draws the hidden directions that they use."""
        if whole(position, "position", least=0) >= len(self):
            raise BadInput(
                f"position = {position}", f"a position from 0 to {len(self) - 1}", "look it up in saddles.subsets"
            )
        subset = list(self.subsets[int(position)])
        gaussian = np.random.default_rng(checks.seed(hidden_basis_seed, "hidden_basis_seed")).normal(
            size=(self.hidden, len(subset))
        )
        layer = np.linalg.qr(gaussian)[0] * np.sqrt(self.modes.targets()[subset])
        right, left = np.asarray(self.modes.right), np.asarray(self.modes.left)
        return layer @ right[:, subset].T, left[:, subset] @ layer.T

    def to_xarray(self) -> xarray.Dataset:
        """The table as an `xarray.Dataset` with axes saddle, mode, feature and input."""
        import xarray

        names = {"feature": self.features, "input": self.inputs}
        return xarray.Dataset(
            {
                "loss": ("saddle", self.losses),
                "index": ("saddle", self.indices),
                "family": ("saddle", self.family),
                "member": (("saddle", "mode"), self.members),
                "map": (("saddle", "feature", "input"), self.maps),
            },
            coords={
                "subset": ("saddle", [_label(subset) for subset in self.subsets]),
                **{axis: (axis, list(entries)) for axis, entries in names.items() if entries is not None},
            },
            attrs={"hidden": self.hidden, "minimum": self.minimum},
        )

    def _repr_html_(self) -> str:
        few = range(min(len(self), ROWS))
        rows = [(_label(self.subsets[i]), f"{self.losses[i]:.6g}", self.indices[i], self._kind(i)) for i in few]
        rows += [(f"… {len(self) - ROWS} more", "", "", "")] * (len(self) > ROWS)
        caption = f"Saddles: {len(self)} critical values, {self.hidden} hidden units"
        return html.table(rows, ("subset of modes", "loss", "index", "kind"), caption)

    def _kind(self, i: int) -> str:
        return ("strict saddle" if self.indices[i] else "minimum") + (", a family" if self.family[i] else "")

    def __repr__(self) -> str:
        labels = [_label(subset) for subset in self.subsets]
        shown = range(len(self)) if len(self) <= ROWS else [*range(ROWS // 2), *range(len(self) - ROWS // 2, len(self))]
        width = max(6, *(len(labels[i]) for i in shown))
        lines = [f"Saddles(critical values: {len(self)}, modes: {len(self.modes.variances)}, hidden: {self.hidden})"]
        lines += [f"  {'subset':<{width}}  {'loss':>11}  {'index':>5}  kind"]
        for before, i in zip([-1, *shown], shown, strict=False):
            if i != before + 1:
                lines += [f"  … {i - before - 1} more"]
            lines += [f"  {labels[i]:<{width}}  {self.losses[i]:>11.6g}  {self.indices[i]:>5}  {self._kind(i)}"]
        return "\n".join(lines)


def _units(hidden: object) -> int:
    if isinstance(hidden, Net):
        layers = hidden.hidden
        if len(layers) != 1 or not hidden.is_linear_chain:
            raise BadInput(
                f"hidden = {hidden!r}",
                "a linear chain of one hidden layer: the critical points of other nets are not of this form",
                "use nets.DeepLinear(hidden=32), or give the width alone",
            )
        return layers[0]
    return whole(hidden, "hidden")


def _signal(task: Task) -> Modes:
    """The modes with s > 0; they must diagonalise Σˣ, and their inputs must vary."""
    modes = task.modes()
    defect = input_defect(modes, task.cov_x)
    if not defect <= SHARED:
        raise BadInput(
            f"cov_x is not diagonal in the modes of cov_yx: the part outside is {defect:.3g} of a mode's variance",
            f"inputs that share the modes, to {SHARED:g}",
            "give tasks.whitened(task): its critical values and their indices are the same",
        )
    values, variances = modes.singular_values, modes.variances
    kept = np.flatnonzero(values > NOTHING * values[0])  # smaller ones are not paired with their vectors
    faint = [k for k in kept if variances[k] <= NOTHING * np.max(variances)]
    if faint:
        raise BadInput(
            f"mode {faint[0]} has s = {values[faint[0]]:.3g} and input variance {variances[faint[0]]:.3g}, "
            f"{variances[faint[0]] / np.max(variances):.1g} of the largest",
            "input variances that can be told from rounding wherever something is to be learned",
            "rescale or drop the inputs that hardly vary",
        )
    return Modes(modes.left[:, kept], modes.right[:, kept], values[kept], variances[kept])


def distances(
    modes: Modes, members: Float[AnyArray, "saddle mode"], maps: Float[AnyArray, "*time feature input"]
) -> Float[AnyArray, "*time saddle"]:
    """Frobenius distances of maps to the functions that learn `members` of the modes."""
    # Along the modes and beside them: only squares are added, so a small distance keeps its digits.
    strengths = modes.strengths(maps)
    beside = jnp.sum((maps - modes.matrix(strengths)) ** 2, axis=(-2, -1))
    within = (strengths - modes.targets()) ** 2 @ members.T + strengths**2 @ (1 - members).T
    return jnp.sqrt(within + beside[..., None])


def _most_learned(modes: Modes, units: int) -> int:
    return min(len(modes.variances), units)


def _same(modes: Modes, gains: Float[AnyArray, " mode"]) -> Bool[np.ndarray, "mode mode"]:
    """Which modes lower the loss equally, as finely as s and λ are told apart in `Modes`."""
    values, variances = modes.singular_values, modes.variances
    if len(gains) == 0:
        return np.zeros((0, 0), bool)
    unsure = SAME * gains * (values.max() / values + variances.max() / variances)
    return np.abs(gains[:, None] - gains) <= np.maximum(unsure[:, None], unsure)


def _subsets(modes: Modes, units: int) -> list[tuple[int, ...]]:
    """All subsets that fit into the units, by size, then by mode."""
    sizes = range(_most_learned(modes, units) + 1)
    return [subset for size in sizes for subset in itertools.combinations(range(len(modes.variances)), size)]


def _members(subsets: Iterable[tuple[int, ...]], modes: int) -> Bool[np.ndarray, "saddle mode"]:
    subsets = tuple(subsets)
    members = np.zeros((len(subsets), modes), bool)
    for row, subset in zip(members, subsets, strict=True):
        row[list(subset)] = True
    return members


def _falling(losses: Float[AnyArray, " saddle"]) -> Int[np.ndarray, " saddle"]:
    """The order of falling losses; equal ones stay in the order they are in, whatever their rounding."""
    order = np.argsort(-losses, kind="stable")
    drops = -np.diff(losses[order]) > TIE * losses.max()
    level = np.empty(len(losses), int)
    level[order] = np.concatenate([[0], np.cumsum(drops)])
    return np.argsort(level, kind="stable")


def _label(subset: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, subset)) + "}"


def _modes_and_members(occasion: Occasion) -> tuple[Modes, Float[np.ndarray, "saddle mode"]]:
    table = saddles(occasion.lifted.single_task, occasion.setup.net.hidden[0])
    return table.modes, np.asarray(table.members, float)


_SADDLES = Part("saddles", _modes_and_members)


def _no_saddles(setup: Setup) -> str:
    if isinstance(setup.task, TaskSequence):
        return "a sequence of tasks has no one set of saddles"
    if reason := not_linear(setup):
        return reason
    return "" if len(setup.net.hidden) == 1 else "the saddles are known for one hidden layer"


def _saddle_distance(view: View, matrix: Float[AnyArray, "out in"]) -> Float[AnyArray, " saddle"]:
    modes, members = view[_SADDLES]
    return distances(modes, members, matrix)


OBSERVABLES = {"saddle_distance": of_map(("saddle",), _saddle_distance, _no_saddles, (_SADDLES,))}
