"""The clock of a race: closed forms of its pathways against the laws that they solve."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import festina as fs
from festina._formulas import race_clock


def integrated(law, begin, clock):
    return solve_ivp(lambda _, b: law(b), (0, clock), begin, rtol=1e-12, atol=1e-15).y[:, -1].prod()


@pytest.mark.parametrize("sharing", [1, 2, 7])
def test_pathways_are_the_integrals_of_their_laws(sharing):
    two = integrated(lambda b: [0.7 * sharing * b[1], 0.7 * b[0]], [0.02, 0.01], 2.0)
    np.testing.assert_allclose(race_clock.two_layers(2.0, 0.02, 0.01, 0.7, sharing), two, rtol=1e-8)
    clock = 0.9 * float(race_clock.last_moment(0.1, sharing, 3))
    law = lambda b: 3 * np.array([b[1] * b[2], sharing * b[0] * b[2], b[0] * b[1]])  # noqa: E731
    np.testing.assert_allclose(
        race_clock.three_layers(clock, 0.1, sharing, 3), integrated(law, [0.1] * 3, clock), rtol=1e-8
    )


def test_rivals_end_where_their_race_over_time_does():
    reach = np.array([[1.0], [0.6]])
    in_time = race_clock.over_time(
        lambda clock: race_clock.two_layers(clock[..., None, :], 0.01, 0.01, reach),
        np.array([1.2]),
        np.array([0.0, 60.0]),
        reach,
    )
    ends = race_clock.finals(
        lambda clock: race_clock.two_layers(clock, 0.01, 0.01, reach[:, 0]), 1.2, 1 - np.log(0.01), reach[:, 0]
    )
    np.testing.assert_allclose(in_time[-1, :, 0], ends, rtol=1e-6)


def test_private_pathways_stop_growing_to_first_order_in_the_start():
    limit = float(race_clock.private_growth(4, 2))

    def gap(start):
        late = float(race_clock.last_moment(start, 4, 2))
        pair = race_clock.finals(
            lambda clock: race_clock.three_layer_rivals(np.array([clock]), start, np.array([4]), np.array([2]))[:, 0],
            1.0,
            late,
        )
        return pair[1] / start**3 / limit - 1

    assert 0.9 < np.log2(gap(2e-4) / gap(1e-4)) < 1.1


# The steps of descent to half of the first mode in the routing network of [saxe_slides], of singular value √185, from
# layers of 0.08 at rate 0.02 on a loss that is a mean over 28 entries.
@pytest.mark.parametrize(
    ("domains", "pairs", "epochs"),
    [(1, 1, 625), (2, 1, 491), (4, 1, 378), (7, 1, 302), (10, 1, 260), (7, 2, 151), (7, 4, 76), (7, 7, 44)],
)
def test_the_routing_network_learns_sooner_the_more_pairs_share_it(domains, pairs, epochs):
    strength = np.sqrt(185)
    shared = lambda clock: race_clock.three_layers(clock, 0.08, domains, pairs)  # noqa: E731
    half = race_clock.finish(shared, strength / 2, float(race_clock.last_moment(0.08, domains, pairs)))
    time = quad(lambda clock: 1 / (strength - shared(clock)), 0, half)[0]
    assert np.ceil(time * 28 / (2 * 0.02)) == epochs


def test_neural_race_integrates_the_races_that_the_clock_solves():
    """The clock knows one number per race; the theory integrates the strengths of all edges."""
    times, reach = np.linspace(0, 20, 11), np.array([[1.0], [0.6]])
    x = np.ones((1, 2)) * reach[:, 0]
    net = fs.nets.Gated(
        {"strong": 1, "weak": 1, "one": 2, "other": 2, "y": 1},
        [("strong", "one"), ("one", "y"), ("weak", "other"), ("other", "y")],
    )
    setup = fs.Setup(fs.tasks.from_arrays(x, np.ones((1, 1))), net, fs.inits.Decoupled(0.1), times=times)
    strengths = fs.solve(setup, "NeuralRace")["map"][:, 0]
    expected = race_clock.rivals_over_time(np.ones(1), reach, 0.1, times)[..., 0]
    np.testing.assert_allclose(strengths, expected, rtol=1e-6)
