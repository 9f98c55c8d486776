"""Checks of arguments: one function for each kind, which returns the cleaned value or refuses it in three parts.

Values that JAX is tracing are unknown, and pass the checks of numbers and arrays untouched.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .errors import BadInput, UnknownName, shown

T = TypeVar("T")
MOST = 2**31 - 1  # of what is counted: more units, samples or steps than any array here has
MOST_SEEDS = 2**63 - 1  # a random key holds no more
LARGEST = 1e100  # of a single number: squares and products of a few such numbers stay in float64
RANGE = 2.3e-308, 1e300  # bounds within which float64 keeps all digits, also in closed forms that come near them


def is_traced(*trees: object) -> bool:
    """Whether JAX is tracing one of these: its value is then unknown and cannot be checked."""
    try:
        return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))
    except (RecursionError, SystemError):  # lists in lists, deeper than any array
        return False


def real_array(value: object, argument: str, ndim: int | tuple[int, ...] | None = None) -> Any:
    """`value` as a finite float64 array of the wanted rank; traced values pass untouched."""
    if is_traced(value):
        return value
    with np.errstate(over="ignore"):  # a long double too large becomes infinite, and is refused as such
        array = number_array(value, argument).astype(np.float64)  # a copy: what a caller changes later is not ours
    array.setflags(write=False)
    wanted = (ndim,) if isinstance(ndim, int) else ndim
    if wanted is not None and array.ndim not in wanted:
        raise BadInput(
            f"{argument} has shape {array.shape}",
            f"{' or '.join(map(str, wanted))} dimension(s)",
            f"reshape {argument}" + (f", for example {argument}[:, None]" if array.ndim == 1 and 2 in wanted else ""),
        )
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise BadInput(
            f"{argument} has {int((~np.isfinite(array)).sum())} value(s) that are NaN or infinite, "
            f"the first at index {where}",
            f"finite numbers in {argument}",
            "remove or impute these entries",
        )
    return array


def number_array(value: object, argument: str) -> np.ndarray:
    """`value` as an array of real numbers or truth values in their own precision; NaN and infinity are left in."""
    try:
        held = np.asarray(_held(value, argument))
        if held.dtype.kind in "biuf":
            return held
        if jnp.issubdtype(held.dtype, np.floating):  # bfloat16 and others that NumPy lacks
            return held.astype(np.float64)
    except BadInput:
        raise
    except Exception:  # rows of different lengths, or whatever an __array__ of others raises
        pass
    # Text, complex numbers and objects are not converted in silence.
    raise BadInput(
        f"{argument} is {type(value).__name__}: {shown(value)}",
        f"{argument} as real numbers in a rectangular array",
        f"convert it first, for example numpy.asarray({argument}, dtype=float)",
    )


def _held(value: Any, argument: str) -> Any:
    """The same values in a form that NumPy reads without losing a mask, a gradient or a missing value."""
    library = type(value).__module__.partition(".")[0]
    if library == "torch" and isinstance(value, sys.modules["torch"].Tensor):
        plain = value.detach().cpu()
        return plain.double().numpy() if plain.is_floating_point() else plain.resolve_conj().numpy()
    if library == "pandas" and all(map(_is_numeric, np.atleast_1d(getattr(value, "dtypes", "")))):
        return value.to_numpy(dtype=float, na_value=math.nan)
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            hidden = int(np.ma.getmaskarray(value).sum())
            raise BadInput(
                f"{argument} has {hidden} masked value(s)",
                f"{argument} without masked values",
                f"remove them, or fill them: {argument}.filled(…)",
            )
        return value.data
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)  # beyond 64 bits NumPy would keep an object
    if isinstance(value, (list, tuple)) and any(hasattr(e, "__array__") or isinstance(e, (list, tuple)) for e in value):
        return [_held(entry, argument) for entry in value]
    return value


def _is_numeric(dtype: Any) -> bool:
    return sys.modules["pandas"].api.types.is_numeric_dtype(dtype) and getattr(dtype, "kind", "O") != "c"


def matching(
    numbers: Mapping[str, Any],
    *,
    least: Mapping[str, float] = MappingProxyType({}),
    above: Mapping[str, float] = MappingProxyType({}),
    within: tuple[float, float] = RANGE,
    do: str = "give numbers, or arrays of one shape",
) -> dict[str, Any]:
    """Refuse numbers and arrays that do not broadcast against each other or are out of bounds; return the others.

    `least` and `above` are lower bounds by name; every number must be 0 or of a size in the range `within`. Traced
    values pass.
    """
    checked = {name: real_array(value, name) for name, value in numbers.items()}
    shapes = {name: np.shape(value) for name, value in checked.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise BadInput(
            f"arrays that do not match: {', '.join(f'{name} {shape}' for name, shape in shapes.items() if shape)}",
            "numbers, or arrays that broadcast against each other",
            do,
        ) from None
    for name, value in checked.items():
        if is_traced(value):
            continue
        if 0 in shapes[name]:
            raise BadInput(f"{name} is empty", f"a number or more in {name}", f"give some {name}")
        sizes = np.abs(value)
        far = (sizes > within[1]) | ((sizes > 0) & (sizes < within[0]))
        if np.any(far):
            bounds = f"{name} = 0, or a size from {within[0]:g} to {within[1]:g}, whose products are in float64"
            raise BadInput(f"{name} = {value[far].flat[0]:g}", bounds, f"give {name} in other units")
        low = float(np.min(value))
        if low < least.get(name, -math.inf) or low <= above.get(name, -math.inf):
            sign, bound = (">=", least[name]) if name in least else (">", above[name])
            raise BadInput(f"{name} = {low:g}", f"{name} {sign} {bound:g}", f"give {name} in this range")
    return checked


def number(
    value: object, argument: str, *, least: float = -math.inf, most: float = math.inf, finite: bool = True
) -> Any:
    """`value` as one number between two bounds, finite unless said otherwise; traced values pass."""
    if is_traced(value):
        return value
    single = number_array(value, argument)
    checked = float(single) if single.shape == () and not finite else float(real_array(value, argument, ndim=0))
    if finite and not least <= checked <= most:
        bounds = [f">= {least:g}"] * (least > -math.inf) + [f"<= {most:g}"] * (most < math.inf)
        raise BadInput(
            f"{argument} = {shown(value)}", f"{argument} {' and '.join(bounds)}", f"give {argument} in this range"
        )
    return checked


def positive(value: object, argument: str, *, zero: bool = False, least: float = 0.0) -> Any:
    """`value` as a positive number (or zero, where allowed) of at most LARGEST; traced values pass."""
    if is_traced(value):
        return value
    number = real_array(value, argument, ndim=0)
    if number < 0 or (number == 0 and not zero):
        raise BadInput(
            f"{argument} = {shown(value)}",
            f"{argument} {'>=' if zero else '>'} 0",
            f"give a {'non-negative' if zero else 'positive'} {argument}",
        )
    if not least <= number <= LARGEST:
        bounds = f"{least:g} <= {argument} <= {LARGEST:g}" if least else f"{argument} <= {LARGEST:g}"
        raise BadInput(f"{argument} = {shown(value)}", bounds, f"give {argument} in other units")
    return float(number)


def whole(value: object, argument: str, *, least: int = 1, most: int = MOST) -> int:
    """`value` as an int between two bounds; booleans and fractions are refused."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)  # pyright: ignore[reportArgumentType]
    except Exception:  # arrays of others raise what they like
        number = None
    if number is None or not least <= number <= most:
        bound = f">= {least}" + (f" and <= {most}" if number is not None and number > most else "")
        raise BadInput(
            f"{argument} = {shown(value)}",
            f"a whole number {bound} for {argument}",
            f"give {argument} as an int, for example {max(least, min(8, most))}",
        )
    return number


def seed(value: object, argument: str = "seed", *, most: int = MOST_SEEDS) -> Any:
    """`value` as the number of a random draw; traced values pass."""
    return value if is_traced(value) else whole(value, argument, least=0, most=most)


def seeds(value: object, argument: str = "seeds") -> tuple[int, ...]:
    """A tuple of seeds, from a count n (0 … n−1) or a list."""
    if isinstance(value, (int, np.integer)):
        return tuple(range(whole(value, argument)))
    needed, do = "how many seeds, or a list of them", f"give {argument}=16 or {argument}=[3, 4]"
    return tuple(seed(entry, argument) for entry in listed(value, argument, needed, do))


def truth(value: object, argument: str, do: str = "") -> bool:
    """`value` as True or False."""
    if not isinstance(value, (bool, np.bool_)):
        do = do or f"give {argument}=True or {argument}=False"
        raise BadInput(f"{argument} = {shown(value)}", "True or False", do)
    return bool(value)


def truth_or_none(value: object, argument: str) -> bool | None:
    """`value` as True or False; None, which leaves the choice to festina, passes."""
    return None if value is None else truth(value, argument)


def choice(value: object, argument: str, options: Iterable[str]) -> str:
    """`value`, if it is one of the options."""
    known = tuple(options)
    if not isinstance(value, str) or value not in known:
        raise UnknownName.among(argument, value, known)
    return value


def text(value: object, argument: str, *, empty: bool = False) -> str:
    """`value` as a text, of one letter at least unless it may be `empty`."""
    if not isinstance(value, str) or not (value or empty):
        raise BadInput(f"{argument} = {shown(value)}", f"{argument} as a text", f'give {argument}="…"')
    return value


def path(value: object, argument: str) -> Path:
    """`value` as a path that a file system can have."""
    given = os.fspath(value) if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(given, str) or not given or "\0" in given:
        raise BadInput(f"{argument} = {shown(value)}", "a path, as a text or pathlib.Path", f'give {argument}="name"')
    return Path(given)


def listed(value: object, argument: str, needed: str, do: str, *, empty: bool = False) -> tuple[Any, ...]:
    """`value` as a list: any iterable except strings and dicts."""
    try:
        entries = None if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, type)) else tuple(value)  # pyright: ignore[reportArgumentType]
    except Exception:  # `value` is no list, or a list-like object that raises when it is iterated
        entries = None
    if entries is None or not (entries or empty):
        raise BadInput(f"{argument} = {shown(value)}", needed, do)
    return entries


def names(value: object, argument: str, count: int | None = None) -> tuple[str, ...]:
    """`value` as a tuple of texts, of length `count` if that is given; whole numbers are taken as texts."""
    entries = listed(value, argument, "a list of names", f"give {argument}=[…]", empty=True)
    for entry in entries:
        number = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool) and abs(entry) <= MOST_SEEDS
        if not number and not isinstance(entry, str):
            raise BadInput(
                f"{argument} holds {shown(entry)}", f"texts in {argument}", f"write names: {argument}=[str(…), …]"
            )
    if count is not None and len(entries) != count:
        raise BadInput(
            f"{argument} has {len(entries)} names", f"{count} names", f"give one of {argument} per axis entry"
        )
    return tuple(shown(entry) if not isinstance(entry, str) else str(entry) for entry in entries)


def observables(value: object, argument: str = "observe") -> tuple[str, ...] | None:
    """Names of what to record, one or several; None is left as it is."""
    return value if value is None else (value,) if isinstance(value, str) else names(value, argument)


def known_names(value: object, known: Iterable[str], kind: str) -> tuple[str, ...]:
    """The names of what to record, one or several, each of which must be known; errors call one a `kind`."""
    names, known = observables(value), tuple(known)
    if not names:
        raise BadInput("observe is empty", "at least one observable", f"choose from: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UnknownName.among(kind, name, known)
    return names


def entry(entries: Any, index: Any, argument: str) -> Any:
    """The entry at an index, which may be negative, or the entries of a slice."""
    if isinstance(index, slice):
        parts = (index.start, index.stop, index.step)
        return entries[slice(*(part if part is None else whole(part, argument, least=-MOST) for part in parts))]
    return entries[whole(index, argument, least=-len(entries), most=len(entries) - 1)]


def instance(value: object, argument: str, kind: type[T] | tuple[type[T], ...], do: str) -> T:
    """`value`, if it is an instance of `kind`."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        needed = " or ".join(f"a{'n' * (one.__name__[0] in 'AEIO')} {one.__name__}" for one in kinds)
        raise BadInput(f"{argument} is {shown(value)}", needed, do)
    return value


def mapping(value: object, argument: str, needed: str, do: str) -> dict[str, Any]:
    """`value` as a dict whose keys are texts."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise BadInput(f"{argument} is {shown(value)}", needed, do)
    return dict(value)


def function(value: object, argument: str, needed: str, do: str) -> Callable:
    """`value`, if it can be called."""
    if not callable(value):
        raise BadInput(f"{argument} is {shown(value)}", needed, do)
    return value
