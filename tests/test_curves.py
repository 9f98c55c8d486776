"""Crossings of levels, half-times and orders of errors."""

from __future__ import annotations

import numpy as np
import pytest

from festina._formulas.curves import crossing, half_time, order, time_to_fraction


def test_a_crossing_lies_on_the_line_between_records():
    times = np.array([0.0, 1.0, 3.0])
    assert crossing(times, np.array([0.0, 1.0, 5.0]), 3.0) == 2.0
    assert crossing(times, -np.array([4.0, 2.0, 0.0]), -3.0) == 0.5


def test_a_curve_that_starts_above_its_level_crosses_it_at_once_and_one_that_stays_below_never():
    curves = np.array([[2.0, 3.0], [0.0, 0.5]])
    assert crossing(np.array([1.0, 2.0]), curves, 1.0).tolist() == [1.0, np.inf]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_time_may_be_any_axis_and_levels_broadcast_against_the_others(axis):
    times = np.linspace(0.0, 1.0, 11)
    slopes = np.array([[1.0, 2.0, 4.0], [0.5, 1.0, 2.0]])
    curves = np.moveaxis(slopes[..., None] * times, -1, axis)
    levels = np.array([0.25, 0.5, 1.0])
    np.testing.assert_allclose(crossing(times, curves, levels, axis=axis), levels / slopes, rtol=1e-14)
    np.testing.assert_allclose(half_time(times, curves, levels, axis=axis), levels / 2 / slopes, rtol=1e-14)


def test_the_order_is_the_exponent_of_the_knob():
    knob = 0.5 ** np.arange(4)
    errors = np.stack([3 * knob, 5 * knob**2])
    np.testing.assert_allclose(order(errors), [[1, 1, 1], [2, 2, 2]], rtol=1e-12)
    np.testing.assert_allclose(order(errors.T, axis=0), order(errors).T)


def test_a_loss_falls_in_its_logarithm_between_records():
    times, losses = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1e-2, 1e-4])
    assert time_to_fraction(times, losses, 1e-3) == pytest.approx(1.5)
    assert time_to_fraction(times, losses, 1e-5) == np.inf
