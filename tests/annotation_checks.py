"""Annotations, with the shapes in them, are checked at the first call of a function with arguments of each kind.

A check can only find what types, shapes and precisions of arguments decide; that is their kind here. Later calls with
arguments of the same kind go straight to the function: tests make millions of them, and a check takes a tenth of a
millisecond. Arguments that break an annotation are not wrong if the function itself refuses them in words, as users
see it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jaxtyping
from jaxtyping import TypeCheckError, install_import_hook

check_every_call = jaxtyping.jaxtyped


def check_annotations_of(rooms: Sequence[str]) -> None:
    """Check all functions of these modules, and of the modules in them, that are imported from now on."""
    jaxtyping.jaxtyped = _check_each_kind_once  # what the hook writes above every function
    install_import_hook(list(rooms), "beartype.beartype")


def _check_each_kind_once(function: Any = None, **options: Any) -> Any:
    if function is None:
        return functools.partial(_check_each_kind_once, **options)
    if inspect.isfunction(function):
        return _first_of_each_kind(function, check_every_call(function, **options))
    if inspect.isclass(function) and "__init__" in vars(function):
        make = function.__init__
        checked = check_every_call(function, **options)
        checked.__init__ = _first_of_each_kind(make, checked.__init__)
        return checked
    return check_every_call(function, **options)


def _first_of_each_kind(function: Callable[..., Any], checked: Callable[..., Any]) -> Callable[..., Any]:
    met: set[Hashable] = set()

    @functools.wraps(checked)
    def call(*args: Any, **kwargs: Any) -> Any:
        if jaxtyping.config.jaxtyping_disable:
            return function(*args, **kwargs)
        kind = (_kind(args), _kind(kwargs))
        if kind in met:
            return function(*args, **kwargs)
        try:
            answer = checked(*args, **kwargs)
        except TypeCheckError as wrong:
            _refused_in_words(function, args, kwargs)
            raise wrong
        met.add(kind)
        return answer

    return call


def _refused_in_words(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
    """Raise what the function itself raises if it refuses these arguments; anything else it does is no answer."""
    from festina._foundation.errors import FestinaError

    try:
        function(*args, **kwargs)
    except FestinaError:
        raise
    except Exception:
        return


def _kind(value: object) -> Hashable:
    of = type(value)
    match _family(of):
        case "list":
            return (of, *map(_kind, value))
        case "dict":
            return (of, *((key, _kind(entry)) for key, entry in value.items()))
        case "text":
            return value  # which may have to be one of a few words
        case "array":
            return (of, value.shape, value.dtype) if isinstance(value.shape, tuple) else of
    return of  # a noun was checked when it was made


@functools.cache
def _family(of: type) -> str:
    if issubclass(of, tuple | list):
        return "list"
    if issubclass(of, dict):
        return "dict"
    if of is str:
        return "text"
    return "array" if hasattr(of, "shape") and hasattr(of, "dtype") else "noun"
