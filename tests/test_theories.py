"""The laws of every theory, each written once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs
from festina._foundation.nouns import noun
from festina._reporting import references
from festina._verbs.covering import coverage, members

THEORIES = sorted(members().items())
every_theory = pytest.mark.parametrize("theory", [t() for _, t in THEORIES], ids=[n for n, _ in THEORIES])


def every(kinds):
    chosen = [(n, t) for n, t in THEORIES if t.kind in kinds]
    return pytest.mark.parametrize("theory", [t() for _, t in chosen], ids=[n for n, _ in chosen])


every_closed_form = every({"exact", "limit"})
every_theory_of_the_flow = every({"exact", "reduction"})  # a limit has an error of its own, see its rate
# Of a gated net the map is one of gated inputs, and there are modes of its paths alone.
ungated = [(n, t) for n, t in THEORIES if "modes" in t.readouts]
every_theory_of_ungated_nets = pytest.mark.parametrize("theory", [t() for _, t in ungated], ids=[n for n, _ in ungated])
BREAKS = ("another net", "misaligned weights", "another rule", "another clock", "large steps", "another world")
# A theory of any net on any task has only the rule to refuse.
INDIFFERENT = {
    "FrozenKernel": {"another net", "misaligned weights", "another world"},
    "PathDynamics": {"misaligned weights", "another world"},
    "ShallowMap": {"misaligned weights", "another world"},  # of docs/how-to/adding-parts.md, once moved in
}


def every_break(indifferent):
    """Every theory with every way to break its example that it has to refuse, or to which it is indifferent."""
    chosen = [(n, t, kind) for n, t in THEORIES for kind in BREAKS if (kind in INDIFFERENT.get(n, ())) == indifferent]
    return pytest.mark.parametrize(
        ("theory", "kind"), [(t(), kind) for _, t, kind in chosen], ids=[f"{n}-{kind}" for n, _, kind in chosen]
    )


@noun
class PerStep(fs.rules.GradientDescent):
    """Gradient descent whose unit of time is a step, whatever its rate."""

    def steps(self, times):
        return np.round(times)

    def time_of_steps(self, steps):
        return steps * 1.0


def broken(setup: fs.Setup, kind: str) -> fs.Setup:
    """The setup with one property taken away."""
    if kind == "another net":
        return setup.replace(net=fs.nets.MLP(hidden=7), init=fs.inits.SmallRandom(0.1))
    if kind == "misaligned weights":
        weights = [w + 0.1 * np.random.default_rng(5).normal(size=w.shape) for w in setup.weights(0)]
        return setup.replace(init=fs.inits.Given(weights))
    if kind == "another rule":
        return setup.replace(rule=fs.rules.Adam(0.01))
    if kind == "another clock":
        return setup.replace(rule=PerStep(0.01))
    if kind == "large steps":
        return setup.replace(rule=fs.rules.GradientDescent(1.0), times=[10.0])
    x = np.random.default_rng(3).normal(size=(50, setup.task.d_in)) @ np.diag(np.arange(1.0, setup.task.d_in + 1))
    y = x @ np.random.default_rng(4).normal(size=(setup.task.d_in, setup.task.d_out))
    labels = {name: np.resize(values, len(x)) for name, values in (setup.task.labels or {}).items()}
    return setup.replace(task=fs.tasks.from_arrays(x, y, labels=labels or None))


@every_theory
def test_its_assumptions_hold_on_its_example(theory):
    assert all(a.holds for a in theory.assumptions(theory.example(), 0))
    assert coverage(theory.example(), theory).holds


@every_break(indifferent=True)
def test_it_covers_a_setup_that_breaks_what_it_does_not_assume(theory, kind):
    assert fs.solve(broken(theory.example(), kind), theory).source == type(theory).__name__


@every_break(indifferent=False)
def test_it_refuses_a_setup_outside_its_assumptions_with_name_and_number(theory, kind):
    setup = broken(theory.example(), kind)
    failed = coverage(setup, theory).failed
    assert failed
    with pytest.raises(fs.NoTheory) as refusal:
        fs.solve(setup, theory)
    for assumption in failed:
        assert assumption.name in str(refusal.value)
        assert assumption.needed in str(refusal.value)
        assert str(assumption) in str(refusal.value)


@every_closed_form
def test_the_derivative_of_the_closed_form_is_the_field(theory, double):
    setup = theory.example()
    constants = theory.constants(setup, 0)
    times = jnp.asarray(setup.times[1:])

    def at(time):
        return jax.tree.map(lambda leaf: leaf[0], theory.states(constants, time[None]))

    state, speed = jax.vmap(lambda t: jax.jvp(at, (t,), (jnp.ones_like(t),)))(times)
    wanted = jax.vmap(lambda s: theory.field(constants, s))(state)
    for slope, field in zip(jax.tree.leaves(speed), jax.tree.leaves(wanted), strict=True):
        # Rounding of a difference of two terms of the size of the fastest speed.
        np.testing.assert_allclose(slope, field, rtol=1e-9, atol=1e-12 * np.abs(field).max())


@every_theory_of_the_flow
def test_it_starts_where_the_network_starts(theory):
    setup = theory.example().replace(times=[0.0], rule=fs.rules.GradientDescent(0.01))
    predicted = fs.solve(setup, theory)
    trained = fs.simulate(setup, observe=[name for name in predicted if name in ("loss", "map", "modes")])
    for name in trained:
        np.testing.assert_allclose(trained[name][0], predicted[name], rtol=1e-10, atol=1e-12)


@every_theory
def test_training_approaches_it_at_the_stated_rate(theory):
    errors = []
    for value in theory.approach.values:
        setup = theory.example_at(value)
        comparison = fs.compare(fs.solve(setup, theory), fs.simulate(setup, observe=["map"]))
        errors.append(comparison.error("map"))
    knobs = np.log(theory.approach.values)
    order = np.diff(np.log(errors)) / np.diff(knobs)
    assert abs(order[-1] - theory.approach.order) < 0.1, (errors, order)
    # The order tends to its limit, it does not pass through it by accident.
    assert abs(order[-1] - theory.approach.order) <= abs(order[0] - theory.approach.order) + 0.02


@every_theory_of_the_flow
def test_it_agrees_with_gradient_flow_as_far_as_the_flow_is_integrated(theory):
    example = theory.example()
    setup = example.replace(times=example.times[-1:] / 3)  # one long stretch, so that the tolerance sets the steps
    predicted = fs.solve(setup, theory)
    errors = []
    for rtol in (1e-4, 1e-7, 1e-10):
        flow = fs.simulate(
            setup.replace(rule=fs.rules.GradientFlow(rtol=rtol, atol=rtol * 1e-4)), observe=["map", "loss"]
        )
        errors.append(fs.compare(predicted, flow).error("map"))
    assert errors[2] < 1e-2 * errors[0]
    assert errors[2] < 1e-7


@every_theory
def test_it_jits_vmaps_and_has_gradients_in_the_numbers_of_a_setup(theory, double):
    setup = theory.example()
    times = jnp.asarray([0.5, 3.0, 20.0])

    def final_loss(setup):
        constants = theory.constants(setup, 0)
        return theory.readouts["loss"].read(constants, theory.states(constants, times))[-2]

    def scaled(factor):
        init = jax.tree.map(lambda leaf: factor * leaf, setup.init)
        return final_loss(
            setup.replace(init=init) if not isinstance(factor, jax.core.Tracer) else _with_init(setup, init)
        )

    plain = scaled(1.0)
    assert np.allclose(jax.jit(scaled)(1.0), plain, rtol=1e-9)
    factors = jnp.asarray([0.5, 1.0, 2.0])
    many = jax.vmap(scaled)(factors)
    assert np.allclose(many[1], plain, rtol=1e-9)
    assert len(np.unique(np.round(np.asarray(many), 12))) == 3
    slope = jax.grad(scaled)(1.0)
    step = 1e-4
    assert np.allclose(slope, (scaled(1 + step) - scaled(1 - step)) / (2 * step), rtol=1e-4)


def _with_init(setup, init):
    leaves, structure = jax.tree.flatten(setup)
    old = jax.tree.leaves(setup.init)
    replaced = iter(jax.tree.leaves(init))
    return jax.tree.unflatten(structure, [next(replaced) if any(leaf is o for o in old) else leaf for leaf in leaves])


@every_theory
def test_it_is_finite_at_the_start_and_very_late(theory):
    predicted = fs.solve(theory.example().replace(times=[0.0, 1e-12, 1.0, 1e3, 1e4]), theory)
    for name in predicted:
        assert np.isfinite(predicted[name]).all(), name


@every_theory
def test_its_readouts_have_their_axes_and_agree_with_each_other(theory):
    setup = theory.example()
    predicted = fs.solve(setup, theory)
    data = predicted.to_xarray()
    assert data.sizes["time"] == len(setup.times)
    task = setup.lifted().task
    error = predicted["map"] - task.target()
    excess = 0.5 * np.einsum("toi,ij,toj->t", error, task.cov_x, error)
    np.testing.assert_allclose(predicted["loss"], task.floor() + excess, atol=1e-12)
    if "outputs" in predicted:
        missed = 0.5 * np.mean(np.sum((predicted["outputs"] - setup.task.y) ** 2, axis=2), axis=1)
        np.testing.assert_allclose(predicted["loss"], missed, atol=1e-12)


@every_theory_of_ungated_nets
def test_its_outputs_and_modes_are_those_of_its_map(theory):
    setup = theory.example()
    predicted = fs.solve(setup, theory)
    np.testing.assert_allclose(
        predicted["outputs"], np.einsum("toi,si->tso", predicted["map"], setup.task.x), atol=1e-12
    )
    np.testing.assert_allclose(predicted["modes"], setup.modes(0).strengths(predicted["map"]), atol=1e-12)


@every_theory
def test_it_cites_equations_that_resolve(theory):
    text = sys.modules[type(theory).__module__].__doc__
    cited = dict(re.findall(r"\[(\w+), ([^\]]+)\]", text))
    assert cited
    assert set(theory.reference) <= set(references.entries())
    assert set(cited) <= set(references.entries())
    assert any("eq." in where for where in theory.reference.values())
    for heading in ("Symbols:", "Convention:"):
        assert heading in text


# Of every theory: the precision of a trace in float32, and what is measured after it.
TRACED = """
    import json
    import jax, festina as fs
    from festina._verbs.covering import coverage, members

    after = {}
    for name, member in members().items():
        theory = member()
        setup = theory.example()

        def loss(factor):
            gated = setup.net.has_paths  # lifted on a task that is known
            scaled = jax.tree.map(lambda leaf: factor * leaf, setup.init if gated else setup)
            scaled = setup.replace(init=scaled) if gated else scaled
            constants = theory.constants(scaled, 0)
            return theory.readouts["loss"].read(constants, theory.states(constants, scaled.times))

        dtype = str(jax.jit(loss).trace(1.0).out_info.dtype)  # what is left behind is left by tracing
        measured = {a.name: a.measured for a in coverage(setup, theory).assumptions}
        after[name] = {"dtype": dtype, "measured": measured}
    print(json.dumps(after))
"""


@pytest.fixture(scope="session")
def after_float32():
    """What one fresh process measures on the example of every theory, each after a trace in float32."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(TRACED)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@every_theory
def test_a_float32_trace_leaves_float64_answers_as_they_were(theory, after_float32):
    after = after_float32[type(theory).__name__]
    assert after["dtype"] == "float32"
    expected = {a.name: a.measured for a in coverage(theory.example(), theory).assumptions}
    assert after["measured"].keys() == expected.keys()
    for name, measured in after["measured"].items():
        if not isinstance(expected[name], str):
            assert abs(measured - expected[name]) < max(1e-13, 1e-6 * expected[name]), name


def test_the_rule_of_choice():
    balanced = fs.theories.AlignedModes.example()
    holding = [entry for entry in fs.covering(balanced) if entry.holds]
    # Exact before reductions before limits; then the one that assumes more.
    known = ["AlignedModes", "UnbalancedModes", "BalancedRiccati", "AlignedChains", "SmallRandomModes"]
    assert [entry.name for entry in holding if entry.name in known] == known
    assert fs.solve(balanced).source == holding[0].name
    assert fs.solve(fs.theories.AlignedChains.example()).source == "AlignedChains"


def test_no_theory_lists_all_best_first_with_numbers():
    setup = broken(fs.theories.AlignedModes.example(), "misaligned weights")
    with pytest.raises(fs.NoTheory) as refusal:
        fs.solve(setup)
    text = str(refusal.value)
    assert text.index("AlignedChains") < text.index("AlignedModes")
    for entry in fs.covering(setup):
        for assumption in entry.assumptions:
            assert str(assumption) in text


def test_a_forced_theory_says_what_fails():
    setup = broken(fs.theories.AlignedModes.example(), "misaligned weights")
    forced = fs.solve(setup, "AlignedModes", strict=False)
    assert "aligned: measured" in forced.provenance["note"]
    assert "outside its assumptions" in repr(forced)


@pytest.mark.parametrize("spelling", ["AlignedModes", fs.theories.AlignedModes, fs.theories.AlignedModes()])
def test_a_theory_is_taken_by_name_class_or_instance(spelling):
    assert fs.solve(fs.theories.AlignedModes.example(), theory=spelling).source == "AlignedModes"


@pytest.mark.parametrize(
    ("start", "lost"),
    [
        ([0.1, -0.1, 0.1, 0.1], ["2"]),
        ([0.1, 0.1, 0.0, 0.1], ["3"]),
        ([0.1] * 4, []),
        ([-0.1] * 4, ["1", "2", "3", "4"]),
    ],
)
def test_a_start_that_never_learns_a_mode_says_which_and_why(start, lost):
    setup = fs.Setup(fs.tasks.hierarchy(2), fs.nets.DeepLinear(5), fs.inits.Aligned(start), times=[1e4])
    for theory in ("AlignedModes", "UnbalancedModes", "BalancedRiccati"):
        predicted = fs.solve(setup, theory)
        note = predicted.provenance["note"]
        assert re.findall(r"(\d) \(s = ", note) == lost, theory
        assert ("never learned" in note) == bool(lost)
        learned = predicted["modes"][0] > 0.5 * setup.task.modes().targets()
        assert [str(k + 1) for k in np.flatnonzero(~learned)] == lost


def test_unknown_theories_suggest_the_nearest():
    with pytest.raises(fs.UnknownName, match="did you mean 'AlignedModes'"):
        fs.solve(fs.theories.AlignedModes.example(), theory="AlignedMode")
