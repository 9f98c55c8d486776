"""The laws of every theory, each written once."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs
from festina import _references
from festina._solve import members

THEORIES = sorted(members().items())
every_theory = pytest.mark.parametrize("theory", [t() for _, t in THEORIES], ids=[n for n, _ in THEORIES])


def every(kinds):
    chosen = [(n, t) for n, t in THEORIES if t.kind in kinds]
    return pytest.mark.parametrize("theory", [t() for _, t in chosen], ids=[n for n, _ in chosen])


every_closed_form = every({"exact", "limit"})
every_theory_of_the_flow = every({"exact", "reduction"})  # a limit has an error of its own, see its rate
# A theory of any net on any world has only the rule to refuse.
INDIFFERENT = {
    "FrozenKernel": {"another net", "misaligned weights", "another world"},
    "PathDynamics": {"misaligned weights", "another world"},
    "ShallowMap": {"misaligned weights", "another world"},  # the theory of docs/extend.md, once it is moved in
}


def broken(setup: fs.Setup, kind: str) -> fs.Setup:
    """The setup with one property taken away."""
    if kind == "another net":
        return setup.replace(net=fs.nets.MLP(hidden=7), init=fs.inits.SmallRandom(0.1))
    if kind == "misaligned weights":
        weights = [w + 0.1 * np.random.default_rng(5).normal(size=w.shape) for w in setup.weights(0)]
        return setup.replace(init=fs.inits.Given(weights))
    if kind == "another rule":
        return setup.replace(rule=fs.rules.Adam(0.01))
    if kind == "large steps":
        return setup.replace(rule=fs.rules.GradientDescent(1.0), times=[10.0])
    x = np.random.default_rng(3).normal(size=(50, setup.task.d_in)) @ np.diag(np.arange(1.0, setup.task.d_in + 1))
    y = x @ np.random.default_rng(4).normal(size=(setup.task.d_in, setup.task.d_out))
    labels = {name: np.resize(values, len(x)) for name, values in (setup.task.labels or {}).items()}
    return setup.replace(task=fs.tasks.from_arrays(x, y, labels=labels or None))


@every_theory
def test_its_assumptions_hold_on_its_example(theory):
    assert all(a.holds for a in theory.assumptions(theory.example(), 0))
    assert fs.covering(theory.example())[type(theory).__name__].holds


@every_theory
@pytest.mark.parametrize("kind", ["another net", "misaligned weights", "another rule", "large steps", "another world"])
def test_it_refuses_a_setup_outside_its_assumptions_with_name_and_number(theory, kind):
    setup = broken(theory.example(), kind)
    if kind in INDIFFERENT.get(type(theory).__name__, ()):
        assert fs.solve(setup, theory).source == type(theory).__name__
        return
    failed = fs.covering(setup)[type(theory).__name__].failed
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
    one = lambda t: jax.tree.map(lambda leaf: leaf[0], theory.states(constants, t[None]))  # noqa: E731
    state, speed = jax.vmap(lambda t: jax.jvp(one, (t,), (jnp.ones_like(t),)))(times)
    wanted = jax.vmap(lambda s: theory.field(constants, s))(state)
    for seen, true in zip(jax.tree.leaves(speed), jax.tree.leaves(wanted), strict=True):
        # Rounding of a difference of two terms of the size of the fastest speed.
        np.testing.assert_allclose(seen, true, rtol=1e-9, atol=1e-12 * np.abs(true).max())


@every_theory_of_the_flow
def test_it_starts_where_the_network_starts(theory):
    setup = theory.example()
    predicted = fs.solve(setup.replace(times=[0.0]), theory)
    begun = fs.simulate(
        setup.replace(times=[0.0]), observe=[name for name in predicted if name in ("loss", "map", "modes")]
    )
    for name in begun:
        np.testing.assert_allclose(begun[name][0], predicted[name], rtol=1e-10, atol=1e-12)


@every_theory
def test_training_approaches_it_at_the_stated_rate(theory):
    errors = []
    for value in theory.approach.values:
        setup = theory.turned(value)
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
    task = setup.bound().task
    error = predicted["map"] - task.target()
    excess = 0.5 * np.einsum("toi,ij,toj->t", error, task.cov_x, error)
    np.testing.assert_allclose(predicted["loss"], task.floor() + excess, atol=1e-12)
    if "outputs" in predicted:
        missed = 0.5 * np.mean(np.sum((predicted["outputs"] - setup.task.y) ** 2, axis=2), axis=1)
        np.testing.assert_allclose(predicted["loss"], missed, atol=1e-12)
    if isinstance(setup.net, fs.nets.Gated):  # a map of gated inputs, and modes of its paths
        return
    np.testing.assert_allclose(
        predicted["outputs"], np.einsum("toi,si->tso", predicted["map"], setup.task.x), atol=1e-12
    )
    np.testing.assert_allclose(predicted["modes"], setup.modes(0).strengths(predicted["map"]), atol=1e-12)


@every_theory
def test_it_cites_equations_that_resolve(theory):
    text = sys.modules[type(theory).__module__].__doc__
    cited = dict(re.findall(r"\[(\w+), ([^\]]+)\]", text))
    assert cited
    assert set(theory.reference) <= set(_references.entries())
    assert set(cited) <= set(_references.entries())
    assert any("eq." in where for where in theory.reference.values())
    for heading in ("Symbols:", "Convention:"):
        assert heading in text


@every_theory
def test_a_float32_trace_leaves_float64_answers_as_they_were(theory):
    expected = {a.name: a.measured for a in fs.covering(theory.example())[type(theory).__name__].assumptions}
    code = f"""
        import jax, numpy as np, festina as fs
        theory = fs.theories.{type(theory).__name__}()
        setup = theory.example()

        def loss(factor):
            gated = isinstance(setup.net, fs.nets.Gated)  # bound to a task that is known
            scaled = jax.tree.map(lambda leaf: factor * leaf, setup.init if gated else setup)
            scaled = setup.replace(init=scaled) if gated else scaled
            constants = theory.constants(scaled, 0)
            return theory.readouts["loss"].read(constants, theory.states(constants, scaled.times))

        assert jax.jit(loss)(1.0).dtype == np.float32
        for assumption in fs.covering(setup)["{type(theory).__name__}"].assumptions:
            wanted = {expected}[assumption.name]
            if not isinstance(wanted, str):
                assert abs(assumption.measured - wanted) < max(1e-13, 1e-6 * wanted), assumption
    """
    done = subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_rule_of_choice():
    balanced = fs.theories.AlignedModes.example()
    ranked = fs.covering(balanced)
    # Exact before reductions before limits; then the one that assumes more.
    assert [entry.name for entry in ranked if entry.holds] == [
        "AlignedModes",
        "UnbalancedModes",
        "BalancedRiccati",
        "AlignedChains",
        "SmallRandomModes",
    ]
    assert fs.solve(balanced).source == "AlignedModes"
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
