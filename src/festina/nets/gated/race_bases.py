"""Bases of the input and output nodes of a gated network, in which the moments of its paths are diagonal.

The basis of an input node consists of the singular vectors of Σʸˣ. Where singular values are equal, any rotation of
these vectors would do, and the basis is chosen by the next operator that is not degenerate there:

1. the Σˣ of the component;
2. the moments of paths that compete with those of the component (rivals), carried over by Σˣ(j, p);
3. these moments for all components together, pooled over the columns of x that the node reads;
4. a fixed matrix over the columns of x, so that components that read the same columns make the same choice.

The moments then carry these vectors to the other nodes of the component. Variances are read off as vᵀ Σˣ v of each
vector, never sorted by themselves.

Nodes of one component that no open path connects, directly or through others, number their modes by strength, each
group on its own; on an edge that they share, mode a means mode a of each.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from ..._formulas.modes import SAME
from .paths import PathMoments, same_rows

Matrix: TypeAlias = Float[np.ndarray, "row column"]
Vector: TypeAlias = Float[np.ndarray, " column"]
Columns: TypeAlias = Mapping[str, Sequence[int]]  # of x or y, by node
Links: TypeAlias = Mapping[tuple[str, str], Sequence[Matrix]]  # (to, from): the moments between two nodes
FAR = 3  # how many steps from rival to rival the moments of a path are passed on


def bases_of_components(
    moments: PathMoments, component: Sequence[int], reads: Columns, writes: Columns, d_in: int
) -> dict[tuple[int, str], Matrix]:
    """(component, input or output node): its basis, (size, mode); as many modes at all nodes of a component."""
    operators = functools.cache(lambda: _operators_with_rivals(moments, writes))
    at_columns = functools.cache(lambda: _pooled_over_columns(moments, operators(), reads, d_in))
    fixed = np.random.default_rng(1).normal(size=(d_in, d_in))

    def beyond(members: list[int], node: str) -> Iterator[Matrix]:
        """The operators from outside a component, for vectors of an input node that it leaves degenerate."""
        where = np.ix_(reads[node], reads[node])
        yield np.sum([operators()[p] for p in members if moments.paths[p].source == node], axis=0)
        yield at_columns()[where]
        yield (fixed + fixed.T)[where]

    sides = {path.source: fixed[0][list(reads[path.source])] for path in moments.paths}
    nodes: dict[tuple[int, str], Matrix] = {}
    for number in range(max(component) + 1):
        members = [p for p, label in enumerate(component) if label == number and np.any(moments.openings[p])]
        bases = _component_bases(moments, members, functools.partial(beyond, members), sides)
        nodes |= {(number, node): basis for node, basis in bases.items()}
    return nodes


def _operators_with_rivals(moments: PathMoments, writes: Columns) -> list[Matrix]:
    """For each path, a symmetric matrix over its inputs, made of its own moments and of those of its rivals.

    Two paths are rivals if they write to the same rows while open together. The matrix K(j) of a rival enters as
    Σˣ(p, j) K(j) Σˣ(j, p), and its target as Σʸˣ(p)ᵀ Σʸˣ(j) Σˣ(j, p); nothing else couples the two paths.
    """
    numbers, weight = range(len(moments.paths)), _generic(len(moments.paths), len(moments.paths))
    rows = [list(writes[path.target]) for path in moments.paths]
    yx = [_unit(np.asarray(matrix)) for matrix in moments.cov_yx]
    scale = [np.linalg.norm(moments.cov_x[p, p], 2) ** 0.5 or 1.0 for p in numbers]
    rivals = [
        [j for j in numbers if j != p and np.any(moments.cov_x[j, p]) and set(rows[p]) & set(rows[j])] for p in numbers
    ]
    across = {(j, p): moments.cov_x[j, p] / (scale[j] * scale[p]) for p in numbers for j in (p, *rivals[p])}
    alone = []
    for p in numbers:
        total = weight[p, p] * (yx[p].T @ yx[p] + across[p, p])
        for j in rivals[p]:
            target = weight[p, j] * yx[p].T @ same_rows(rows[p], rows[j]) @ yx[j] @ across[j, p]
            total = total + target + target.T
        alone.append(total)
    operators = alone
    for _ in range(FAR):
        operators = [
            _unit(alone[p] + sum(weight[p, j] * across[p, j] @ operators[j] @ across[j, p] for j in rivals[p]))
            for p in numbers
        ]
    return operators


def _pooled_over_columns(moments: PathMoments, operators: Sequence[Matrix], reads: Columns, d_in: int) -> Matrix:
    """The sum of these matrices over all paths, as one matrix over the columns of x."""
    pool, weight = np.zeros((d_in, d_in)), _generic(len(operators))
    for p, path in enumerate(moments.paths):
        pool[np.ix_(reads[path.source], reads[path.source])] += weight[p] * operators[p]
    return pool


def _generic(*shape: int) -> Float[np.ndarray, ...]:
    """Fixed numbers near 1 without pattern: a sum with such weights is degenerate only where all its terms are."""
    return np.random.default_rng(0).uniform(0.7, 1.3, size=shape)


def _unit(matrix: Matrix) -> Matrix:
    """A matrix over its largest singular value."""
    size = np.linalg.norm(matrix, 2)
    return matrix / size if size > 0 else matrix


def _component_bases(
    moments: PathMoments,
    members: Sequence[int],
    beyond: Callable[[str], Iterator[Matrix]],
    sides: Mapping[str, Vector],
) -> dict[str, Matrix]:
    """The bases of the input and output nodes of one component, (size, mode); modes that reach an output come first."""
    sources = list(dict.fromkeys(moments.paths[p].source for p in members))
    links = _links(moments, members)
    sizes = {node: matrix.shape[0] for (node, _), matrices in links.items() for matrix in matrices}
    inside = _pooled_over_nodes(links, sources, sizes)
    bases = {node: np.zeros((size, 0)) for node, size in sizes.items()}
    ends = {(moments.paths[p].source, moments.paths[p].target) for p in members}
    while (node := max(sources, key=lambda name: _free(bases[name]))) and _free(bases[node]):
        operators = itertools.chain((matrices[node] for matrices in inside), beyond(node))
        vectors = {node: _resolved(_complement(bases[node]), operators, sides[node])}
        _spread(vectors, links, bases, vectors[node].shape[1])
        bases = _placed(bases, vectors, ends)
    reaching = np.any([bases[target].any(axis=0) for _, target in ends], axis=0)
    order = np.argsort(~reaching, kind="stable")
    return {name: basis[:, order] for name, basis in bases.items()}


def _placed(
    bases: Mapping[str, Matrix], vectors: Mapping[str, Matrix], ends: set[tuple[str, str]]
) -> dict[str, Matrix]:
    """The bases with the vectors of every new mode in the first column that is free for it, or in one more.

    A column is free if neither the nodes of the mode nor those at the other ends of their paths have a vector in it.
    Otherwise such a path would carry the mode initially although it has nothing to learn, and would have to unlearn it.
    """
    near = {name: {name, *(end for path in ends if name in path for end in path)} for name in bases}
    bases = {name: basis.copy() for name, basis in bases.items()}
    for mode in range(next(iter(vectors.values())).shape[1]):
        at_nodes = {name: columns[:, mode] for name, columns in vectors.items() if columns[:, mode].any()}
        around = set().union(*(near[name] for name in at_nodes))
        free = np.flatnonzero(~np.any([bases[name].any(axis=0) for name in around], axis=0))
        if not len(free):
            free = [next(iter(bases.values())).shape[1]]
            bases = {name: np.pad(basis, ((0, 0), (0, 1))) for name, basis in bases.items()}
        for name, vector in at_nodes.items():
            bases[name][:, free[0]] = vector
    return bases


def _free(basis: Matrix) -> int:
    """How many directions of a node have no mode yet."""
    return basis.shape[0] - int(np.any(basis, axis=0).sum())


def _complement(basis: Matrix) -> Matrix:
    """An orthonormal basis of the orthogonal complement of the columns of a basis."""
    if not basis.any():
        return np.eye(len(basis))
    left, values, _ = np.linalg.svd(basis)
    return left[:, int((values > 0.5).sum()) :]


def _links(moments: PathMoments, members: Sequence[int]) -> dict[tuple[str, str], list[Matrix]]:
    """The moments between the nodes of a component, both ways; all of its nodes occur."""
    links: dict[tuple[str, str], list[Matrix]] = {}
    for p in members:
        path = moments.paths[p]
        links.setdefault((path.target, path.source), []).append(np.asarray(moments.cov_yx[p]))
        links.setdefault((path.source, path.target), []).append(np.asarray(moments.cov_yx[p]).T)
        for j in members:
            links.setdefault((moments.paths[j].source, path.source), []).append(np.asarray(moments.cov_x[j, p]))
    return links


def _pooled_over_nodes(links: Links, sources: Sequence[str], sizes: Mapping[str, int]) -> tuple[dict[str, Matrix], ...]:
    """Three symmetric matrices at each input node, diagonal in its basis: of Σʸˣ, of Σˣ, and of both.

    All moments together form one symmetric matrix over all nodes. A function of this matrix is diagonal wherever the
    moments are, and combines what they imply about a node directly and through other nodes.
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


def _of(function: Callable[[Vector], Vector], symmetric: Matrix) -> Matrix:
    """A function of a symmetric matrix, through its eigenvalues."""
    values, vectors = np.linalg.eigh(symmetric)
    return (vectors * function(values)) @ vectors.T


def _resolved(columns: Matrix, operators: Iterable[Matrix], side: Vector) -> Matrix:
    """Orthonormal columns, rotated to diagonalise the first operator, then in each of its levels the next one, …

    All are on one side of the plane orthogonal to `side`.
    """
    columns, groups = columns.copy(), [np.arange(columns.shape[1])]
    for operator in operators:
        if all(len(group) == 1 for group in groups):
            break
        size, finer = np.linalg.norm(operator, 2), []
        for group in groups:
            values, rotation = np.linalg.eigh(columns[:, group].T @ operator @ columns[:, group])
            columns[:, group] = columns[:, group] @ rotation[:, ::-1]
            finer += np.split(group, 1 + np.flatnonzero(-np.diff(values[::-1]) > SAME * size))
        groups = finer
    return columns * np.where(side @ columns < 0, -1.0, 1.0)


def _spread(vectors: dict[str, Matrix], links: Links, bases: Mapping[str, Matrix], count: int) -> None:
    """Carry the vectors of new modes along the moments to all nodes that they link; changes `vectors` in place."""
    growing = True
    while growing:
        growing = False
        for name, basis in bases.items():
            here = vectors.get(name, np.zeros((len(basis), count)))
            linked = [(m, begin) for (to, begin), ms in links.items() if to == name and begin in vectors for m in ms]
            if not linked:
                continue
            known = np.concatenate([basis, here], axis=1)
            images = np.array([_unit(matrix) @ vectors[begin] for matrix, begin in linked])
            images = images - known @ (known.T @ images)
            lengths = np.linalg.norm(images, axis=1) * ~np.any(here, axis=0)
            best, length = np.argmax(lengths, axis=0), np.max(lengths, axis=0)
            fits = np.argsort(-length, kind="stable")[: _free(known)]
            fresh = np.sort(fits[length[fits] > SAME])
            if len(fresh):
                carried = np.stack([images[best[a], :, a] / length[a] for a in fresh], axis=1)
                outer, _, inner = np.linalg.svd(carried, full_matrices=False)
                here = here.copy()
                here[:, fresh] = outer @ inner  # the nearest orthonormal columns
                vectors[name], growing = here, True
