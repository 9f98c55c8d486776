"""probe.torch: which layers and outputs are meant, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import festina as fs
from festina import probe
from probed_models import X, Y, by_hand, nn, plain, seeded, torch, train


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
            return self.two(nn.functional.relu(self.one(x), inplace=True))

    model = seeded(Functional)
    functions = {"hidden": lambda model, x: nn.functional.relu(model.one(x))}
    with probe.torch(model, inputs=X, targets=Y, functions=functions) as seen:
        train(model)
    with torch.no_grad():
        h = nn.functional.relu(model.one(X)).double().numpy()
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
