"""Gates that probe.torch records go into festina.gates as those of simulate do."""

from __future__ import annotations

import numpy as np
import pytest

import festina as fs
from festina import gates, probe

torch = pytest.importorskip("torch")
nn = torch.nn

TASK = fs.tasks.contextual(4, 3, "hierarchy")
X, Y = (torch.tensor(np.asarray(values)) for values in (TASK.x, TASK.y))
LR, STEPS, EVERY = 0.12, 600, 60
OBSERVE = ["gates", "outputs", "similarity"]
LAW = fs.inits.SmallRandom(0.1)
NETS = {"relu": fs.nets.MLP(9), "two leaky layers with biases": fs.nets.MLP((7, 6), "leaky_relu", bias=True)}


def as_torch(net, weights, dtype=torch.float64, act=None):
    """The network of a setup in torch, from the same weights."""
    act = act or {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU}[net.activation]
    layers = []
    for layer in weights:
        w, b = layer if isinstance(layer, tuple) else (layer, None)
        linear = nn.Linear(w.shape[1], w.shape[0], bias=b is not None, dtype=dtype)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(np.asarray(w)))
            if b is not None:
                linear.bias.copy_(torch.tensor(np.asarray(b)))
        layers += [linear, act()]
    return nn.Sequential(*layers[:-1])


def trained(model, steps=STEPS, x=X, y=Y, optimizer=None, scale=0.5, **options):
    """Gradient descent in torch, probed."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=LR)
    given = {"inputs": x, "targets": y, "lr": LR, "at": EVERY, "observe": OBSERVE, **options}
    with probe.torch(model, **given) as seen:
        for _ in range(steps):
            optimizer.zero_grad()
            (scale * ((model(x) - y) ** 2).sum(1).mean()).backward()
            optimizer.step()
    return seen.trajectory


@pytest.fixture(scope="module", params=list(NETS))
def both(request):
    """The same network, trained by torch under a probe and by simulate."""
    net = NETS[request.param]
    setup = fs.Setup(TASK, net, LAW, fs.rules.GradientDescent(LR), times=LR * np.arange(0, STEPS + 1, EVERY))
    return trained(as_torch(net, setup.weights(0))), gates.record(setup, 1, observe=["outputs", "similarity"])


def test_what_is_recorded_is_what_simulate_records(both, tmp_path):
    seen, simulated = both
    np.testing.assert_array_equal(gates.patterns(seen), gates.patterns(simulated))
    for name in ("unit_size", "loss", "outputs"):
        np.testing.assert_allclose(seen[name], simulated[name][0], rtol=1e-9, atol=1e-12)
    assert seen["loss"][-1] < 0.5 * seen["loss"][0]  # it has learned, and gates have switched
    assert (np.diff(gates.patterns(seen)[0].astype(int), axis=0) != 0).any()
    assert seen.setup.net == simulated.setup.net
    assert seen.setup.rule == simulated.setup.rule
    seen.save(tmp_path / "seen.nc")
    again = fs.Trajectory.load(tmp_path / "seen.nc")
    np.testing.assert_array_equal(gates.patterns(again), gates.patterns(simulated))
    np.testing.assert_array_equal(again.setup.weights(0)[-1][0], seen.setup.weights(0)[-1][0])


def test_reading_and_finding_agree_with_simulate(both):
    seen, simulated = both
    read, wanted = gates.purity(seen, task=TASK), gates.purity(simulated)
    assert read.kind.values.tolist() == wanted.kind.values.tolist()
    for name in wanted:
        np.testing.assert_allclose(read[name], wanted[name], atol=1e-9)
    for layer in range(1, 1 + len(simulated.setup.net.hidden)):
        found, expected = (gates.find(one, 3, layer=layer, task=TASK) for one in both)
        np.testing.assert_array_equal(found.gates, expected.gates)
        assert found.names == expected.names
        assert gates.find(seen, 3, layer=layer).names == ("gate 1", "gate 2", "gate 3")  # a probe knows no contexts


def test_the_exact_twin_has_the_recorded_outputs(both):
    seen, _ = both
    twin = gates.replay(seen)
    assert twin.error < 1e-12
    assert twin.flipped.max() == 0
    assert twin.note == ""


@pytest.mark.parametrize("both", ["two leaky layers with biases"], indirect=True)
def test_a_network_with_biases_has_no_frozen_twin(both):
    for one in both:
        with pytest.raises(fs.BadInput, match=r"gates of a net with biases"):
            gates.freeze(one, clusters=2, init=LAW)


@pytest.mark.parametrize("both", ["relu"], indirect=True)
def test_the_frozen_twin_is_that_of_the_simulated_network(both):
    seen, simulated = both
    frozen, wanted = gates.freeze(seen, clusters=2, init=LAW), gates.freeze(simulated, clusters=2)
    for name in ("raw_mean", "raw", "output_gap", "geometry"):
        np.testing.assert_allclose(frozen.errors[name], wanted.errors[name], rtol=1e-6, atol=1e-9)
    with pytest.raises(fs.BadInput, match=r"Given weights\n.*\n.*give init="):
        gates.freeze(seen, clusters=2)


def plain(dtype=torch.float32, act=nn.ReLU):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(X.shape[1], 5, bias=False), act(), nn.Linear(5, Y.shape[1], bias=False)).to(dtype)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(X.shape[1], 5, bias=False), nn.Linear(5, Y.shape[1], bias=False)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))


def test_float32_functions_and_a_network_that_was_trained_otherwise():
    x, y = X.float(), Y.float()
    seen = trained(plain(), 60, x, y, at=20)
    assert seen.setup.precision == "float32"
    assert gates.replay(seen, TASK).error < 1e-4
    functional = trained(Functional(), 60, x, y, at=20)  # what enters a ReLU is above 0 where what leaves it is
    assert gates.patterns(functional).shape == (1, 4, 5, len(X))
    assert functional.setup.net == seen.setup.net
    with pytest.raises(fs.BadInput, match=r"probe's record without similarity\n.*leaves the activations\n.*observe="):
        gates.freeze(functional, clusters=2, init=LAW)
    # A loss of another scale cannot be seen by the probe, but in what comes of it.
    other = gates.replay(trained(plain(), 60, x, y, at=20, scale=5.0))
    assert other.strayed > 0.01
    assert "strays from the record by" in repr(other)
    assert "½ mean |y − f|²" in other.note


REFUSED = {
    "no lr": ({"lr": None}, r"the probe was given no lr\n.*plain gradient descent.*\n.*give the probe lr=lr"),
    "adam": ({"rule": "Adam"}, r"it was trained by Adam\n"),
    "momentum": ({"rule": "momentum"}, r"it was trained by SGD with momentum\n"),
    "other rate": ({"rule": "half"}, r"SGD made steps of rate 0.06, and the probe was given lr = 0.12\n"),
    "a part": ({"rule": "part"}, r"some of its weights were not trained\n"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_without_a_known_rule_gates_are_read_and_not_replayed(case):
    options, words = REFUSED[case]
    options, model = dict(options), plain()
    optimizer = {
        "Adam": lambda: torch.optim.Adam(model.parameters(), lr=LR),
        "momentum": lambda: torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9),
        "half": lambda: torch.optim.SGD(model.parameters(), lr=LR / 2),
        "part": lambda: torch.optim.SGD(model[2].parameters(), lr=LR),
    }.get(options.pop("rule", ""), lambda: None)()
    seen = trained(model, 20, X.float(), Y.float(), optimizer, at=10, **options)
    assert len(gates.find(seen, 2, "as_printed")) == 2
    assert gates.purity(seen, task=TASK).share.sum("kind").values == pytest.approx(1)
    for twin in (gates.replay, lambda seen: gates.freeze(seen, clusters=2, init=LAW)):
        with pytest.raises(fs.BadInput, match="cannot be trained again: " + words):
            twin(seen)


NOT_CHAINS = {
    "tanh": (lambda: plain(act=nn.Tanh), {}, "it does not compute what its linear layers do with ReLUs"),
    "other weights": (
        lambda: nn.Sequential(nn.BatchNorm1d(X.shape[1]), *plain()),
        {},
        "its parameter '0.weight' belongs to no linear layer",
    ),
    "part": (
        lambda: nn.Sequential(*plain(), nn.ReLU(), nn.Linear(Y.shape[1], Y.shape[1], bias=False)),
        {"layers": "1"},
        "recorded layers are not all hidden layers",
    ),
    "half": (lambda: plain(torch.bfloat16), {}, "its weights are bfloat16"),
    "no targets": (plain, {"targets": None}, "the probe was given no targets"),
}


@pytest.mark.parametrize("case", NOT_CHAINS)
def test_gates_of_other_networks_have_patterns_and_words(case):
    make, options, words = NOT_CHAINS[case]
    given = {"inputs": X, "targets": Y, "observe": "gates", **options}
    with probe.torch(make(), **given) as seen:
        seen.step()
    assert gates.patterns(seen.trajectory).shape[0::3] == (1, len(X))
    for read in (gates.purity, gates.find, gates.replay, gates.freeze):
        with pytest.raises(
            fs.BadInput, match=rf"gates recorded by probe.torch: .*{words}(.|\n)*chain of linear layers"
        ):
            read(seen.trajectory)


def test_other_words():
    hidden = np.random.default_rng(0).normal(size=(3, len(X), 4))
    seen = probe.arrays([0, 1, 2], {"h": hidden}, observe="gates")
    np.testing.assert_array_equal(gates.patterns(seen)[0], np.moveaxis(hidden, 1, 2) > 0)
    with pytest.raises(fs.BadInput, match=r"gates recorded by probe.arrays: it sees activities alone\n"):
        gates.purity(seen)
    recorded = trained(plain(), 20, X.float(), Y.float(), at=10)
    with pytest.raises(fs.BadInput, match=r"samples without labels\n.*\n.*of a probe give it as task="):
        gates.purity(recorded)
    with pytest.raises(fs.BadInput, match=r"other samples than the gates were recorded on"):
        gates.purity(recorded, task=fs.tasks.contextual(4, 2, "hierarchy"))
    with pytest.raises(
        fs.BadInput, match=r"clusters = None for a network .* Given\n?.*\n.*\n.*gates.elbow\(trained, init="
    ):
        gates.find(recorded, None, "as_printed")
