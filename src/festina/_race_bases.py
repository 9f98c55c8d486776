"""Bases of the input and output nodes of a gated network, in which the moments of its paths are diagonal.

The basis of an input node comes from Σʸˣ; where its levels are degenerate, it is turned to diagonalise the Σˣ of the
component, then what the paths that race with its own say about it through Σˣ(j, p), then what is known at its columns
from all components, and where even these leave it free, a fixed matrix over the columns of x: so components that read
the same columns make the same choice. Other nodes follow by what the moments link. Variances are paired by vᵀ Σˣ v,
never by sorting.

Nodes of a component that no open path joins are numbered alike, in order of strength: mode a of an edge that they
share carries mode a of each.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ._linalg import SAME
from ._paths import PathMoments, same_rows

Matrix = np.ndarray
FAR = 3  # rivals of rivals of rivals are heard of


def bases_of_components(
    moments: PathMoments, component: Sequence[int], reads: dict[str, Any], writes: dict[str, Any], d_in: int
) -> dict[tuple[int, str], Matrix]:
    """(component, input or output node): its basis, (size, mode); as many modes at all nodes of a component."""
    seen = functools.cache(lambda: _seen_by_rivals(moments, writes))
    at_columns = functools.cache(lambda: _pooled_over_columns(moments, seen(), reads, d_in))
    fixed = np.random.default_rng(1).normal(size=(d_in, d_in))

    def beyond(members: list[int], node: str) -> Iterator[Matrix]:
        """What turns levels at an input node that its component leaves degenerate, found when there are some."""
        where = np.ix_(reads[node], reads[node])
        yield np.sum([seen()[p] for p in members if moments.paths[p].source == node], axis=0)
        yield at_columns()[where]
        yield (fixed + fixed.T)[where]

    sides = {path.source: fixed[0][list(reads[path.source])] for path in moments.paths}
    found = {}
    for number in range(max(component) + 1):
        members = [p for p, own in enumerate(component) if own == number and np.any(moments.openings[p])]
        bases = _component_bases(moments, members, functools.partial(beyond, members), sides)
        found |= {(number, node): basis for node, basis in bases.items()}
    return found


def _seen_by_rivals(moments: PathMoments, writes: dict[str, Any]) -> list[Matrix]:
    """At the input of each path, what its moments say, and those of the paths that race with it through Σˣ(j, p).

    Paths race if they write to the same rows while open together. Their own matrices K(j) become
    Σˣ(p, j) K(j) Σˣ(j, p), and their targets Σʸˣ(p)ᵀ Σʸˣ(j) Σˣ(j, p), which is all that couples the two.
    """
    numbers, weight = range(len(moments.paths)), _generic(len(moments.paths), len(moments.paths))
    rows = [list(writes[path.target]) for path in moments.paths]
    yx = [_unit(matrix) for matrix in moments.cov_yx]
    scale = [np.linalg.norm(moments.cov_x[p, p], 2) ** 0.5 or 1.0 for p in numbers]
    rivals = [
        [j for j in numbers if j != p and np.any(moments.cov_x[j, p]) and set(rows[p]) & set(rows[j])] for p in numbers
    ]
    across = {(j, p): moments.cov_x[j, p] / (scale[j] * scale[p]) for p in numbers for j in (p, *rivals[p])}
    own = []
    for p in numbers:
        total = weight[p, p] * (yx[p].T @ yx[p] + across[p, p])
        for j in rivals[p]:
            target = weight[p, j] * yx[p].T @ same_rows(rows[p], rows[j]) @ yx[j] @ across[j, p]
            total = total + target + target.T
        own.append(total)
    seen = own
    for _ in range(FAR):
        seen = [
            _unit(own[p] + sum(weight[p, j] * across[p, j] @ seen[j] @ across[j, p] for j in rivals[p]))
            for p in numbers
        ]
    return seen


def _pooled_over_columns(moments: PathMoments, seen: list[Matrix], reads: dict[str, Any], d_in: int) -> Matrix:
    """What is known at the inputs of all paths together, over the columns of x."""
    pool, weight = np.zeros((d_in, d_in)), _generic(len(seen))
    for p, path in enumerate(moments.paths):
        pool[np.ix_(reads[path.source], reads[path.source])] += weight[p] * seen[p]
    return pool


def _generic(*shape: int) -> Matrix:
    """Fixed numbers near 1 without pattern: a sum with such weights is degenerate only where all its terms are."""
    return np.random.default_rng(0).uniform(0.7, 1.3, size=shape)


def _unit(matrix: Matrix) -> Matrix:
    size = np.linalg.norm(matrix, 2)
    return matrix / size if size > 0 else matrix


def _component_bases(
    moments: PathMoments, members: list[int], beyond: Callable[[str], Iterator[Matrix]], sides: dict[str, Matrix]
) -> dict[str, Matrix]:
    """The bases of the input and output nodes of one component, (size, mode); modes that reach an output first."""
    sources = list(dict.fromkeys(moments.paths[p].source for p in members))
    links = _links(moments, members)
    sizes = {node: matrix.shape[0] for (node, _), matrices in links.items() for matrix in matrices}
    inside = _pooled_over_nodes(links, sources, sizes)
    bases = {node: np.zeros((size, 0)) for node, size in sizes.items()}
    ends = {(moments.paths[p].source, moments.paths[p].target) for p in members}
    while (node := max(sources, key=lambda name: _free(bases[name]))) and _free(bases[node]):
        operators = itertools.chain((matrices[node] for matrices in inside), beyond(node))
        new = {node: _resolved(_complement(bases[node]), operators, sides[node])}
        _spread(new, links, bases, new[node].shape[1])
        bases = _placed(bases, new, ends)
    reaching = np.any([bases[target].any(axis=0) for _, target in ends], axis=0)
    order = np.argsort(~reaching, kind="stable")
    return {name: basis[:, order] for name, basis in bases.items()}


def _placed(bases: dict[str, Matrix], new: dict[str, Matrix], ends: set[tuple[str, str]]) -> dict[str, Matrix]:
    """The bases with every new mode in the first column that is free for it, or in one more.

    Neither its nodes nor those at other ends of their paths have vectors there: such a path would carry the mode at
    the start although it has nothing to learn, and would have to unlearn it.
    """
    near = {name: {name, *(end for path in ends if name in path for end in path)} for name in bases}
    bases = {name: basis.copy() for name, basis in bases.items()}
    for mode in range(next(iter(new.values())).shape[1]):
        vectors = {name: columns[:, mode] for name, columns in new.items() if columns[:, mode].any()}
        around = set().union(*(near[name] for name in vectors))
        free = np.flatnonzero(~np.any([bases[name].any(axis=0) for name in around], axis=0))
        if not len(free):
            free = [next(iter(bases.values())).shape[1]]
            bases = {name: np.pad(basis, ((0, 0), (0, 1))) for name, basis in bases.items()}
        for name, vector in vectors.items():
            bases[name][:, free[0]] = vector
    return bases


def _free(basis: Matrix) -> int:
    return basis.shape[0] - int(np.any(basis, axis=0).sum())


def _complement(basis: Matrix) -> Matrix:
    """Orthonormal columns of what the columns of a basis leave out."""
    if not basis.any():
        return np.eye(len(basis))
    left, values, _ = np.linalg.svd(basis)
    return left[:, int((values > 0.5).sum()) :]


def _links(moments: PathMoments, members: list[int]) -> dict[tuple[str, str], list[Matrix]]:
    """(to, from): the moments between two nodes of a component, both ways; all of its nodes occur."""
    found: dict[tuple[str, str], list[Matrix]] = {}
    for p in members:
        path = moments.paths[p]
        found.setdefault((path.target, path.source), []).append(moments.cov_yx[p])
        found.setdefault((path.source, path.target), []).append(moments.cov_yx[p].T)
        for j in members:
            found.setdefault((moments.paths[j].source, path.source), []).append(moments.cov_x[j, p])
    return found


def _pooled_over_nodes(
    links: dict[tuple[str, str], list[Matrix]], sources: list[str], sizes: dict[str, int]
) -> tuple[dict[str, Matrix], ...]:
    """Three symmetric matrices at each input node, diagonal in its basis: of Σʸˣ, of Σˣ, and of both.

    A function of all moments as one symmetric matrix over all nodes is diagonal wherever they are, and knows what
    they say about a node through others.
    """
    ends = np.cumsum([0, *sizes.values()])
    span = {node: slice(a, b) for node, a, b in zip(sizes, ends[:-1], ends[1:], strict=True)}
    yx, x = np.zeros((2, ends[-1], ends[-1]))
    for (to, begin), matrices in links.items():
        weights = _generic(len(matrices))
        total = sum(weight * matrix for weight, matrix in zip(weights, matrices, strict=True))
        (x if to in sources and begin in sources else yx)[span[to], span[begin]] += total
    yx, x = ((pool + pool.T) / 2 for pool in (yx, x))
    whole = (_of(np.abs, yx), _of(np.exp, _unit(x)), _of(np.exp, _unit(yx) + 0.6 * _unit(x)))
    return tuple({node: matrix[span[node], span[node]] for node in sources} for matrix in whole)


def _of(function: Any, symmetric: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(symmetric)
    return (vectors * function(values)) @ vectors.T


def _resolved(columns: Matrix, operators: Iterable[Matrix], side: Matrix) -> Matrix:
    """Orthonormal columns, turned to diagonalise the first operator, then in each of its levels the next one, …

    All are on one side of the plane orthogonal to `side`.
    """
    columns, groups = columns.copy(), [np.arange(columns.shape[1])]
    for operator in operators:
        if all(len(group) == 1 for group in groups):
            break
        size, finer = np.linalg.norm(operator, 2), []
        for group in groups:
            values, turn = np.linalg.eigh(columns[:, group].T @ operator @ columns[:, group])
            columns[:, group] = columns[:, group] @ turn[:, ::-1]
            finer += np.split(group, 1 + np.flatnonzero(-np.diff(values[::-1]) > SAME * size))
        groups = finer
    return columns * np.where(side @ columns < 0, -1.0, 1.0)


def _spread(new: dict[str, Matrix], links: Any, bases: dict[str, Matrix], count: int) -> None:
    """The vectors of new modes at all nodes that the moments link to where they are known; changes `new`."""
    growing = True
    while growing:
        growing = False
        for name, basis in bases.items():
            own = new.get(name, np.zeros((len(basis), count)))
            linked = [(m, begin) for (to, begin), ms in links.items() if to == name and begin in new for m in ms]
            if not linked:
                continue
            known = np.concatenate([basis, own], axis=1)
            seen = np.array([_unit(matrix) @ new[begin] for matrix, begin in linked])
            seen = seen - known @ (known.T @ seen)
            lengths = np.linalg.norm(seen, axis=1) * ~np.any(own, axis=0)
            best, length = np.argmax(lengths, axis=0), np.max(lengths, axis=0)
            fits = np.argsort(-length, kind="stable")[: _free(known)]
            fresh = np.sort(fits[length[fits] > SAME])
            if len(fresh):
                vectors = np.stack([seen[best[a], :, a] / length[a] for a in fresh], axis=1)
                outer, _, inner = np.linalg.svd(vectors, full_matrices=False)
                own = own.copy()
                own[:, fresh] = outer @ inner  # the nearest orthonormal columns
                new[name], growing = own, True
