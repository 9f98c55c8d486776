"""probe.torch: training does not notice it, not at its first use and not in compiled models either."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

import festina as fs
from festina import probe
from festina._foundation.random_states import random_states_kept
from probed_models import X, Y, assert_same, by_hand, nn, plain, rough, seeded, sgd, torch, train

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
