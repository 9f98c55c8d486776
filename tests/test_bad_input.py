"""Bad arguments: every public callable, generated from its signature, against bad values of every kind.

From a valid call each argument in turn is replaced by each bad value. What comes back is an error of festina in three
parts that names the argument, or a result without NaN and infinity: some values are bad for one argument and good for
another. A public callable without a valid call in `CALLS` fails the test: add one with it.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
import types
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jaxtyping
import numpy as np
import pandas
import pytest
import xarray

import festina as fs
from bad_input_calls import ANYTHING, CALLS, EITHER, UNDEFINED, VALID, setup


@pytest.fixture(autouse=True)
def annotations_are_not_checked():
    """Bad values have wrong types on purpose, and are to be refused in words."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


KINDS = ("figures", "tasks", "nets", "inits", "rules", "theories", "gates", "probe")

# What festina calls itself, inside compiled code, with arguments that it has checked where they came in: the contract
# between it and a theory, net, init or rule (docs/how-to/adding-parts.md). Their arguments are traced arrays.
CONTRACT = {
    "Theory": {
        "start",
        "field",
        "states",
        "weights",
        "followed_weights",
        "rotation_rate",
        "fastest_growth",
        "costly",
        "times_together",
    },
    "Net": {
        "refuse_unfit",
        "lifted",
        "layer",
        "thinned",
        "through",
        "representations",
        "gates",
        "columns",
        "apply_in_training",
        "maps_by_rank",
        "where",
    },
    "Init": {"draw"},
    "Rule": {"start", "step", "steps", "time_of_steps", "on_clock", "absolute_tolerance"},
    "Setup": {"stage"},
}


def nested(depth):
    value = 1.0
    for _ in range(depth):
        value = [value]
    return value


itself: dict[str, Any] = {}
itself["itself"] = itself

BAD = {
    "None": None,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "True": True,
    "10**400": 10**400,
    "2**62": 2**62,
    "-10**400": -(10**400),
    "1j": 1j,
    "empty text": "",
    "text": "nonsense",
    "NUL": "a\0b",
    "bytes": b"bytes",
    "object": object(),
    "[]": [],
    "{}": {},
    "{1: 2}": {1: 2},
    "set": {None},
    "ragged": [[1], [1, 2]],
    "deep": nested(3000),
    "[None]": [None],
    "[nan]": [math.nan],
    "[10**400]": [10**400],
    "['nonsense']": ["nonsense"],
    "function": lambda: 1,
    "module": math,
    "type": int,
    "nowhere": Path("nowhere/at/all"),
    "generator": iter("ab"),
    "complex array": np.ones((2, 2)) * 1j,
    "object array": np.array([None, 1], dtype=object),
    "text array": np.array(["a", "b"]),
    "empty cube": np.ones((2, 0, 4)),
    "nan array": np.full((2, 2), np.nan),
    "masked": np.ma.masked_array([1.0, 2.0], [False, True]),
    "date": np.datetime64("2026-01-01"),
    "duration": np.timedelta64(1, "s"),
    "1e308": 1e308,
    "5e-324": 5e-324,
    "number in an array": np.array(1.0),
    "None in an array": np.array(None),
    "itself": itself,
    "bytes to look at": memoryview(b"abcdefgh"),
}


# Values that are good for no argument at all, but for those that keep what they are given.
NOTHING = {
    "nan",
    "-inf",
    "10**400",
    "-10**400",
    "1j",
    "bytes",
    "object",
    "set",
    "ragged",
    "deep",
    "[None]",
    "[nan]",
    "[10**400]",
    "module",
    "complex array",
    "object array",
    "empty cube",
    "nan array",
    "masked",
    "date",
    "duration",
    "None in an array",
}


def _methods(cls):
    """Public methods of a class that take arguments, without the contract with what derives from it."""
    hidden = {name for base in cls.__mro__ for name in CONTRACT.get(base.__name__, ())}
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        inner = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if not isinstance(inner, types.FunctionType) or not inner.__module__.startswith("festina."):
            continue
        if (name.startswith("_") and name != "__getitem__") or name in hidden:
            continue
        if name == "map" and not cls.linear:
            continue  # a net that is no map says so
        if name in ("moments", "closed_edges", "draw") and not getattr(cls, "has_paths", True):
            continue  # and so does one without paths
        if len(inspect.signature(inner).parameters) > (not isinstance(member, staticmethod)):
            yield name


def _of_class(prefix, cls):
    if not inspect.isabstract(cls) and not issubclass(cls, Exception):
        makes = cls.__init__ if isinstance(cls.__init__, types.FunctionType) else cls.__new__
        if isinstance(makes, types.FunctionType) and inspect.signature(cls).parameters:
            yield prefix
        yield from (f"{prefix}.{name}" for name in _methods(cls))


def public_callables():
    """The dotted name of every public callable that takes arguments, below festina."""
    places = {"": fs} | {f"{kind}.": getattr(fs, kind) for kind in KINDS}
    for prefix, module in places.items():
        for name in module.__all__:
            value = getattr(module, name)
            if prefix == "theories." and hasattr(fs, name):
                continue  # Theory, Reduction and Assumption have two names
            if inspect.isclass(value):
                yield from _of_class(prefix + name, value)
            elif callable(value) and inspect.signature(value).parameters:
                yield prefix + name
    for found in pkgutil.iter_modules(fs.theories.__path__):
        if not found.name.startswith("_"):
            module = importlib.import_module(f"festina.theories.{found.name}")
            for name, value in vars(module).items():
                if isinstance(value, types.FunctionType) and not name.startswith("_") and _own(value, module):
                    yield f"theories.{found.name}.{name}"
    yield from (f"theories.two_point.law_of_final_distance().{name}" for name in ("cdf", "quantile"))


def _own(function, module):
    # Formulas of two points are written in a private module, and public as those of their theory.
    of_two_points = module.__name__ == "festina.theories.two_point"
    rooms = ("festina._formulas.two_points.functions", "festina._formulas.two_points.ends") if of_two_points else ()
    return function.__module__ in (module.__name__, *rooms)


NAMES = sorted(set(public_callables()))


def _called(name):
    """The callable, a function that gives its valid arguments anew, and which of them can be replaced."""
    function, arguments = CALLS[name]()
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of a class that is a tuple
        parameters = ()
    kinds = inspect.Parameter
    named = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    first = [p.name for p in parameters if p.kind is kinds.POSITIONAL_ONLY]
    return function, arguments, first, [*first, *named, *(key for key in arguments if key not in (*first, *named))]


def _call(function, arguments, first):
    given = dict(arguments)
    positional = [given.pop(name) for name in first if name in given]
    return function(*positional, **given)


def holds_nan(value, seen=None, depth=0):
    """Whether a result holds NaN or infinity; what is not computed yet is left alone."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth > 6:
        return False
    seen.add(id(value))
    if isinstance(value, (float, complex, np.floating, np.complexfloating)):
        return not np.isfinite(value)
    if isinstance(value, (np.ndarray, jax.Array)):
        value = np.asarray(value)
        return value.dtype.kind in "fc" and not np.isfinite(value).all()
    if isinstance(value, (str, bytes, type, types.ModuleType, types.FunctionType)) or value is None:
        return False
    if isinstance(value, fs.Trajectory):
        parts = [value.times, *(part for part in value._values.values() if not callable(part))]
    elif type(value).__module__.startswith("xarray"):
        parts = [value[name].values for name in value] if hasattr(value, "data_vars") else [value.values]
    elif isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        return False
    return any(holds_nan(part, seen, depth + 1) for part in parts)


def outcome(name, function, arguments, first, argument, label, undefined):
    """ "refused", "accepted", or what is wrong, in words."""
    bad = dict(arguments) | {argument: iter("ab") if label == "generator" else BAD[label]}
    called = f"{name}({argument}={label})"
    if label in VALID.get((name, argument), ()):
        return "accepted"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = _call(function, bad, first)
    except fs.FestinaError as error:
        if not all(isinstance(part, str) and part for part in (error.seen, error.needed, error.do)):
            return f"{called}: not three parts: {error}"
        words = (argument, *EITHER.get(argument, ()), *EITHER.get((name, argument), ()))
        if isinstance(error, fs.BadInput) and not any(re.search(rf"\b{re.escape(w)}\b", str(error)) for w in words):
            return f"{called}: does not name {argument}: {error}"
        return "refused"
    except Exception as error:
        words = str(error).splitlines()
        return f"{called}: raw {type(error).__name__}: {words[0][:120] if words else ''}"
    if not undefined and holds_nan(result):
        return f"{called}: NaN or infinity without a word"
    if label in NOTHING and (name, argument) not in ANYTHING:
        return f"{called}: taken, and means nothing"
    return "accepted"


def test_every_public_callable_has_a_valid_call():
    assert sorted(set(NAMES) - set(CALLS)) == []
    assert sorted(set(CALLS) - set(NAMES)) == []


@pytest.mark.parametrize("name", NAMES)
def test_bad_arguments_are_refused_in_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, arguments, first, replaced = _called(name)
    undefined = name in UNDEFINED or holds_nan(_call(function, arguments, first))  # the valid call is valid
    wrong = []
    for argument in replaced:
        for label in BAD:
            function, arguments, first, _ = _called(name)  # a call may use up or change what it is given
            found = outcome(name, function, arguments, first, argument, label, undefined)
            if found not in ("refused", "accepted"):
                wrong.append(found)
    assert not wrong, "\n".join(wrong)


TABLE = np.array([[1.0, 2.0], [3.0, 4.0]])


def of_torch(**options):
    return pytest.importorskip("torch").tensor(TABLE, **options)


SAME = {
    "lists": lambda: TABLE.tolist(),
    "whole numbers": lambda: TABLE.astype(int),
    "half precision": lambda: TABLE.astype(np.float16),
    "list of arrays": lambda: [TABLE[0], TABLE[1]],
    "jax": lambda: jax.numpy.asarray(TABLE),
    "jax bfloat16": lambda: jax.numpy.asarray(TABLE, jax.numpy.bfloat16),
    "pandas": lambda: pandas.DataFrame(TABLE, columns=["a", "b"]),
    "pandas Int64": lambda: pandas.DataFrame(TABLE).astype("Int64"),
    "xarray": lambda: xarray.DataArray(TABLE, dims=("sample", "input")),
    "masked, nothing hidden": lambda: np.ma.masked_array(TABLE),
    "torch": of_torch,
    "torch with gradients": lambda: of_torch(requires_grad=True),
    "torch bfloat16": lambda: of_torch(dtype=pytest.importorskip("torch").bfloat16),
    "list of tensors": lambda: list(of_torch(requires_grad=True)),
}


@pytest.mark.parametrize("kind", SAME)
def test_arrays_of_other_libraries_are_the_numbers_that_they_hold(kind):
    task = fs.tasks.from_arrays(SAME[kind](), SAME[kind]())
    assert task.x.dtype == np.float64
    np.testing.assert_array_equal(task.x, TABLE)
    np.testing.assert_array_equal(task.y, TABLE)


REFUSED = {
    "masked values": (lambda: np.ma.masked_array(TABLE, TABLE > 3), "x has 1 masked value(s)"),
    "masked values in a list": (lambda: [TABLE[0], np.ma.masked_array(TABLE[1], [True, False])], "masked"),
    "missing values": (lambda: pandas.DataFrame({"a": pandas.array([1, None], "Int64"), "b": [1, 2]}), "NaN"),
    "texts in a table": (lambda: pandas.DataFrame({"a": [1, 2], "b": ["u", "v"]}), "x is DataFrame"),
    "several tables": (lambda: xarray.Dataset({"a": ("sample", [1, 2])}), "x is Dataset"),
    "complex numbers": (lambda: TABLE * 1j, "x is ndarray"),
    "a number beyond double": (lambda: 10**400, "x is int: 1000"),
    "lists in lists in lists": (lambda: nested(3000), "x is list: <list>"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_array_of_numbers_is_refused_in_words(kind):
    make, seen = REFUSED[kind]
    with pytest.raises(fs.BadInput) as refusal:
        fs.tasks.from_arrays(make(), TABLE)
    assert seen in refusal.value.seen
    assert "x" in refusal.value.needed.split()


WORDS = {
    "whole, above": (lambda: fs.nets.DeepLinear(2**40), "hidden = 1099511627776", "a whole number >= 1 and <="),
    "seed": (lambda: setup().weights("a"), "seed = 'a'", "a whole number >= 0 for seed"),
    "seeds": (lambda: fs.simulate(setup(), {}), "seeds = {}", "how many seeds, or a list of them"),
    "truth": (lambda: fs.tasks.regression(whiten="no"), "whiten = 'no'", "True or False"),
    "choice": (lambda: fs.tasks.xor(form="byte"), "unknown form 'byte'", "one of: bits, signs"),
    "text": (lambda: fs.Trajectory([0.0], {}, {}, 3), "source = 3", "source as a text"),
    "path": (lambda: fs.Trajectory.load(3), "path = 3", "a path, as a text or pathlib.Path"),
    "folder": (lambda: fs.run("worlds_have_spectra", out=__file__), "is a file", "a folder"),
    "names": (lambda: fs.tasks.from_arrays(TABLE, TABLE, items=[None, 1]), "items holds None", "texts in items"),
    "list": (lambda: fs.tasks.sequence("ab"), "tasks = 'ab'", "a list of tasks"),
    "instance": (lambda: fs.saddles(3, 2), "task is 3", "a Task"),
    "mapping": (lambda: fs.Trajectory([0.0], [1], {}, "mine"), "values is [1]", "observables by name"),
    "function": (lambda: fs.theories.base.smooth_training(setup(), 3), "fastest_rate is 3", "a function that gives"),
    "entry": (lambda: fs.covering(setup())[99], "index = 99", "a whole number >= -"),
    "number": (lambda: fs.Claim.at_most("small", 0.1, [1, 2]), "bound has shape (2,)", "0 dimension(s)"),
    "matching": (
        lambda: fs.theories.context_race.residual_strength(
            [0.0, 1.0, 2.0], singular_value=[1.0, 2.0], variance=1.0, overlap=0.5, start=0.1
        ),
        "arrays that do not match: times (3,), singular_value (2,)",
        "numbers, or arrays that broadcast against each other",
    ),
    "axes": (
        lambda: fs.Trajectory([0.0], {"loss": [1.0, 2.0]}, {"loss": ("time",)}, "mine"),
        "values['loss'] of shape (2,), axes ('time',) and 1 times",
        "a name in axes for each dimension",
    ),
    "weights": (
        lambda: fs.nets.DeepLinear(3).apply([TABLE, TABLE], TABLE),
        "weights of shapes ((2, 2), (2, 2)), and x of shape (2, 2)",
        "weights of shapes ((3, 2), (2, 3))",
    ),
}


@pytest.mark.parametrize("door", WORDS)
def test_every_door_says_what_it_saw_and_what_it_needs(door):
    call, seen, needed = WORDS[door]
    with pytest.raises(fs.BadInput) as refusal:
        call()
    assert seen in refusal.value.seen
    assert needed in refusal.value.needed
    assert refusal.value.do
