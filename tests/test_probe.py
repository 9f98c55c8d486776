"""probe.torch: what it records against hand computations, and that training does not notice it."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

import festina as fs
from festina import _points, probe
from festina._random_states import random_states_kept

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional

X = torch.linspace(-1, 1, 12).reshape(4, 3).sin()
Y = torch.linspace(-2, 1, 8).reshape(4, 2).cos()


def seeded(make, seed=0):
    torch.manual_seed(seed)
    return make()


def plain():
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))


def rough():
    """All that a forward pass may do to a model: noise, running statistics, overwriting what it was given."""
    return nn.Sequential(
        nn.ReLU(inplace=True), nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.4),
        nn.Linear(8, 8), nn.LeakyReLU(inplace=True), nn.Dropout(0.2), nn.Linear(8, 2),
    )  # fmt: skip


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model, optimizer=None, steps=6, before=lambda: None):
    optimizer = optimizer or sgd(model)
    for _ in range(steps):
        before()
        optimizer.zero_grad()
        ((model(X.clone()) - Y) ** 2).mean().backward()
        optimizer.step()


def by_hand(model, modules, x=X):
    """Activities (sample, unit) of the first modules of a Sequential, in eval mode."""
    with torch.no_grad():
        return copy.deepcopy(model).eval()[:modules](x.clone()).reshape(len(x), -1).double().numpy()


def assert_same(one, two):
    """Bit for bit, and with the same names."""
    assert one.keys() == two.keys()
    for name in one:
        assert torch.equal(one[name], two[name]), name


FRESH = """
import hashlib, random, sys
import numpy as np, torch
np.random.seed(1), random.seed(2), torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps):
    for _ in range(steps):
        x = torch.tensor(np.random.normal(size=(4, 3)), dtype=torch.float32)
        optimizer.zero_grad()
        (model(x) - random.random()).pow(2).mean().backward()
        optimizer.step()

if "probe" in sys.argv:
    import festina as fs
    with fs.probe.torch(model, inputs=[[0.1, 0.2, 0.3], [0.3, -0.1, 0.9]], targets=[[0.0, 1.0], [1.0, 0.0]]) as seen:
        train(5)
    fs.Trajectory, fs.compare(seen.trajectory, seen.trajectory), seen.trajectory.to_xarray()
elif "import" in sys.argv:
    train(5)
    import festina.probe
else:
    train(5)
end = hashlib.sha1(b"".join(value.detach().numpy().tobytes() for value in model.parameters())).hexdigest()
print(end, np.random.random(), random.random(), float(torch.rand(())))
print("jax" in sys.modules)
"""


def test_the_first_use_in_a_fresh_process_is_not_noticed_either():
    """JAX draws from NumPy's global generator when it is loaded, which happens at the first use of a probe."""
    runs = {}
    for how in ("alone", "probe", "import"):
        done = subprocess.run([sys.executable, "-c", FRESH, how], capture_output=True, text=True, check=True)
        runs[how] = done.stdout.splitlines()
    assert runs["alone"][0] == runs["probe"][0] == runs["import"][0]
    assert [lines[1] for lines in runs.values()] == ["False", "True", "True"]


FORKS = """
import multiprocessing, os, sys, warnings
import numpy as np, torch
import festina as fs

if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    with fs.probe.torch(model, inputs=np.eye(3), targets=np.eye(3)[:, :2], observe=["distance", "gates"]) as seen:
        seen.step()
    seen.trajectory.provenance
    with warnings.catch_warnings(record=True) as after_probe:
        warnings.simplefilter("always")
        if not os.fork():
            os._exit(0)
    fs.probe.structure(np.eye(2), np.eye(2), np.eye(2), 0.1 * np.eye(2), kappa=1.0)
    with warnings.catch_warnings(record=True) as otherwise:
        warnings.simplefilter("always")
        process = multiprocessing.get_context("forkserver").Process(target=int)
        process.start()
        process.join()
    print([str(one.message) for one in after_probe], [str(one.message) for one in otherwise], process.exitcode)
"""


def test_a_probe_does_not_start_jax_and_its_warning_of_forks_can_be_avoided(tmp_path):
    """Data loaders fork their workers, of which JAX warns once it has been started."""
    (tmp_path / "forks.py").write_text(FORKS)
    done = subprocess.run([sys.executable, tmp_path / "forks.py"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] [] 0", done.stderr


def test_random_states_are_put_back_after_errors_too():
    def states():
        return str(np.random.get_state()), random.getstate(), torch.get_rng_state().tolist()  # noqa: NPY002

    def fails():
        with random_states_kept():
            np.random.random(), random.random(), torch.rand(3)  # noqa: NPY002
            raise ZeroDivisionError

    before = states()
    with pytest.raises(ZeroDivisionError):
        fails()
    assert states() == before


# What is recorded


def test_every_record_equals_a_hand_computation():
    model, pairs, history = seeded(plain), [(0, 1), (3, 1)], []
    names = [
        "distance",
        "output_distance",
        "output_alignment",
        "cosine",
        "loss",
        "mean_gap",
        "similarity",
        "outputs",
        "gates",
    ]
    with probe.torch(model, inputs=X, targets=Y, pairs=pairs, observe=names) as seen:
        train(model, before=lambda: history.append(copy.deepcopy(model)))
    history.append(model)
    got, y = seen.trajectory, Y.double().numpy()
    assert got.times.tolist() == list(range(7))
    first = [by_hand(history[0], n) for n in (2, 4)]
    for k, state in enumerate(history):
        hidden, f = [by_hand(state, n) for n in (2, 4)], by_hand(state, 5)
        for p, (i, j) in enumerate(pairs):
            dy, target = f[j] - f[i], y[j] - y[i]
            for n, h in enumerate(hidden):
                dh, start = h[j] - h[i], first[n][j] - first[n][i]
                np.testing.assert_allclose(got["distance"][k, n, p], dh @ dh, rtol=1e-12)
                cosine = dh @ start / np.linalg.norm(dh) / np.linalg.norm(start)
                np.testing.assert_allclose(got["cosine"][k, n, p], cosine, rtol=1e-12)
            np.testing.assert_allclose(got["output_distance"][k, p], dy @ dy, rtol=1e-12)
            np.testing.assert_allclose(got["output_alignment"][k, p], dy @ dy - dy @ target, rtol=1e-12)
            mean = (f[i] + f[j] - y[i] - y[j]) / 2
            np.testing.assert_allclose(got["mean_gap"][k, p], mean @ mean, rtol=1e-12)
        np.testing.assert_allclose(got["loss"][k], np.mean(np.sum((f - y) ** 2, axis=1)) / 2, rtol=1e-12)
        np.testing.assert_allclose(got["similarity"][k], [h @ h.T for h in hidden], rtol=1e-12)
        np.testing.assert_array_equal(got["outputs"][k], f)
        on = np.unpackbits(got["gates"][k], axis=-1, count=4).astype(bool)
        np.testing.assert_array_equal(on, np.concatenate(hidden, axis=1).T > 0)
    assert np.ptp(got["loss"]) > 0.1  # it has learned, so records differ
    assert np.ptp(got["cosine"]) > 1e-3
    x = X.double().numpy()
    assert got.provenance["input_gap"] == pytest.approx([((x[j] - x[i]) ** 2).sum() for i, j in pairs])
    assert got.provenance["target_gap"] == pytest.approx([((y[j] - y[i]) ** 2).sum() for i, j in pairs])
    assert got.coordinates["layer"].tolist() == ["1", "3"]
    assert got.coordinates["pair"].tolist() == ["0-1", "3-1"]
    assert got.coordinates["unit"][[0, 5, 6, 10]].tolist() == ["1:0", "1:5", "3:0", "3:4"]
    assert got.axes["distance"] == ("time", "layer", "pair")
    assert got.source == "probe.torch"
    assert got.provenance["layers"] == {"1": "Tanh 1", "3": "Tanh 3"}
    assert got.provenance["versions"]["torch"] == torch.__version__


def test_the_loss_of_two_inputs_is_that_of_their_mean_and_their_difference():
    model = seeded(plain)
    names = ["loss", "output_distance", "output_alignment", "mean_gap"]
    with probe.torch(model, inputs=X[:2], targets=Y[:2], observe=names) as seen:
        train(model)
    got = seen.trajectory
    w, p, gap = got["output_alignment"][:, 0], got["output_distance"][:, 0], got.provenance["target_gap"][0]
    np.testing.assert_allclose(got["loss"], got["mean_gap"][:, 0] / 2 + (w + (gap - p) / 2) / 4, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_convolutions_are_flattened_and_kept_before_they_are_overwritten(dtype):
    layers = [nn.Conv1d(1, 4, 2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8, 1)]
    model, x = seeded(lambda: nn.Sequential(*layers).to(dtype)), X[:, None].to(dtype)
    with probe.torch(model, ["0", "1"], inputs=x, observe=["distance", "representation"]) as seen:
        seen.step()
    for n, name in enumerate("01"):
        h = by_hand(model, n + 1, x)
        np.testing.assert_array_equal(seen.representations[name][0], h)
        np.testing.assert_array_equal(seen.trajectory[f"representation of {name}"][0], h)
        assert seen.trajectory["distance"][0, n, 1] == pytest.approx(((h[2] - h[0]) ** 2).sum(), rel=1e-12)
    assert (seen.representations["0"] < 0).any()
    assert (seen.representations["1"] >= 0).all()


def test_a_model_that_overwrites_its_input_sees_the_same_at_every_record():
    class Doubles(nn.Linear):
        def forward(self, x):
            return super().forward(x.mul_(2))

    model = seeded(lambda: nn.Sequential(Doubles(3, 5), nn.Tanh(), nn.Linear(5, 2)))
    given = X.clone()
    with probe.torch(model, inputs=given, observe="representation") as seen:
        seen.step()
        given.zero_()
        seen.step()
    wanted = model[0].weight.detach() @ (2 * X.T) + model[0].bias.detach()[:, None]
    for record in seen.representations["1"]:
        np.testing.assert_allclose(record, wanted.tanh().T.numpy(), rtol=1e-5)


def test_a_unit_that_does_not_tell_inputs_apart_has_no_direction():
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
    with torch.no_grad():
        model[0].bias.fill_(-100.0)
    with probe.torch(model, inputs=X[:2]) as seen:
        seen.step()
    assert (seen.trajectory["distance"] == 0).all()
    assert np.isnan(seen.trajectory["cosine"]).all()


def test_divergence_is_recorded_and_not_an_error():
    model = seeded(plain)
    with probe.torch(model, inputs=X, targets=Y) as seen:
        seen.step()
        with torch.no_grad():
            model[4].weight.fill_(float("inf"))
    assert np.isfinite(seen.trajectory["loss"]).tolist() == [True, False]


def test_only_the_numbers_are_kept():
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 20_000), nn.ReLU(), nn.Linear(20_000, 1)))
    with probe.torch(model, inputs=X, pairs=[(0, 1)], at=range(30)) as seen:
        for _ in range(30):
            seen.step()
    # A record is three numbers (distance, output, cosine); activities of the first record stay, for the cosine.
    activities = 4 * 20_000 * 8
    assert activities < len(pickle.dumps(seen._record)) < 1.02 * activities


# Training does not notice


@pytest.mark.parametrize("make", [plain, rough])
@pytest.mark.parametrize(
    "rule", [sgd, lambda model: torch.optim.Adam(model.parameters(), lr=0.05)], ids=["sgd", "adam"]
)
def test_weights_are_the_same_bit_for_bit_with_and_without_a_probe(make, rule):
    ends = []
    for probed in (False, True):
        model = seeded(make)
        x = X.clone()
        if probed:
            with probe.torch(model, inputs=x, targets=Y, layers=lambda name, module: True) as seen:
                train(model, rule(model))
            assert torch.equal(x, X)
            assert len(seen.trajectory.times) == 7
        else:
            train(model, rule(model))
        ends.append({**model.state_dict(), "random": torch.get_rng_state()})
    assert_same(*ends)


class Stateful(nn.Module):
    """Keeps state in all the places where modules keep it, whether it trains or not."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.act = nn.Tanh()
        self.register_buffer("runs", torch.zeros(()))
        self.register_buffer("last", torch.zeros(4))
        self.mean = torch.zeros(4)
        self.calls, self.seen, self.table, self.kept = 0, [], {}, None

    def forward(self, x):
        noise = float(torch.rand(())) + random.random() + np.random.rand()  # noqa: NPY002
        h = self.act(self.linear(x))
        self.runs += 1
        self.last = h[0].detach().clone()
        self.mean.data.mul_(0.9)
        self.mean.data.add_(h.detach().mean(0))
        self.calls += 1
        self.seen.append(noise)
        self.table[self.calls] = noise
        self.kept = h.detach()
        if self.calls == 2 and not hasattr(self, "second"):
            self.second = float(h.detach().sum())
        return (h * noise + self.mean + self.runs).sum(1, keepdim=True)


def test_buffers_attributes_and_random_states_are_put_back():
    ends = []
    for probed in (False, True):
        model = seeded(Stateful)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        optimizer = sgd(model)
        if probed:
            with probe.torch(model, "act", inputs=X, at=1):
                train(model, optimizer)
        else:
            train(model, optimizer)
        others = [model.calls, model.seen, model.table, model.second, model.kept.tolist(), model.mean.tolist()]
        ends.append((model.state_dict(), others, random.random(), np.random.rand()))  # noqa: NPY002
    assert_same(ends[0][0], ends[1][0])
    assert ends[0][1:] == ends[1][1:]
    assert ends[0][1][0] == 6


def test_flags_gradients_and_grad_mode_are_left_alone():
    model = seeded(rough)
    model[5].eval()
    flags = [module.training for module in model.modules()]
    assert len(set(flags)) == 2
    model(X.clone()).sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    statistics = copy.deepcopy(model[2].state_dict())
    with probe.torch(model, inputs=X) as seen:
        seen.step()
    assert [module.training for module in model.modules()] == flags
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True))
    assert_same(model[2].state_dict(), statistics)
    assert torch.is_grad_enabled()


def test_the_probe_may_look_between_forward_and_backward():
    model = seeded(rough)
    loss = model(X.clone()).sum()
    with probe.torch(model, inputs=X) as seen:
        seen.step()
    loss.backward()  # torch refuses this if a tensor saved for it has been written to


def test_autocast_of_the_loop_does_not_coarsen_the_record():
    model, ends = seeded(plain), []
    for enabled in (False, True):
        with torch.autocast("cpu", enabled=enabled), probe.torch(model, inputs=X) as seen:
            seen.step()
        ends.append(seen.trajectory["distance"][0])
    np.testing.assert_array_equal(*ends)


def hooks_of(model):
    counts = [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules()]
    from torch.optim.optimizer import _global_optimizer_pre_hooks

    return sum(counts), len(_global_optimizer_pre_hooks)


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
def test_errors_in_the_loop_leave_no_hooks_and_keep_the_record(kind):
    model = seeded(plain)
    seen = probe.torch(model, inputs=X)

    def interrupted():
        with seen:
            train(model, steps=3)
            assert hooks_of(model) == (0, 1)  # between records the model itself carries nothing
            assert seen.trajectory.times.tolist() == [0, 1, 2]  # also while it trains
            raise kind

    with pytest.raises(kind):
        interrupted()
    assert hooks_of(model) == (0, 0)
    assert seen.trajectory.times.tolist() == [0, 1, 2]
    train(model)
    assert seen.steps == 3


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
def test_errors_in_the_forward_pass_of_the_probe_restore_the_model(kind):
    model = seeded(rough)
    state = copy.deepcopy(model.state_dict())
    broken = False

    def fail(*_):
        if broken:
            raise kind

    model[6].register_forward_hook(fail)
    with probe.torch(model, inputs=X, at=[0]) as seen:
        broken = True
        randomness = torch.get_rng_state()
        with pytest.raises(kind):
            seen.step()
    assert hooks_of(model) == (1, 0)
    assert all(module.training for module in model.modules())
    assert torch.equal(torch.get_rng_state(), randomness)
    assert_same(model.state_dict(), state)


def test_the_model_can_be_pickled_during_and_after():
    model = seeded(rough)
    with probe.torch(model, inputs=X):
        train(model, steps=2)
        during = pickle.loads(pickle.dumps(model))
        train(model, sgd(model), steps=1)
    after = pickle.loads(pickle.dumps(model))
    assert_same(after.state_dict(), model.state_dict())
    assert not torch.equal(during[1].weight, after[1].weight)


# Counting


def test_automatic_and_manual_counting_agree():
    ends = []
    for by_hand_ in (False, True):
        model = seeded(plain)
        with probe.torch(model, inputs=X, at=2) as seen:
            train(model, before=seen.step if by_hand_ else lambda: None)
        ends.append(seen.trajectory)
    assert ends[0].times.tolist() == ends[1].times.tolist() == [0, 2, 4, 6]
    np.testing.assert_array_equal(ends[0]["distance"], ends[1]["distance"])
    assert [end.provenance["counted"] for end in ends] == ["optimiser steps", "probe.step()"]


@pytest.mark.parametrize(
    ("at", "times"),
    [
        (4, [0, 4]),
        (np.int64(3), [0, 3, 6]),
        (range(1, 6, 2), [1, 3, 5]),
        ([6, 0], [0, 6]),
        (np.geomspace(1, 100, 7), [1, 2, 5]),  # 1, 2.15, 4.64, 10, …
        ((step for step in (2, 2, 50)), [2]),
    ],
)
def test_steps_to_record(at, times):
    model = seeded(plain)
    with probe.torch(model, inputs=X, at=at) as seen:
        train(model, steps=6)
    assert seen.trajectory.times.tolist() == times


def test_only_optimisers_of_the_model_count_and_several_probes_work_at_once():
    one, two = seeded(plain, 1), seeded(plain, 2)
    with (
        probe.torch(one, inputs=X) as of_one,
        probe.torch(two, inputs=X) as of_two,
        probe.torch(one, inputs=X[:2]) as b,
    ):
        train(one, steps=2)
        train(two, steps=3)
        halves = [torch.optim.SGD(one[0].parameters(), 0.1), torch.optim.Adam(one[2].parameters(), 0.1)]
        for half in halves:
            half.step()
    assert (of_one.steps, of_two.steps, b.steps) == (4, 3, 4)
    assert of_one.trajectory.provenance["note"] == "every step of 3 optimisers counts (SGD, SGD, Adam)"
    assert "note" not in of_two.trajectory.provenance


def test_two_ways_to_count_are_refused():
    model = seeded(plain)
    words = r"probe.step\(\) after 1 steps .*\n.*one way to count.*\n.*first thing in every"
    with probe.torch(model, inputs=X) as seen:
        train(model, steps=1)
        with pytest.raises(fs.BadInput, match=words):
            seen.step()


def test_a_loop_that_was_not_seen_is_not_passed_off_as_the_start():
    model = seeded(plain)
    with probe.torch(model, inputs=X) as seen, torch.no_grad():
        model[0].weight.mul_(2)
    with pytest.raises(
        fs.BadInput, match=r"nothing recorded by this closed probe: 0 steps.*\n.*\n.*call probe.step\(\)"
    ):
        _ = seen.trajectory
    with pytest.raises(fs.BadInput, match=r"a step of a closed probe\n.*with.*\n.*with festina.probe.torch"):
        seen.step()
    with pytest.raises(fs.BadInput, match=r"a probe that is closed already\n.*one probe for each"), seen:
        pass


# Choosing layers


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.act = nn.Tanh()

    def forward(self, x):
        return x + self.act(self.linear(x))


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.readout = nn.Linear(4, 2)  # made first and run last
        self.embed = nn.Linear(3, 4)
        self.hidden = nn.ModuleList([Block(4) for _ in range(3)])

    def forward(self, x):
        x = self.embed(x)
        for block in self.hidden:
            x = block(x)
        return self.readout(x)


def layers_of(model, layers, **options):
    return probe.torch(model, layers, inputs=X, **options).layers


def test_all_ways_to_name_layers():
    model = seeded(Blocks)
    acts = tuple(f"hidden.{n}.act" for n in range(3))
    assert layers_of(model, None) == acts
    assert layers_of(model, "middle") == ("hidden.1.act",)
    assert layers_of(model, "embed") == ("embed",)
    assert layers_of(model, "hidden.*") == ("hidden.0", "hidden.1", "hidden.2")
    assert layers_of(model, "**.act") == acts
    assert layers_of(model, "hidden.[02].a?t") == (acts[0], acts[2])
    assert layers_of(model, ["hidden.2", "embed", "hidden.2"]) == ("hidden.2", "embed")
    assert layers_of(model, [model.embed, "hidden.1"]) == ("embed", "hidden.1")
    assert layers_of(model, model.hidden[1]) == ("hidden.1",)
    assert layers_of(model, lambda name, module: isinstance(module, Block)) == ("hidden.0", "hidden.1", "hidden.2")
    aliases = {"first": "hidden.0", "last": model.hidden[2], "f": lambda model, x: model.embed(x) ** 2}
    assert layers_of(model, aliases) == ("first", "last", "f")
    assert layers_of(model, None, functions={"f": lambda model, x: x}) == ("f",)
    assert layers_of(model, "embed", functions={"f": lambda model, x: x}) == ("embed", "f")


def test_linear_networks_and_output_nonlinearities():
    chain = nn.Sequential(nn.Linear(3, 5), nn.Dropout(), nn.Linear(5, 4), nn.Linear(4, 3), nn.Linear(3, 2))
    with probe.torch(chain, inputs=X) as seen:
        seen.step()
    assert seen.layers == ("0", "2", "3")
    assert seen.trajectory.provenance["note"].startswith("no activation modules: layers are modules with parameters")
    assert layers_of(chain, "middle") == ("2",)
    assert layers_of(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1), nn.Sigmoid()), None) == ("1",)


def test_the_list_of_layers_can_be_read():
    listed = probe.layers(seeded(plain), X)
    assert repr(listed) == (
        "0  Linear  (4, 6)\n1  Tanh    (4, 6)  *\n2  Linear  (4, 5)\n3  Tanh    (4, 5)  *\n4  Linear  (4, 2)\n"
        "* taken by layers=None"
    )
    assert listed[1] == ("1", "Tanh", ("(4, 6)",), True)
    assert repr(probe.layers(plain())) == "0  Linear\n1  Tanh\n2  Linear\n3  Tanh\n4  Linear"


class Reused(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        self.relu = nn.ReLU(inplace=True)
        self.idle = nn.Linear(1, 1)

    def forward(self, x):
        return self.three(self.relu(self.two(self.relu(self.one(x)))))


def test_a_module_that_is_used_several_times_needs_the_number_of_the_call():
    model = seeded(Reused)
    with pytest.raises(fs.BadInput, match=r"'relu' is called 2 times .*Reused\n.*which call.*\n.*layers=\"relu\[1\]\""):
        layers_of(model, "relu")
    with pytest.raises(fs.BadInput, match=r"call 2 of layer 'relu', which Reused calls 2 times\n.*from 0 to 1"):
        layers_of(model, {"late": ("relu", 2)})
    with torch.no_grad():
        first = model.one(X).relu()
        second = model.two(first).relu()
    for named, label in (
        ({"late": ("relu", 1)}, "late"),
        ("relu[1]", "relu[1]"),
        ({"b": ("relu", 1), "a": "one"}, "b"),
    ):
        with probe.torch(model, named, inputs=X, observe="representation") as seen:
            seen.step()
        np.testing.assert_array_equal(seen.representations[label][0], second.double().numpy())
    assert layers_of(model, None) == ("relu[0]", "relu[1]")
    tanh = nn.Tanh()  # one module by two names
    with pytest.raises(fs.BadInput, match=r"'3' is called 2 times"):
        layers_of(nn.Sequential(nn.Linear(3, 3), tanh, nn.Linear(3, 3), tanh, nn.Linear(3, 1)), "3")
    listed = repr(probe.layers(model, X))
    assert "relu   ReLU    (4, 4)  × 2 calls  *" in listed
    assert "idle   Linear  not called" in listed


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 5, batch_first=True)
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        h, (_, cell) = self.lstm(x[:, None])
        return {"y": self.out(h[:, 0]), "cell": cell}


def test_outputs_of_several_tensors():
    model = seeded(Recurrent)
    picked = dict(inputs=X, output=lambda out: out["y"], observe=["representation", "outputs"])
    with pytest.raises(fs.BadInput, match=r"'lstm' gives tuple of 2 \(Tensor, tuple\)\n.*one tensor.*\n.*select="):
        probe.torch(model, "lstm", **picked)
    with pytest.raises(fs.BadInput, match=r"Recurrent gives dict with 'cell'\n.*one tensor.*\n.*output="):
        probe.torch(model, "out", inputs=X, output=lambda out: {"cell": out["cell"]})
    with pytest.raises(fs.BadInput, match=r"shape \(1, 4, 5\), for 4 inputs\n.*sample as its first axis\n.*transpose"):
        probe.torch(model, "lstm", select={"lstm": lambda h: h[1][0]}, **picked)
    with pytest.raises(fs.BadInput, match=r"select\['lstm'\] = 7 does not fit: layer 'lstm' gives tuple of 2"):
        probe.torch(model, "lstm", select={"lstm": 7}, **picked)
    with pytest.raises(fs.UnknownName, match=r"unknown layer in select 'lst'(.|\n)*'lstm'"):
        probe.torch(model, "lstm", select={"lst": 0}, **picked)
    h, (last, _) = model.lstm(X[:, None])
    for select, wanted in ((0, h[:, 0]), (lambda out: out[1][0].transpose(0, 1), last[0])):
        with probe.torch(model, {"memory": "lstm"}, select={"memory": select}, **picked) as seen:
            seen.step()
        np.testing.assert_array_equal(seen.representations["memory"][0], wanted.detach().double().numpy())
    np.testing.assert_array_equal(seen.trajectory["outputs"][0], model(X)["y"].detach().double().numpy())
    # Nothing about outputs is asked, so they may be of any kind.
    assert layers_of(model, "out", observe="distance") == ("out",)


def test_functional_activations():
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 6), nn.Linear(6, 2)

        def forward(self, x):
            return self.two(F.relu(self.one(x), inplace=True))

    model = seeded(Functional)
    functions = {"hidden": lambda model, x: F.relu(model.one(x))}
    with probe.torch(model, inputs=X, targets=Y, functions=functions) as seen:
        train(model)
    with torch.no_grad():
        h = F.relu(model.one(X)).double().numpy()
    np.testing.assert_allclose(seen.trajectory["distance"][-1, 0, 0], ((h[1] - h[0]) ** 2).sum(), rtol=1e-12)
    assert "function" in seen.trajectory.provenance["layers"]["hidden"]


def test_attention_shows_its_parts():
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = seeded(lambda: nn.Sequential(nn.Unflatten(1, (3, 1)), nn.Linear(1, 8), encoder, nn.Flatten()))
    with probe.torch(model, ["2.linear1", "2"], inputs=X, observe="representation") as seen:
        seen.step()
    np.testing.assert_allclose(seen.representations["2"][0], by_hand(model, 4), atol=1e-6)
    assert seen.representations["2.linear1"].shape == (2, 4, 48)


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (
            "hiden.1",
            r"unknown layer 'hiden.1' of Blocks\n.*one of: readout, embed, hidden,.*\n.*did you mean 'hidden.1'",
        ),
        ("hiden.*", r"no layer fits the pattern 'hiden.\*' of Blocks\n.*one of.*\n.*did you mean"),
        (
            ["embed", "zzz"],
            r"unknown layer 'zzz'.*\n.*hidden.2.linear, hidden.2.act\n.*choose from probe.layers\(model\)",
        ),
        ({"a": "hidden.*"}, r"layers\['a'\] = 'hidden.\*' fits 3 modules\n.*one module for each alias"),
        ({"a": 3}, r"layers\['a'\] = 3\n.*a name, a module"),
        (nn.Linear(1, 1), r"a Linear that is no part of Blocks\n.*a submodule of the model"),
        (lambda name, module: False, r"a predicate that no module fulfils\n"),
        ([], r"layers = \[\]\n.*a name, a pattern"),
        ([3], r"layers holds 3\n.*names or modules"),
        (3, r"layers = 3\n.*a name, a pattern"),
    ],
)
def test_wrong_layers_are_refused_with_words(layers, words):
    with pytest.raises(fs.BadInput, match=words) as caught:
        layers_of(seeded(Blocks), layers)
    assert isinstance(caught.value, KeyError) == ("unknown layer" in words or "no layer fits" in words)


def test_layers_that_cannot_be_seen_are_refused_with_words():
    with pytest.raises(
        fs.BadInput, match=r"'idle' is not called when Reused runs in eval mode\n.*module\(x\).*\n.*functions="
    ):
        layers_of(seeded(Reused), "idle")
    with pytest.raises(fs.BadInput, match=r"Linear has no module that is a hidden layer\n.*\n.*probe.layers"):
        layers_of(nn.Linear(3, 2), None)
    with pytest.raises(fs.BadInput, match=r"two layers called 'embed'"):
        layers_of(seeded(Blocks), "embed", functions={"embed": lambda model, x: x})
    with pytest.raises(fs.BadInput, match=r"functions\['f'\] is Linear\n.*a function \(model, x\)"):
        layers_of(seeded(Blocks), None, functions={"f": nn.Linear(3, 2)})


# Other input


def test_models_that_cannot_be_probed_are_refused_with_words():
    with pytest.raises(fs.BadInput, match=r"model is function\n.*torch.nn.Module\n.*probe.jax"):
        probe.torch(lambda x: x, inputs=X)
    with pytest.raises(fs.BadInput, match=r"model is a DataParallel\n.*one device\n.*model.module"):
        probe.torch(nn.DataParallel(plain()), inputs=X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(plain())
    for model in (scripted, nn.Sequential(nn.Linear(3, 3), scripted)):
        with pytest.raises(fs.BadInput, match=r"ScriptModule\n.*run as Python.*\n.*before torch.jit.script"):
            probe.torch(model, inputs=X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(fs.BadInput, match=r"parameters without a shape\n.*seen one batch"):
        probe.torch(lazy, inputs=X)
    with pytest.raises(fs.BadInput, match=r"cannot be run on inputs of shape \(4, 2\): .*\n.*as the model takes them"):
        probe.torch(plain(), inputs=X[:, :2])

    class Clamps(nn.Linear):
        def forward(self, x):
            with torch.no_grad():
                self.weight.clamp_(-0.1, 0.1)
            return super().forward(x)

    with pytest.raises(fs.BadInput, match=r"forward pass of Sequential changes its parameter '0.weight'\n"):
        probe.torch(nn.Sequential(Clamps(3, 2), nn.Tanh(), nn.Linear(2, 1)), inputs=X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pairs": [(0, 4)]}, r"pair \(0, 4\) and 4 inputs\n.*from 0 to 3\n.*from 0"),
        ({"pairs": [(-1, 2)]}, r"pair \(-1, 2\) and 4 inputs"),
        ({"pairs": [(1, 1)]}, r"pair \(1, 1\)\n.*two different samples"),
        ({"pairs": [0, 1]}, r"pairs = \[0, 1\]\n.*pairs of sample numbers\n.*\[\(0, 1\), \(0, 2\)\]"),
        ({"pairs": [(0.0, 1.0)]}, r"pairs = .*\n.*pairs of sample numbers"),
        ({"inputs": X[[0, 1, 0]]}, r"inputs 0 and 2 of pair \(0, 2\) are the same\n.*two different inputs.*\n.*pairs="),
        ({"inputs": X[:1]}, r"1 input\n.*at least two"),
        ({"inputs": X.repeat(26, 1)}, r"104 inputs and no pairs\n.*more than 100 inputs\n.*give pairs="),
        ({"inputs": X * float("nan")}, r"inputs has 12 value\(s\) that are NaN"),
        ({"inputs": [X, X[:2]]}, r"inputs is list .*\n.*one tensor or array.*\n.*torch.stack"),
        ({"targets": Y[:3]}, r"3 targets for 4 inputs\n"),
        ({"targets": Y[:, :1]}, r"targets of shape \(4, 1\), and outputs of shape \(4, 2\)\n.*one target for every"),
        ({"observe": "loss"}, r"observe 'loss' without targets\n.*\n.*give targets="),
        ({"observe": "distances"}, r"unknown observable of a probe 'distances'(.|\n)*did you mean 'distance'"),
        ({"observe": []}, r"observe is empty"),
        ({"at": 0}, r"at = 0\n.*whole number >= 1"),
        ({"at": [-1, 2]}, r"at = \[-1, 2\]\n.*counted from 0.*\n.*at=range\(0, 6000, 20\)"),
        ({"at": range(0)}, r"at = range\(0, 0\)\n"),
        ({"at": "often"}, r"at = 'often'\n"),
    ],
)
def test_bad_input_is_refused_with_words(options, words):
    with pytest.raises(fs.BadInput, match=words):
        probe.torch(plain(), **{"inputs": X, **options})


def test_many_inputs_need_no_pairs_if_none_are_compared():
    with probe.torch(plain(), inputs=torch.rand(150, 3), observe=["gates", "outputs"]) as seen:
        seen.step()
    assert seen.trajectory["gates"].shape == (2, 11, 19)
    assert "pair" not in seen.trajectory.coordinates


def test_pairs_in_pieces_are_the_same(monkeypatch):
    found = []
    for numbers in (2**20, 20):
        monkeypatch.setattr(_points, "NUMBERS_AT_ONCE", numbers)
        with probe.torch(seeded(plain), inputs=X, targets=Y) as seen:
            seen.step()
        found.append(seen.trajectory)
    for name in found[0]:
        np.testing.assert_array_equal(found[0][name], found[1][name])
    assert found[0]["distance"].shape == (2, 2, 6)


def test_numbers_come_in_the_precision_of_the_model():
    model = seeded(plain).double()
    with probe.torch(model, inputs=X.numpy(), targets=Y.tolist()) as seen:
        seen.step()
    h = by_hand(model, 2, X.double())
    assert seen.trajectory["distance"][0, 0, 0] == pytest.approx(((h[1] - h[0]) ** 2).sum(), rel=1e-14)
    half = seeded(plain).bfloat16()
    with probe.torch(half, inputs=X, pairs=[(0, 1)]) as seen:
        seen.step()
    assert seen.trajectory["distance"][0, 0, 0] == pytest.approx(((h[1] - h[0]) ** 2).sum(), rel=0.1)
    words = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    tokens = torch.tensor([[1, 2], [3, 4]])
    assert probe.torch(words, inputs=tokens).layers == ("3",)


def test_what_is_saved_can_be_loaded(tmp_path):
    model = seeded(plain)
    names = ["distance", "loss", "gates", "representation"]
    with probe.torch(model, {"early": "1", "late": "3"}, inputs=X, targets=Y, at=3, observe=names) as seen:
        train(model)
    seen.trajectory.save(tmp_path / "seen.nc")
    loaded = fs.Trajectory.load(tmp_path / "seen.nc")
    assert set(loaded) == {"distance", "loss", "gates", "representation of early", "representation of late"}
    for name in loaded:
        np.testing.assert_array_equal(loaded[name], seen.trajectory[name])
        assert loaded.axes[name] == seen.trajectory.axes[name]
    assert loaded.coordinates["layer"].tolist() == ["early", "late"]
    assert loaded.provenance == seen.trajectory.provenance
    with pytest.raises(fs.BadInput, match=r"a representation of layer 'a/b'\n.*without a slash\n.*rename"):
        probe.torch(model, {"a/b": "1"}, inputs=X, observe="representation")
    assert "closed: 6 pairs, distance, loss, gates, representation; 6 steps, 3 records, the last at step 6" in repr(
        seen
    )


# torch.compile


def deeper():
    return nn.Sequential(rough(), nn.Tanh(), nn.Linear(2, 2))


def compiled_runs():
    """(kind, model, what is given to the probe, one turn of the loop) for all that can be compiled."""
    for kind in ("model", "in place", "part", "turn"):
        torch._dynamo.reset()
        model = seeded(deeper)
        given = torch.compile(model, backend="eager") if kind == "model" else model
        if kind == "in place":
            model.compile(backend="eager")
        if kind == "part":
            model[0] = torch.compile(model[0], backend="eager")
        optimizer = sgd(model)

        def turn(given=given, optimizer=optimizer):
            optimizer.zero_grad()
            ((given(X.clone()) - Y) ** 2).mean().backward()
            optimizer.step()

        yield kind, model, given, torch.compile(turn, backend="eager") if kind == "turn" else turn


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_models_are_seen_and_not_disturbed():
    for kind, model, given, turn in compiled_runs():
        turn()  # compiled before the probe comes
        history = []
        with probe.torch(given, ["0.6", "1"], inputs=X, pairs=[(2, 3)]) as seen:
            for _ in range(3):
                history.append(copy.deepcopy(model.state_dict()))
                turn()
        history.append(model.state_dict())
        assert seen.steps == 3, kind
        uncompiled = seeded(deeper)
        for k, state in enumerate(history):
            if k < 3:  # steps are counted after the forward pass, which has updated the running statistics
                state = {**state, **{name: v for name, v in history[k + 1].items() if "running" in name}}
            uncompiled.load_state_dict({name.replace("_orig_mod.", ""): value for name, value in state.items()})
            with torch.no_grad():
                inner = uncompiled.eval()[0][:7](X.clone()).double().numpy()
            for n, h in enumerate((inner, by_hand(uncompiled, 2))):
                wanted = ((h[3] - h[2]) ** 2).sum()
                assert wanted > 0
                assert seen.trajectory["distance"][k, n, 0] == pytest.approx(wanted, rel=1e-5), (kind, k)
        noted = "uncompiled code" in seen.trajectory.provenance.get("note", "")
        assert noted == (kind != "turn"), kind
        assert seen.trajectory.provenance["model"] == "Sequential", kind


@pytest.mark.filterwarnings("ignore")
def test_compiled_training_is_the_same_bit_for_bit():
    ends = []
    for probed in (False, True):
        torch._dynamo.reset()
        model = seeded(rough)
        run = torch.compile(model, backend="eager")
        if probed:
            with probe.torch(run, inputs=X):
                train(run, sgd(model))
        else:
            train(run, sgd(model))
        ends.append(model.state_dict())
    assert_same(*ends)


@pytest.mark.filterwarnings("ignore")
def test_a_record_inside_a_compiled_function_is_refused_with_words():
    model = seeded(plain)
    with (
        pytest.raises(fs.BadInput, match=r"a record inside a function that torch.compile runs.*\n.*outside compiled"),
        probe.torch(model, inputs=X) as seen,
    ):
        torch.compile(lambda x: (seen.step(), model(x))[1], backend="eager")(X)


def test_old_torch_and_compiled_parts(monkeypatch):
    model = seeded(plain)
    model.compile(backend="eager")
    monkeypatch.delattr(torch.compiler, "set_stance")
    with pytest.raises(fs.BadInput, match=r"Sequential holds parts compiled by torch .*\n.*torch >= 2.6"):
        probe.torch(model, inputs=X)


# The same names and times as simulate and solve


def on_two_points(lr, names=("distance", "output_distance", "output_alignment", "mean_gap", "loss", "outputs")):
    """A two-layer linear network on x and −x: as torch trains it, as simulate does, and as the theory says."""
    x, y = np.array([[-0.6, 0.3], [0.6, -0.3]]), np.array([[-0.8], [0.8]])
    rng = np.random.default_rng(0)
    weights = [0.1 * rng.normal(size=(5, 2)), 0.1 * rng.normal(size=(1, 5))]
    setup = fs.Setup(
        fs.tasks.from_arrays(x, y), fs.nets.DeepLinear(hidden=5), fs.inits.Given(weights), fs.rules.GradientDescent(lr),
        until=8.0, points=9,
    )  # fmt: skip
    model = nn.Sequential(nn.Linear(2, 5, bias=False), nn.Linear(5, 1, bias=False)).double()
    with torch.no_grad():
        for layer, start in zip(model, weights, strict=True):
            layer.weight.copy_(torch.tensor(start))
    x, y, optimizer = torch.tensor(x), torch.tensor(y), torch.optim.SGD(model.parameters(), lr=lr)
    with probe.torch(model, inputs=x, targets=y, observe=names, at=setup.rule.steps(setup.times), lr=lr) as seen:
        for _ in range(int(setup.rule.steps(setup.times[-1]))):
            optimizer.zero_grad()
            (0.5 * ((model(x) - y) ** 2).sum(1).mean()).backward()
            optimizer.step()
    solved = fs.solve(setup, "TwoPoint", observe=list(names))
    return seen.trajectory, fs.simulate(setup, 1, list(names), progress=False), solved


def test_a_probe_compares_with_simulate_to_rounding_and_with_the_theory_at_first_order():
    errors = []
    for lr in (0.08, 0.04, 0.02):
        seen, trained, solved = on_two_points(lr)
        assert set(fs.compare(trained, seen).names) == set(seen)
        for same in (fs.compare(trained, seen), fs.compare(seen, trained)):
            assert max(same.errors().values()) < 1e-12
        known = fs.compare(solved, seen).errors()
        assert known.keys() >= {"distance", "output_distance", "output_alignment", "loss"}
        errors.append([known[name] for name in ("distance", "output_distance", "output_alignment", "loss")])
        assert seen.provenance["lr"] == lr
    ratios = np.array(errors)[:-1] / np.array(errors)[1:]
    assert np.all((ratios > 1.8) & (ratios < 2.2)), ratios
    assert np.max(errors[-1]) < 0.01


def test_times_are_steps_unless_the_rate_is_known():
    model = seeded(plain)
    with probe.torch(model, inputs=X, at=2, lr=0.1) as seen:
        train(model)
    assert seen.trajectory.times.tolist() == [0, 2 * 0.1, 4 * 0.1, 6 * 0.1]
    assert "the last at time 0.6" in repr(seen)
    with pytest.raises(fs.BadInput, match=r"lr = 0\n.*lr > 0"):
        probe.torch(model, inputs=X, lr=0)


def test_comparisons_of_probes_are_drawn_and_other_pairs_refused():
    def seen(seed, pairs=None):
        model = seeded(plain, seed)
        with probe.torch(model, inputs=X, targets=Y, pairs=pairs) as one:
            train(model)
        return one.trajectory

    first, second = seen(0), seen(1)
    figure = fs.compare(first, second).plot()
    panels = {panel.get_ylabel(): panel for panel in figure.axes if panel.get_ylabel()}
    assert list(panels) == ["distance", "output_distance", "output_alignment", "loss", "cosine"]
    # Two layers and four of six pairs, in two colours; then all six pairs.
    assert [len(panels[name].lines) for name in ("distance", "output_distance", "loss")] == [16, 12, 2]
    assert panels["distance"].get_title("left") == "distance: probe.torch, 4 of 6 pairs"
    assert [text.get_text() for text in panels["distance"].get_legend().get_texts()] == ["1", "3"]
    assert panels["loss"].get_xlabel() == "steps"
    np.testing.assert_array_equal(panels["distance"].lines[1].get_ydata(), second["distance"][:, 0, 1])
    np.testing.assert_array_equal(panels["distance"].lines[12].get_ydata(), first["distance"][:, 1, 0])
    with pytest.raises(fs.BadInput, match=r"pairs 0-1, … in theory, and 0-2, … in training\n.*same order\n.*pairs="):
        fs.compare(seen(0, [(0, 1)]), seen(0, [(0, 2)]))
    assert fs.compare(seen(0, [(0, 1)]), seen(0, [(1, 0)])).error("distance") == 0


def test_a_name_with_other_axes_is_no_shared_name():
    """simulate records the similarity of the last hidden layer, a probe that of every layer."""
    seen, trained, _ = on_two_points(0.05, ("loss", "outputs", "similarity"))
    both = fs.compare(trained, seen)
    assert set(both.names) == {"loss", "outputs"}
    with pytest.raises(fs.UnknownName, match="unknown observable of this comparison 'similarity'"):
        both["similarity"]
