"""The error of a theory on a setup: its deviation from gradient flow at every time, propagated along its path.

A theory with the weights W(t) misses the start by δ₀ = W_start − W(0), and the flow at later times by the residual
r = −∇L(W) − dW/dt. To first order the flow is at W + δ, with

    dδ/dt = −H(W) δ + r,      H the Hessian of the loss,

so that a small initial defect is judged by the size to which it grows: next to a saddle it grows like
e^(rate × time). Whatever a theory assumes (aligned layers, balance, white inputs, a frozen kernel), a violation of it
enters δ₀ or r. The rounding of the initial weights is added to δ₀, since float64 cannot resolve less.

The stated error is the largest of three: the difference between the predicted map (or outputs) and that of W + δ,
relative to the largest prediction; the same for the loss; and, for theories that know the layers, the δ of a layer
relative to that layer. `_followed_weights` evaluates W on a grid of times, and `_stiff` propagates δ from one time to
the next. Growth factors are right to a few per cent, which is enough for the size of an error.

`_growth_bound` is a cheaper bound, for cases in which δ need not be followed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import jax
import numpy as np

from .._setup.setup import Setup
from ..rules.base import Discrete
from ._followed_weights import FollowedError, FollowedTheory
from ._stiff import Vector
from .base import Theory


def certificate(theory: Theory, setup: Setup, seed: int, *, carried: Vector | None = None) -> FollowedError:
    """The error of what `theory` answers, against gradient flow from the weights of the setup.

    `carried` is an error of these weights that earlier tasks have left.
    """
    return _remembered("certificate", _of_theory, theory, setup, seed, carried)


def rounding(theory: Theory, setup: Setup, seed: int) -> FollowedError:
    """What rounding, of the start and at every later time, grows to along the path."""
    return _remembered("rounding", _of_rounding, theory, setup, seed, None)


def steps(theory: Theory, setup: Setup, seed: int, *, carried: Vector | None = None) -> FollowedError:
    """The error that finite steps add, to first order: gradient descent follows dW/dt = −∇L − (lr/2) H∇L.

    `carried` is the error of the initial weights that finite steps have left in earlier tasks.
    """
    return _remembered("steps", _of_steps, theory, setup, seed, carried)


def _remembered(
    name: str,
    compute: Callable[[FollowedTheory, float], FollowedError],
    theory: Theory,
    setup: Setup,
    seed: int,
    carried: Vector | None,
) -> FollowedError:
    lr = float(setup.rule.lr) if isinstance(setup.rule, Discrete) else 0.0
    given = None if carried is None else hashlib.sha256(carried.tobytes()).hexdigest()
    key = (name, theory, float(np.max(setup.times)), lr, given)

    def of_seed(seed: int) -> FollowedError:
        with jax.enable_x64(True):
            return compute(FollowedTheory(theory, setup, seed, carried), lr)

    return setup._remembered(key, seed, of_seed)


def _of_theory(followed: FollowedTheory, lr: float) -> FollowedError:
    missed = followed.start - followed.first.weights + followed.rounding(followed.start) + followed.integration()
    return followed.follow(
        missed, lambda point, at: point.descent + followed.frame_motion(at, at.weights) - at.speed, whole=True
    )


def _of_rounding(followed: FollowedTheory, lr: float) -> FollowedError:
    return followed.follow(
        followed.rounding(followed.start), lambda point, at: followed.fastest * followed.rounding(at.weights)
    )


def _of_steps(followed: FollowedTheory, lr: float) -> FollowedError:
    return followed.follow(followed.carried, lambda point, at: -lr / 2 * point.minus_hessian(point.descent))
