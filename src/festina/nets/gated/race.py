"""The race of a gated network's paths: the law of motion of one number per edge and mode.

In the bases of `path_bases`, with Σʸˣ(p) = U S(p) Vᵀ and all layers along these bases, the strengths b of all edges
learn by

    db_e/dt = Σ_{p through e} B_{p\\e} [ S(p) − Σ_j Σ_b (U_pᵀ U_j)_ab B_j,b (V_jᵀ Σˣ(j, p) V_p)_ba ]

with B the product of the edges of a path, B_{p\\e} that of the others, and j the paths that write where p writes. With
one basis per node the overlaps are diagonal, and this is [jarvis2025, eqs. 6 and 10]; across components they are full
matrices. It is exact gradient flow as long as the brackets stay U_p diag(…) V_pᵀ. `race_layers` expresses initial
weights in the bases.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.integrate import solve_ivp

from ..._foundation.arrays import AnyArray
from ..._foundation.nouns import noun
from .path_bases import PathBases

Strengths: TypeAlias = Float[AnyArray, "edge mode"]


@noun
class RaceLaw:
    """What the law of a race needs: S(p), the couplings, and which edges each path has."""

    strengths: Float[AnyArray, "path mode"]
    couplings: Float[AnyArray, "path mode other mode"]
    edges: Int[AnyArray, "path place"]
    passes: Float[AnyArray, "edge path place"]  # 1 where a path has an edge

    @classmethod
    def of(cls, bases: PathBases, edges: int) -> RaceLaw:
        passes = (np.arange(edges)[:, None, None] == bases.edges).astype(float)
        return cls(bases.strengths, bases.couplings, bases.edges, passes)


def path_strengths(edges: Int[AnyArray, "path place"], b: Float[AnyArray, "... edge mode"]) -> Float[AnyArray, ...]:
    """B of every path, (…, path, mode): the product of its edges."""
    return _factors(jnp, edges, b).prod(axis=-2)


def _factors(
    xp: ModuleType, edges: Int[AnyArray, "path place"], b: Float[AnyArray, "... edge mode"]
) -> Float[AnyArray, "... path place mode"]:
    """The strengths of the edges of every path; 1 after its last edge."""
    padded = xp.concatenate([b, xp.ones_like(b[..., :1, :])], axis=-2)
    return padded[..., edges, :]


def slope(law: RaceLaw, b: Strengths, xp: ModuleType = jnp) -> Strengths:
    """db/dt of every edge."""
    factors = _factors(xp, law.edges, b)
    taken = xp.einsum("pajb,jb->pa", law.couplings, factors.prod(axis=1))
    places = range(factors.shape[1])
    # Products of the other edges, without dividing by a strength that may be zero.
    others = [math.prod((factors[:, m] for m in places if m != k), start=xp.ones_like(taken)) for k in places]
    return xp.einsum("eph,hpm->em", law.passes, xp.stack(others) * (law.strengths - taken))


def integrated(
    law: RaceLaw, start: Float[np.ndarray, "edge mode"], times: Float[np.ndarray, " time"]
) -> Float[np.ndarray, "time path mode"]:
    """B of every path at `times`, by SciPy, which needs no compilation."""

    def field(_: float, flat: Float[np.ndarray, " entry"]) -> Float[np.ndarray, " entry"]:
        return np.asarray(slope(law, flat.reshape(start.shape), np)).ravel()

    ends = (0.0, max(float(times[-1]), 1e-12))
    solution = solve_ivp(field, ends, start.ravel(), "LSODA", np.minimum(times, ends[1]), rtol=1e-9, atol=1e-13)
    return np.asarray(_factors(np, law.edges, solution.y.T.reshape(-1, *start.shape))).prod(axis=-2)


def coupling_defect(bases: PathBases, strengths: Float[np.ndarray, "time path mode"]) -> float:
    """Largest part of a bracket that is not U_p diag(…) V_pᵀ, relative to all of it, along a solution.

    Off-diagonal parts couple modes, and parts outside U_p rotate the output vectors. As long as both vanish along the
    solution, it is exact gradient flow.
    """
    worst = 0.0
    for p in bases.open:
        left = bases.left[p]
        terms = np.einsum("job,tjb,jbc->toc", bases.landing(p), strengths, bases.variances[:, p], optimize=True)
        off = terms - left * np.einsum("oc,toc->tc", left, terms)[:, None, :]
        size = np.linalg.norm(bases.strengths[p]) + np.max(np.linalg.norm(terms, axis=(1, 2)))
        worst = max(worst, float(np.max(np.linalg.norm(off, axis=(1, 2))) / size) if size > 0 else 0.0)
    return worst
