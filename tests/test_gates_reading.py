"""purity(): every number against loops over hand-made gates, and against what a net that is trained shows."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import xarray

import festina as fs
from festina._setup.spec import to_spec
from festina.gates.reading import purity
from festina.gates.recording import record

HIDDEN, SEEDS, TIMES, SMALL = (9, 6), 3, 7, 0.2
AXES = {"gates": ("seed", "time", "unit", "byte"), "unit_size": ("seed", "time", "unit"), "loss": ("seed", "time")}


def task(samples=11, labels=True):
    """Samples in three contexts of unequal size, not sorted, and in no whole number of bytes."""
    rng = np.random.default_rng(0)
    context = np.array([5, 2, 2, 9, 5, 9, 2, 5, 2, 9, 2])[:samples]
    x, y = rng.standard_normal((samples, 4)), rng.standard_normal((samples, 2))
    return fs.tasks.from_arrays(x, y, labels={"context": context, "rest": np.arange(samples) % 3} if labels else None)


def recorded(on, size, loss, of=None, hidden=HIDDEN):
    """A trajectory with these gates (seed, time, unit, sample)."""
    times = np.linspace(0, 6, on.shape[1])
    setup = fs.Setup(
        of or task(), fs.nets.MLP(hidden), fs.inits.SmallRandom(1e-3), fs.rules.GradientDescent(1.0), times=times
    )
    values = {"gates": np.packbits(on, axis=-1), "unit_size": size, "loss": loss}
    made = {"setup": functools.partial(to_spec, setup)}
    return fs.Trajectory(times, values, AXES, "simulate", made, {"seed": np.arange(len(on)) + 4})


@pytest.fixture(scope="module")
def handmade():
    """Units of all kinds, many of them whole in each context; one seed begins to learn at the start, one never does."""
    rng = np.random.default_rng(1)
    which = np.unique(np.asarray(task().labels["context"]), return_inverse=True)[1]
    shape = (SEEDS, TIMES, sum(HIDDEN))
    on = (rng.random((*shape, 3)) < 0.7)[..., which] ^ (rng.random((*shape, 11)) < 0.04)
    on[:, 1:, ::4] = on[:, :1, ::4]  # these never switch
    on[:, :, 1] = True
    on[0, 2:, 1, 0] = False
    on[:, :, 2] = False
    size = rng.random(shape) ** 4
    size[:, :, 3] = 1e-3
    size[1, 2, : HIDDEN[0]] = 0.0  # a layer without weight
    first = 0.5 * np.mean(np.sum(np.asarray(task().y) ** 2, axis=1))
    falls = np.array([1, 0.995, 0.98, 0.5, 0.3, 0.2, 0.1])
    loss = first * np.stack([falls, falls * 0.9, np.full(TIMES, 0.999)])
    return on, size, loss, recorded(on, size, loss)


def by_hand(on, size, loss, context):
    """Every number of one seed and layer by loops: on (time, unit, sample), size (time, unit), loss (time,)."""
    values = sorted(set(context))
    first = max(loss[0], 0.5 * np.mean(np.sum(np.asarray(task().y) ** 2, axis=1)))
    began = next((t for t in range(len(loss)) if loss[t] <= 0.99 * first), None)

    def letters(row):
        parts = [[bool(b) for b, c in zip(row, context, strict=True) if c == value] for value in values]
        kind = "".join("1" if all(p) else "x" if any(p) else "0" for p in parts)
        return kind, "".join("1" if sum(p) > len(p) / 2 else "0" for p in parts)

    found = []
    for t in range(len(loss)):
        total = sum(size[t])
        weight = [s / total if total else 1 / len(size[t]) for s in size[t]]
        kinds, votes = zip(*(letters(row) for row in on[t]), strict=True)
        strong = [u for u, s in enumerate(size[t]) if s > SMALL * max(size[t])]
        now = {"share": {}, "majority": {}, "on_for": {}}
        for w, kind, vote in zip(weight, kinds, votes, strict=True):
            now["share"][kind] = now["share"].get(kind, 0) + w
            now["majority"][vote] = now["majority"].get(vote, 0) + w
            if "x" not in kind:
                now["on_for"][kind.count("1")] = now["on_for"].get(kind.count("1"), 0) + w
        share = now["share"]
        now |= {"all_on": share.get("111", 0), "dead": share.get("000", 0)}
        now["split"] = sum(w for kind, w in share.items() if "x" in kind)
        now["pure"] = sum(w for kind, w in share.items() if "x" not in kind and "1" in kind)
        now["strong"], now["distinct"] = len(strong), len({tuple(on[t][u]) for u in strong})
        now |= {"switched": 0.0, "began_all_on": np.nan, "kept_all_on": np.nan}
        if began is not None and t >= began:
            now["switched"] = sum(w for u, w in enumerate(weight) if tuple(on[t][u]) != tuple(on[began][u]))
            large = [u for u in range(len(weight)) if all(on[began][u])]
            large = [u for u in large if size[began][u] > SMALL * max(size[began])]
            now["began_all_on"] = sum(weight[u] for u in large)
            if now["began_all_on"]:
                now["kept_all_on"] = sum(weight[u] for u in large if all(on[t][u])) / now["began_all_on"]
        found.append(now)
    top = max(size[-1])
    return found, np.mean([all(size[t][u] <= SMALL * top for t in range(len(loss))) for u in range(size.shape[1])])


@pytest.mark.parametrize("label", ["context", "rest"])
def test_every_number_is_that_of_loops(handmade, label):
    on, size, loss, trained = handmade
    read = purity(trained, label, small=SMALL)
    groups = np.asarray(task().labels[label])
    bounds = np.cumsum([0, *HIDDEN])
    for s in range(SEEDS):
        for layer, (low, high) in enumerate(itertools.pairwise(bounds)):
            found, never = by_hand(on[s, :, low:high], size[s, :, low:high], loss[s], groups)
            here = read.isel(seed=s).sel(layer=layer + 1)
            assert float(here.never_growing) == pytest.approx(never, abs=1e-15)
            for t, now in enumerate(found):
                for name, expected in now.items():
                    value = here[name].isel(time=t)
                    if isinstance(expected, dict):
                        axis = here[name].dims[-1]
                        expected = [expected.pop(key, 0.0) for key in here[axis].values.tolist()]
                        assert not now[name], "a kind is missing"
                    np.testing.assert_allclose(value, expected, atol=1e-14, err_msg=f"{name}, {s}, {layer}, {t}")


def test_it_is_labelled_and_sums_to_one(handmade):
    read = purity(handmade[-1], small=SMALL)
    assert read.attrs == {"label": "context", "small": SMALL}
    assert read.seed.values.tolist() == [4, 5, 6]
    assert read.layer.values.tolist() == [1, 2]
    assert read.share.dims == ("seed", "layer", "time", "kind")
    assert read.majority.dims == ("seed", "layer", "time", "vote")
    assert read.on_for.dims == ("seed", "layer", "time", "values_on")
    assert read.never_growing.dims == ("seed", "layer")
    for name, axis in (("share", "kind"), ("majority", "vote")):
        np.testing.assert_allclose(read[name].sum(axis), 1, atol=1e-14)
        assert (read[name] > 0).any(["seed", "layer", "time"]).all(), "only kinds that occur"
    np.testing.assert_allclose(read.pure + read.split + read.dead, 1, atol=1e-14)
    np.testing.assert_allclose(read.on_for.sum("values_on") + read.split, 1, atol=1e-14)
    unknown = {str(name) for name in read if np.isnan(read[name]).any()}
    assert unknown == {"began_all_on", "kept_all_on"}, "before learning begins"


def test_its_variables_are_read_by_attribute(handmade):
    read = purity(handmade[-1], small=SMALL)
    assert not {*read.variables, *read.dims} & set(dir(xarray.Dataset))


def test_kinds_are_in_order():
    wanted = ["111", "110", "101", "011", "100", "001", "11x", "1x1", "x11", "x10", "0x0", "1xx", "xxx", "000"]
    rows = {"0": (0, 0), "1": (1, 1), "x": (1, 0)}
    of = fs.tasks.from_arrays(np.eye(6), np.eye(6), labels={"context": [0, 0, 1, 1, 2, 2]})
    on = np.array([[[sum((rows[letter] for letter in kind), ()) for kind in sorted(wanted)]]], bool)
    size = np.arange(1.0, len(wanted) + 1)[None, None]
    read = purity(recorded(on, size, np.ones((1, 1)), of, hidden=(len(wanted),)))
    assert read.kind.values.tolist() == wanted
    np.testing.assert_allclose(
        read.share[0, 0, 0], [(1 + sorted(wanted).index(kind)) / size.sum() for kind in wanted], atol=1e-15
    )


def test_it_reads_a_net_as_it_is_trained():
    setup = fs.Setup(
        fs.tasks.contextual(4, 3, "hierarchy"),
        fs.nets.MLP(24),
        fs.inits.SmallRandom(1e-3),
        fs.rules.GradientDescent(0.1),
        until=60,
        points=7,
    )
    trained = record(setup, seeds=2, observe="representation")
    read = purity(trained).isel(layer=0)
    on = trained["representation"].reshape(2, 7, 3, 4, 24) > 0
    whole, some = on.all(axis=3), on.any(axis=3)
    share = trained["unit_size"] / trained["unit_size"].sum(axis=-1, keepdims=True)
    expected = {
        "all_on": whole.all(axis=2),
        "split": (whole != some).any(axis=2),
        "dead": ~some.any(axis=2),
        "pure": (whole == some).all(axis=2) & some.any(axis=2),
    }
    for name, units in expected.items():
        np.testing.assert_allclose(read[name], (share * units).sum(axis=-1), atol=1e-6, err_msg=name)
    assert read.split.max() > 0.3 > read.split.min(), "learning splits contexts"
    assert (read.switched[:, -1] > 0.3).all()


def test_many_samples_are_read_packed():
    """The bits of 240 000 samples; unpacked all at once they would be 8 times what is held."""
    count = 240_000
    of = fs.tasks.from_arrays(
        np.arange(count)[:, None] / count, np.ones((count, 1)), labels={"context": np.arange(count) % 3}
    )
    on = np.zeros((1, 2, 3, count), bool)
    on[:, :, 0], on[:, :, 1], on[:, 1, 2] = True, np.arange(count) % 3 != 1, np.arange(count) == 0
    read = purity(recorded(on, np.ones((1, 2, 3)), np.ones((1, 2)), of, hidden=(3,)))
    assert read.kind.values.tolist() == ["111", "101", "x00", "000"]
    np.testing.assert_allclose(read.share[0, 0], [[1 / 3, 1 / 3, 0, 1 / 3], [1 / 3, 1 / 3, 1 / 3, 0]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: purity(bare("loss")), ("loss, without gates", "gates.record")),
        (lambda: purity(bare(), "contex"), ("unknown label of the task 'contex'", "did you mean 'context'")),
        (lambda: purity(bare(), ["context"]), ("unknown label", "context, rest")),
        (lambda: purity(bare(labels=False)), ("without labels", "tasks.from_arrays(x, y, labels=")),
        (lambda: purity(bare(), small=-1), ("small = -1", ">= 0")),
        (lambda: purity(bare(), small=1.0), ("small = 1", "below 1", "small=0.01")),
    ],
)
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(fs.BadInput) as error:
        make()
    for word in words:
        assert word in str(error.value)


def bare(*only, labels=True):
    """A small trajectory; with names, only what they say."""
    trained = recorded(np.ones((1, 2, 2, 11), bool), np.ones((1, 2, 2)), np.ones((1, 2)), task(labels=labels), (2,))
    if not only:
        return trained
    return fs.Trajectory(trained.times, {name: trained[name] for name in only}, AXES, "simulate")


def test_kinds_beyond_the_most_are_one(handmade):
    trained = handmade[-1]
    everything, fewer = purity(trained), purity(trained, most_kinds=2)
    assert list(fewer.kind.values)[-1] == "other"
    kept = [kind for kind in fewer.kind.values if kind != "other"]
    assert len(kept) == 2
    np.testing.assert_allclose(fewer.share.sel(kind=kept), everything.share.sel(kind=kept))
    np.testing.assert_allclose(fewer.share.sum("kind"), 1)
    least = everything.share.sum(("seed", "layer", "time"))
    assert least.sel(kind=kept).min() >= least.drop_sel(kind=kept).max()
    for name in ("all_on", "pure", "split", "dead", "on_for", "switched"):
        np.testing.assert_allclose(fewer[name], everything[name])
