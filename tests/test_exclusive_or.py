"""ReLU networks and two gatings on exclusive or, against runs that were made without this library."""

from __future__ import annotations

import numpy as np

from festina.experiments import the_fastest_gates_win

# Ten independent runs with the numbers of the paper: for every margin the steps to loss 0.2 of ReLU networks (mean, sd)
# and of linear and XoR gates, and the share of the weight in units for one point.
REFERENCE = {
    0.4: (65.42, 0.39, 122.0, 66.09, 1.00),
    0.8: (58.51, 0.24, 60.79, 59.87, 0.76),
    0.9: (54.72, 0.22, 54.12, 58.06, 0.41),
    1.6: (31.31, 0.19, 31.12, 45.82, 0.00),
}


def test_steps_and_units_are_those_of_independent_runs():
    seeds = 4
    data = the_fastest_gates_win.run(margins=tuple(REFERENCE), seeds=seeds, steps=160).data
    relu, sd, linear, xor, share = np.array(list(REFERENCE.values())).T
    spread = np.sqrt(1 / seeds + 1 / 10)
    assert (np.abs(data.relu_steps.mean("seed") - relu) < 4 * sd * spread).all()
    # ln a₀ of a pathway with n units has variance 2/n, and pathways are averaged.
    for gating, steps, s in (("linear", linear, data.margin / 2), ("XoR", xor, np.sqrt(2 + data.margin**2) / 4)):
        sd_of_steps = np.sqrt(2 / 128) / (2 * np.log1p(0.4 * s))
        assert (np.abs(data.gated_steps.sel(gating=gating).mean("seed") - steps) < 4 * sd_of_steps * spread).all()
    assert (np.abs(data.one_point_share.mean("seed") - share) < 0.1).all()
