"""Updates of wide layers are held as thin factors where samples are few; nothing may be seen of it."""

import numpy as np
import pytest

import festina as fs
from festina._foundation.nouns import noun
from festina._setup.loss import evidence_of
from festina._training import marks, thin_factors
from festina._training.choice import descent_for

STEPS = (0, 1, 2, 11, 12, 13, 25, 300)  # around the ends of blocks
LR = 0.02
SLOPES = {
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    # One of the two points is at 0, where all units begin, and are off.
    "leaky_relu": (lambda z: np.where(z > 0, z, 0.01 * z), lambda z: np.where(z > 0, 1.0, 0.01)),
}


@noun
class Plain(fs.nets.MLP):
    """An MLP that is trained as any net is."""


@pytest.fixture(autouse=True)
def small_nets_too(monkeypatch):
    monkeypatch.setattr(thin_factors, "FEWEST_WEIGHTS", 0)


def setup(net, steps=STEPS, lr=LR, task=None, gain=1.0):
    rule, task = fs.rules.GradientDescent(lr), task or fs.tasks.two_point()
    return fs.Setup(task, net, fs.inits.Xavier(gain), rule, times=np.array(steps) * lr)


def is_thin(work):
    evidence = evidence_of(work.net, work.task, full_batch=work.rule.full_batch)
    return descent_for(work.net, evidence, work.rule) is thin_factors.ThinFactors


def by_hand(work, last):
    """Loss and activities of the hidden layers at every step of plain descent in NumPy."""
    net, x, y = work.net, np.asarray(work.task.x), np.asarray(work.task.y)
    act, slope = SLOPES[net.activation]
    layers = [layer if net.bias else (layer, np.zeros(len(layer))) for layer in work.weights(0)]
    layers = [[np.array(w), np.array(b)] for w, b in layers]
    losses, found = [], []
    for _ in range(last + 1):
        inputs, before = [x], []
        for number, (w, b) in enumerate(layers):
            before.append(inputs[-1] @ w.T + b)
            h = act(before[-1]) + (inputs[-2] if net.skip and number > 1 else 0)
            inputs.append(h)
        error = before[-1] - y
        losses.append(0.5 * np.sum(error**2) / len(x))
        found.append(inputs[1:-1])
        passed = {number: np.zeros_like(h) for number, h in enumerate(inputs)}  # slopes in the inputs of layers
        for number in reversed(range(len(layers))):
            hidden = number < len(layers) - 1
            error = passed[number + 1] * slope(before[number]) if hidden else error / len(x)
            if hidden and net.skip and number > 1:
                passed[number - 1] += passed[number + 1]
            passed[number] += error @ layers[number][0]
            layers[number][0] -= work.rule.lr * error.T @ inputs[number]
            if net.bias:
                layers[number][1] -= work.rule.lr * error.sum(axis=0)
    return np.array(losses), found


@pytest.mark.parametrize(
    ("net", "steps", "task"),
    [
        (fs.nets.MLP((23,) * 5, "tanh", bias=True), STEPS, None),
        (fs.nets.MLP((24,) * 5, "tanh", skip=True), STEPS, None),
        (fs.nets.MLP((22, 22), "tanh"), STEPS, fs.tasks.regression(d_in=3, d_out=2, samples=4, seed=1)),
        (fs.nets.MLP((25,) * 5, "leaky_relu", bias=True), STEPS[:-1], None),
    ],
    ids=["biases", "skip", "one wide layer, four samples", "kinks"],
)
def test_equals_plain_descent(net, steps, task):
    work = setup(net, steps, task=task)
    assert is_thin(work)
    found = fs.simulate(work, 1, ["loss", "distance"], progress=False)
    losses, activities = by_hand(work, steps[-1])
    np.testing.assert_allclose(found["loss"][0], losses[list(steps)], rtol=1e-11, atol=1e-14)
    distance = [[np.sum((h[1] - h[0]) ** 2) for h in activities[step]] for step in steps]
    first = np.asarray(found["distance"])[0, :, :, 0]
    np.testing.assert_allclose(first, distance, rtol=1e-11, atol=1e-14)


def test_dropout_draws_the_same():
    thin, plain = (
        fs.simulate(setup(kind((26,) * 4, "tanh", bias=True, dropout=0.2), STEPS[:-1]), 2, "loss", progress=False)
        for kind in (fs.nets.MLP, Plain)
    )
    np.testing.assert_allclose(thin["loss"], plain["loss"], rtol=1e-11)


def test_divergence_is_seen_at_its_step():
    found = []
    for kind in (fs.nets.MLP, Plain):
        work = setup(kind((21,) * 4, "leaky_relu", bias=True), (100,), lr=5.0, gain=2.0)
        with pytest.raises(fs.Diverged, match="training diverged at step") as caught:
            fs.simulate(work, 1, "loss", progress=False)
        found.append(caught.value.step)
    assert abs(found[0] - found[1]) <= 1  # plain descent looks at every second step


def test_only_where_it_pays(monkeypatch):
    monkeypatch.undo()
    large, two = fs.nets.MLP((500,) * 20, "leaky_relu", bias=True), fs.tasks.two_point()
    assert is_thin(setup(large))
    assert not is_thin(setup(fs.nets.MLP((50,) * 20)))
    assert not is_thin(setup(fs.nets.MLP((500,) * 10 + (400,) * 10)))
    assert not is_thin(setup(fs.nets.MLP(5000)))
    assert not is_thin(setup(large, task=fs.tasks.regression(d_in=3, d_out=2, samples=16, seed=1)))
    for rule in (fs.rules.Adam(LR), fs.rules.SGD(LR, batch=1), fs.rules.GradientFlow()):
        assert not is_thin(fs.Setup(two, large, fs.inits.Xavier(1.0), rule, times=[1.0]))


def test_the_clock_decides_nothing(monkeypatch):
    # In float32 and with kinks, one block that ends elsewhere shows after a few hundred steps.
    work = setup(fs.nets.MLP((40,) * 12, "leaky_relu", bias=True), steps=(5, 601)).replace(precision="float32")
    assert is_thin(work)

    def trained(seconds):
        monkeypatch.setattr(marks, "BLOCK_SECONDS", seconds)
        cuts = []
        block = marks.Course.block

        def watched(course, descent):
            found = block(course, descent)
            cuts.append(int(course.done))
            return found

        with monkeypatch.context() as patch:
            patch.setattr(marks.Course, "block", watched)
            return fs.simulate(work, 1, ["loss", "distance"], progress=False), cuts

    (one, few), (other, many) = trained(100.0), trained(1e-4)
    assert len(many) > len(few)
    assert all(cut % thin_factors.STEPS == 0 for cut in many if cut not in (5, 601))
    for name in ("loss", "distance"):
        np.testing.assert_array_equal(one[name], other[name])
