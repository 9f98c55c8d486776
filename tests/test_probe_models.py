"""probe.torch on models as other libraries write them: several inputs, outputs with names, activations of their own."""

from __future__ import annotations

import types

import numpy as np
import pytest

import festina as fs
from festina import probe

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional

IDS = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 1], [2, 2, 5]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]])
X = torch.linspace(-1, 1, 12).reshape(4, 3).sin()


class GELUActivation(nn.Module):
    """As a library of transformers has it: a module of its own, around a function."""

    def __init__(self):
        super().__init__()
        self.act = F.gelu

    def forward(self, x):
        return self.act(x)


class Scaled(nn.Module):
    """In proportion: no activation."""

    def forward(self, x):
        return 2 * x


class Normed(nn.Module):
    """Without weights and not in proportion, but numbers depend on each other."""

    def forward(self, x):
        return x / (1 + x.pow(2).mean(-1, keepdim=True)).sqrt()


class Fragile(nn.Module):
    """Nothing but the numbers of the forward pass will do."""

    def forward(self, x):
        if x.abs().max() > 2:
            raise ArithmeticError
        return x**2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.dense, self.act, self.out = nn.LayerNorm(6), nn.Linear(6, 8), GELUActivation(), nn.Linear(8, 6)

    def forward(self, x, attention_mask):
        return x + self.out(self.act(self.dense(self.norm(x)))) * attention_mask[:, :, None]


class Output(dict):
    """A dict whose keys are attributes too."""

    __getattr__ = dict.__getitem__


class Transformer(nn.Module):
    """Tokens and a mask in; a loss that is not there, states and logits out."""

    def __init__(self, pack=Output):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(9, 6), nn.ModuleList([Block(), Block()])
        self.pool, self.head, self.pack = nn.Tanh(), nn.Linear(6, 2), pack

    def forward(self, input_ids, attention_mask=None, output_states=False):
        h = self.embed(input_ids)
        for block in self.blocks:
            h = block(h, torch.ones_like(input_ids) if attention_mask is None else attention_mask)
        states = {"states": h} if output_states else {}
        return self.pack(**states, past=(h, h), logits=self.head(self.pool(h[:, 0])))


def seeded(make=Transformer, **options):
    torch.manual_seed(0)
    return make(**options)


def looked(model, layers=None, **options):
    with probe.torch(model, layers, **{"observe": ["distance", "outputs"], **options}) as seen:
        seen.step()
    return seen.trajectory


ACTS = ("blocks.0.act", "blocks.1.act", "pool")


@pytest.mark.parametrize("pack", [Output, types.SimpleNamespace], ids=["dict", "object"])
def test_inputs_and_outputs_by_name(pack):
    """Layers, distances and outputs are those of a call by hand, whichever way the inputs come."""
    model = seeded(pack=pack)
    by_name = {"input_ids": IDS, "attention_mask": MASK, "output_states": True}
    outputs = model(**by_name).logits.detach().double().numpy()
    found = looked(model, inputs=by_name)
    assert tuple(found.coordinates["layer"]) == ACTS
    np.testing.assert_array_equal(found["outputs"][0], outputs)
    assert "of several outputs part 'logits' was taken" in found.provenance["note"]
    for inputs in ((IDS, MASK), (IDS.numpy(), MASK.tolist()), {"input_ids": IDS.tolist(), "attention_mask": MASK}):
        again = looked(model, inputs=inputs)
        np.testing.assert_array_equal(again["distance"], found["distance"])
    gap = ((IDS[1] - IDS[0]) ** 2).sum() + ((MASK[1] - MASK[0]) ** 2).sum()
    assert found.provenance["input_gap"][0] == float(gap)
    # The mask counts: without it other numbers come out.
    assert looked(model, inputs=IDS)["distance"][0, 1, 0] != found["distance"][0, 1, 0]
    chosen = looked(model, inputs=by_name, output=lambda out: out.states)
    assert chosen["outputs"].shape == (2, 4, 18)
    assert "several outputs" not in chosen.provenance["note"]


def test_a_part_with_another_first_axis_is_passed_on_and_tells_no_samples_apart():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.act, self.two = nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)

        def forward(self, batch, scale):
            return self.two(self.act(self.one(batch["x"] + batch["shift"]))) * scale

    model, shift = seeded(Shifted), torch.ones(1, 3)
    found = looked(model, inputs=({"x": X, "shift": shift}, 2.0), functions={"x": lambda model, x: x[0]["x"] * x[1]})
    assert (
        found.provenance["input_gap"]
        == looked(nn.Sequential(model.one, nn.Tanh(), model.two), inputs=X).provenance["input_gap"]
    )
    np.testing.assert_allclose(found["distance"][0, 0], 4 * np.array(found.provenance["input_gap"]), rtol=1e-6)
    assert [row[0] for row in probe.layers(model, ({"x": X, "shift": shift}, 2.0)) if row[3]] == ["act"]


def test_inputs_of_several_kinds_are_refused_with_words():
    model = seeded()
    with pytest.raises(fs.BadInput, match=r"shape \['ids'\] \(4, 3\): .*\n.*\n.*for model\(\*\*inputs\) a dict"):
        probe.torch(model, inputs={"ids": IDS})
    with pytest.raises(
        fs.BadInput, match=r"inputs is dict without an array\n.*at least one array.*\n.*\{name: array\}"
    ):
        probe.torch(model, inputs={"output_states": True})
    with pytest.raises(fs.BadInput, match=r"inputs\['input_ids'\] is list .*\n.*\n.*a dict by name"):
        probe.torch(model, inputs={"input_ids": [[1, 2], [3]]})
    with pytest.raises(fs.BadInput, match=r"inputs\[0\] has 4 value\(s\) that are NaN"):
        probe.torch(nn.Bilinear(3, 3, 2), inputs=(X * torch.tensor([1, 1, float("nan")]), X))


def test_other_libraries_activations_are_found_by_what_they_do():
    none = Scaled(), Normed(), nn.LayerNorm(6), nn.Softmax(-1), nn.Identity(), Fragile()
    model = nn.Sequential(nn.Linear(3, 6), GELUActivation(), *none, nn.Linear(6, 6), nn.PReLU(), nn.Linear(6, 2))
    seen = probe.torch(model, inputs=X)
    assert seen.layers == ("1", "9")
    took = "layers=None took GELUActivation, PReLU, and not Linear × 3, Scaled, Normed, LayerNorm, Softmax, Identity"
    assert took in repr(seen)
    assert "layers 1, 9" in repr(seen)
    with seen:
        seen.step()
    assert seen.trajectory.provenance["chosen"].startswith(took)
    assert seen.trajectory.provenance["note"].endswith("activations that are functions are not seen")
    plain = looked(nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)), inputs=X)
    assert plain.provenance["chosen"] == "layers=None took Tanh, and not Linear × 2"
    assert "note" not in plain.provenance
    assert "chosen" not in looked(model, "1", inputs=X).provenance


def test_recurrent_modules_are_layers_and_give_their_outputs():
    lstm = seeded(lambda: nn.LSTM(3, 5, batch_first=True))
    x = torch.stack([X, -X, X**2], dim=1)
    found = looked(lstm, inputs=x)
    states = lstm(x)[0].detach().reshape(4, -1).double().numpy()
    assert found.coordinates["layer"].tolist() == ["LSTM"]
    np.testing.assert_allclose(found["distance"][0, 0, 0], np.sum((states[1] - states[0]) ** 2), rtol=1e-6)
    np.testing.assert_array_equal(found["outputs"][0], states)
    assert found.provenance["note"] == "of several outputs part 0 was taken: choose another with output=lambda out: …"
    start = torch.zeros(1, 4, 5)
    np.testing.assert_array_equal(looked(lstm, inputs=(x, (start, start)))["distance"], found["distance"])
    assert repr(probe.layers(lstm, x)) == "LSTM  LSTM  tuple of 2 (Tensor, tuple)  *\n* taken by layers=None"

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x):
            return self.out(self.rnn(x)[0][:, -1])

    assert probe.torch(Reader(), inputs=x).layers == ("rnn",)


def test_labels_of_classes_get_a_hint():
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3))
    hint = r"targets of shape \(4, 1\), and outputs of shape \(4, 3\)\n.*\n.*one-hot: numpy.eye\(3\)\[labels\]"
    with pytest.raises(fs.BadInput, match=hint):
        probe.torch(model, inputs=X, targets=torch.tensor([0, 2, 1, 0]))
    with pytest.raises(fs.BadInput, match="targets of shape") as caught:
        probe.torch(model, inputs=X, targets=[0.5, 2, 1, 0])
    assert "one-hot" not in str(caught.value)


def test_a_module_that_is_replaced_is_called_replaced():
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3))
    seen = probe.torch(model, "1", inputs=X)
    model[1] = nn.Tanh()
    words = r"layer '1' was replaced: Sequential now has another module there\n.*\n.*load_state_dict"
    with seen, pytest.raises(fs.BadInput, match=words):
        seen.step()
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 5))
    seen = probe.torch(model, "1", inputs=X)
    del model[1]
    with seen, pytest.raises(fs.BadInput, match=r"now has another module there|now has nothing there"):
        seen.step()


def test_arrays_and_jax_take_several_inputs():
    hidden = np.random.default_rng(0).normal(size=(2, 4, 5))
    parts = {"x": X.numpy(), "ids": IDS.numpy(), "mask": np.ones((3, 3))}
    gap = np.sum((parts["x"][1] - parts["x"][0]) ** 2) + np.sum((parts["ids"][1] - parts["ids"][0]) ** 2)
    seen = probe.arrays([0, 1], {"h": hidden}, inputs=parts)
    assert seen.provenance["input_gap"][0] == pytest.approx(gap)

    def network(scale, inputs):
        return scale * inputs["x"], {"h": scale * inputs["ids"]}

    with probe.jax(network, inputs=parts, observe="distance") as found:
        found.step(2.0)
    assert found.trajectory.provenance["input_gap"] == seen.provenance["input_gap"]
    assert found.trajectory["distance"][0, 0, 0] == 4 * np.sum((parts["ids"][1] - parts["ids"][0]) ** 2)
