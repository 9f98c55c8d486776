"""Three layers of which the middle one is shared: the law, its conserved number, and its half-time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from festina._formulas import race_clock, shared_layer


@pytest.mark.parametrize("sharing", [1, 2, 7])
def test_half_of_a_mode_is_learned_at_the_half_time(sharing):
    half = shared_layer.half_time(13.6, sharing, 0.08)
    outer, shared = shared_layer.layers(np.array([0.0, half, 20 * half]), np.array([13.6]), sharing, 0.08)
    np.testing.assert_allclose((outer**2 * shared)[0], [0.08**3, 6.8, 13.6], rtol=1e-7)
    np.testing.assert_allclose(sharing * outer**2 - shared**2, (sharing - 1) * 0.08**2, atol=1e-7)


@pytest.mark.parametrize("sharing", [1, 4])
def test_the_half_time_is_that_of_the_race_clock(sharing):
    learned = lambda clock: float(race_clock.three_layers(clock, 0.08, sharing))  # noqa: E731
    end = race_clock.finish(learned, 6.8, float(race_clock.last_moment(0.08, sharing)))
    wanted = quad(lambda clock: 1 / (13.6 - learned(clock)), 0, end)[0]
    np.testing.assert_allclose(shared_layer.half_time(13.6, sharing, 0.08), wanted, rtol=1e-6)


def test_the_slides_have_this_law():
    # Sum over 28 trained pairs of the mean over 28 entries, at 0, 100 and 200 epochs of rate 0.02 [saxe_slides].
    modes = np.sqrt([185, 41, 9, 9])
    outer, shared = shared_layer.layers(np.array([0, 100, 200]) * 0.02 * 4 / 14, modes, 7, 0.08)
    loss = np.sum((modes[:, None] - outer**2 * shared) ** 2, axis=0)
    np.testing.assert_allclose(loss, [243.973, 58.845, 17.905], atol=2e-3)
