"""The laws of every task, and tasks from a user's own data."""

from __future__ import annotations

import dataclasses
import os

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import festina as fs

# Every task is its own example by its defaults; a user's own data, and what is made of another task, have none.
EXAMPLES = {name: getattr(fs.tasks, name) for name in fs.tasks.__all__} | {
    "from_arrays": lambda: fs.tasks.from_arrays(
        np.arange(12.0).reshape(4, 3),
        np.ones((4, 2)),
        items=list("abcd"),
        features=["u", "v"],
        labels={"size": [0.1, 0.2, 0.3, 1e-300], "context": [0, 0, 1, 1]},
    ),
    "from_moments": lambda: fs.tasks.from_moments([[1.0, 0.5]], [[2.0, 0.0], [0.0, 1.0]], [[3.0]], inputs=["p", "q"]),
    "whitened": lambda: fs.tasks.whitened(fs.tasks.regression(whiten=False)),
    "blobs": lambda: fs.tasks.blobs(positions=3, pixels=3),
    "mnist_stand_in": lambda: fs.tasks.mnist_stand_in(20),
    # Where the files are missing, the laws are those of the stand-in.
    "mnist": lambda: fs.tasks.mnist(20) if "FESTINA_DATA" in os.environ else fs.tasks.mnist_stand_in(20),
}
# A sequence is several tasks; see test_sequences.py.
NAMES = sorted(set(fs.tasks.__all__) - {"sequence"})
MADE = {name: EXAMPLES[name]() for name in NAMES}
every_task = pytest.mark.parametrize("name", NAMES)
every_task_with_samples = pytest.mark.parametrize("name", [n for n in NAMES if MADE[n].samples is not None])
every_task_with_stated_vectors = pytest.mark.parametrize(
    "name", [n for n in NAMES if MADE[n].stated_vectors is not None]
)


@every_task_with_samples
def test_second_moments_agree_with_samples(name):
    task = MADE[name]
    np.testing.assert_allclose(
        task.cov_yx, np.mean([np.outer(y, x) for x, y in zip(task.x, task.y, strict=True)], axis=0), atol=1e-14
    )
    np.testing.assert_allclose(task.cov_x, np.mean([np.outer(x, x) for x in task.x], axis=0), atol=1e-14)
    np.testing.assert_allclose(task.power, np.mean([y @ y for y in task.y]))


@every_task
def test_spectrum_and_modes_rebuild_the_moments(name):
    task = MADE[name]
    modes = task.modes()
    np.testing.assert_allclose(task.spectrum(), np.linalg.svd(task.cov_yx, compute_uv=False), atol=1e-12)
    np.testing.assert_allclose(modes.matrix(modes.singular_values), task.cov_yx, atol=1e-12)
    np.testing.assert_allclose(modes.variances, np.diag(modes.right.T @ task.cov_x @ modes.right), atol=1e-12)


@every_task
def test_names_line_up_with_axes(name):
    task = MADE[name]
    for names, size in ((task.items, task.samples), (task.inputs, task.d_in), (task.features, task.d_out)):
        assert names is None or len(names) == size


@every_task
def test_labels_line_up_with_samples(name):
    task = MADE[name]
    for values in (task.labels or {}).values():
        assert values.shape == (task.samples,)
        assert np.isfinite(values).all()
    assert task.moments_only().labels is None


@every_task_with_samples
def test_target_and_floor_are_those_of_least_squares(name):
    task = MADE[name]
    best, *_ = np.linalg.lstsq(task.x, task.y, rcond=None)
    residual = task.y - task.x @ best
    np.testing.assert_allclose(task.x @ task.target().T, task.x @ best, atol=1e-9)
    np.testing.assert_allclose(task.floor(), 0.5 * np.mean(np.sum(residual**2, axis=1)), atol=1e-12)


@pytest.mark.parametrize("levels", [0, 1, 2, 3, 4])
def test_the_spectrum_of_the_hierarchy_is_the_stated_one(levels):
    task = fs.tasks.hierarchy(levels)
    np.testing.assert_allclose(task.stated_spectrum, np.linalg.svd(task.cov_yx, compute_uv=False), atol=1e-13)


@every_task_with_stated_vectors
def test_stated_vectors_are_right_singular_vectors(name):
    task = MADE[name]
    values, vectors = task.stated_spectrum, task.vectors()
    assert vectors is task.stated_vectors
    assert np.all(np.diff(values) <= 1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(task.d_in), atol=1e-13)
    np.testing.assert_allclose(task.cov_yx.T @ task.cov_yx @ vectors, vectors * values**2, atol=1e-13)
    # Inside a level any basis is right; the space that it spans is not free.
    right = np.linalg.svd(task.cov_yx)[2].T
    starts = np.flatnonzero(np.diff(values, prepend=np.inf) < -1e-9)
    for first, last in zip(starts, [*starts[1:], len(values)], strict=True):
        level = slice(first, last)
        np.testing.assert_allclose(
            vectors[:, level] @ vectors[:, level].T, right[:, level] @ right[:, level].T, atol=1e-11
        )


@pytest.mark.parametrize("make", [fs.tasks.regression, fs.tasks.student_teacher])
@pytest.mark.parametrize("samples", [5, 25])
def test_random_inputs_are_exactly_white(make, samples):
    task = make(samples=samples)
    np.testing.assert_allclose(task.cov_x, np.eye(5), atol=1e-14)
    plain = make(samples=samples, whiten=False)
    values, vectors = np.linalg.eigh(plain.cov_x)
    np.testing.assert_allclose(task.x, plain.x @ (vectors / np.sqrt(values)) @ vectors.T, atol=1e-9)
    assert make(seed=1) == make(seed=1)
    assert make(seed=1) != make(seed=2)


def test_random_regression_and_teachers_have_their_scale():
    task = fs.tasks.regression(d_in=3, d_out=2, samples=100_000, seed=4, whiten=False)
    np.testing.assert_allclose(task.cov_x, np.eye(3), atol=5 * 2**0.5 / 100_000**0.5)
    np.testing.assert_allclose(task.y.T @ task.y / task.samples, np.eye(2), atol=5 * 2**0.5 / 100_000**0.5)
    assert np.abs(task.cov_yx).max() < 5 / 100_000**0.5
    teacher = fs.tasks.student_teacher(d_in=30, d_out=40, hidden=50, scale=0.35, samples=30, seed=5)
    np.testing.assert_allclose(teacher.floor(), 0, atol=1e-11)
    # ⟨entry²⟩ of a product of Gaussian matrices is hidden·scale⁴; 1200 entries know it to 5 per cent or so.
    assert np.mean(teacher.target() ** 2) == pytest.approx(50 * 0.35**4, rel=0.2)
    assert np.linalg.matrix_rank(fs.tasks.student_teacher(hidden=1).target()) == 1


@pytest.mark.parametrize("moments_only", [False, True])
def test_a_whitened_task_is_the_same_task_in_white_inputs(moments_only):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)) @ rng.normal(size=(4, 4)), rng.normal(size=(20, 3))
    task = fs.tasks.from_arrays(x, y, items=[f"{i}" for i in range(20)], inputs=list("abcd"), features=list("uvw"))
    task = task.moments_only() if moments_only else task
    white = fs.tasks.whitened(task)
    values, vectors = np.linalg.eigh(task.cov_x)
    root = vectors * np.sqrt(values) @ vectors.T
    np.testing.assert_allclose(white.cov_x, np.eye(4), atol=1e-14)
    np.testing.assert_allclose(white.cov_yx @ root, task.cov_yx, atol=1e-12)
    np.testing.assert_allclose(white.target(), task.target() @ root, atol=1e-12)
    np.testing.assert_allclose(white.floor(), task.floor(), atol=1e-12)
    assert (white.items, white.inputs, white.features) == (task.items, None, task.features)
    if not moments_only:
        np.testing.assert_allclose(white.x @ root, task.x, atol=1e-12)
    setup = fs.Setup(white, fs.nets.DeepLinear(3), fs.inits.SmallRandom(0.1), until=1.0)
    assert fs.Setup.from_json(setup.to_json()) == setup


@every_task
def test_every_task_comes_back_from_json(name):
    setup = fs.Setup(MADE[name], fs.nets.DeepLinear(3), fs.inits.SmallRandom(0.1), until=1.0)
    assert fs.Setup.from_json(setup.to_json()) == setup


def test_labels_count_wherever_a_task_goes():
    from festina._setup.spec import to_spec

    numbers = np.array([0, 1, 0, 1])
    task = fs.tasks.from_arrays(np.eye(4), np.eye(4), labels={"sign": [1.0, -1.0, 1.0, -1.0], "context": numbers})
    numbers[0] = 7
    assert task.labels["context"].tolist() == [0, 1, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        task.labels["context"][0] = 7
    leaves, structure = jax.tree.flatten(task)
    assert jax.tree.unflatten(structure, leaves) == task
    others = (
        None,
        {"sign": task.labels["sign"]},
        {**task.labels, "context": np.ones(4)},
        {"signs": task.labels["sign"], "context": task.labels["context"]},
    )
    for labels in others:
        assert dataclasses.replace(task, labels=labels) != task
    setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.SmallRandom(0.1), until=1.0)
    text = setup.to_json()
    assert to_spec(setup)["task"]["from_arrays"]["labels"] == {"sign": [1, -1, 1, -1], "context": [0, 1, 0, 1]}
    assert fs.Setup.from_json(text) == setup
    assert fs.Setup.from_json(text).to_json() == text
    assert setup != setup.replace(task=dataclasses.replace(task, labels=None))
    assert fs.tasks.from_arrays(np.eye(4), np.eye(4), labels={}) == fs.tasks.from_arrays(np.eye(4), np.eye(4))
    assert fs.tasks.whitened(task).labels.keys() == task.labels.keys()


def test_tasks_with_and_without_labels_follow_each_other():
    labelled = fs.tasks.from_arrays(np.eye(4), np.eye(4), labels={"context": [0, 0, 1, 1]})
    bare = dataclasses.replace(labelled, labels=None)
    setup, plain = (
        fs.Setup(fs.tasks.sequence(tasks, 2.0), fs.nets.DeepLinear(4), fs.inits.Aligned(0.1), points=5)
        for tasks in ([labelled, bare], [bare, bare])
    )
    assert fs.Setup.from_json(setup.to_json()) == setup != plain
    np.testing.assert_array_equal(fs.simulate(setup)["loss"], fs.simulate(plain)["loss"])


def test_the_four_items():
    task = fs.tasks.hierarchy(levels=2)
    canary = dict(zip(task.features, task.y[task.items.index("canary")], strict=True))
    assert {f for f, value in canary.items() if value} == {"grow", "move", "fly"}
    assert np.array_equal(np.unique(task.y), [0, 1])


@pytest.mark.parametrize(("d_in", "d_out"), [(4, 4), (5, 2), (2, 5), (1, 3)])
@given(data=st.data())
def test_modes_diagonalise_the_input_wherever_they_can(d_in, d_out, data):
    # Repeated singular values and variances: the basis inside a level is free, and must be chosen right.
    count = min(d_in, d_out)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    values = np.sort(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=count, max_size=count)))[::-1]
    variances = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=d_in, max_size=d_in)))
    left = np.linalg.qr(rng.normal(size=(d_out, d_out)))[0][:, :count]
    right = np.linalg.qr(rng.normal(size=(d_in, d_in)))[0]
    task = fs.tasks.from_moments(left * values @ right[:, :count].T, right * variances @ right.T)
    modes = task.modes()
    image = task.cov_x @ modes.right
    np.testing.assert_allclose(image, modes.right * modes.variances, atol=1e-9)
    np.testing.assert_allclose(modes.left.T @ modes.left, np.eye(count), atol=1e-10)
    np.testing.assert_allclose(modes.right.T @ modes.right, np.eye(count), atol=1e-10)
    np.testing.assert_allclose(modes.matrix(modes.singular_values), task.cov_yx, atol=1e-10)


def test_a_task_keeps_its_data_when_the_caller_changes_theirs():
    x = np.eye(3)
    task = fs.tasks.from_arrays(x, x)
    x[0, 0] = 100
    assert task.x[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        task.x[0, 0] = 2


def test_a_changed_task_does_not_keep_its_recipe_in_json():
    from festina._setup.spec import to_spec

    setup = fs.Setup(fs.tasks.hierarchy(2), fs.nets.DeepLinear(3), fs.inits.Aligned(0.1), until=1.0)
    assert to_spec(setup)["task"] == {"hierarchy": {"levels": 2}}
    doubled = dataclasses.replace(
        setup.task, y=2 * setup.task.y, cov_yx=2 * setup.task.cov_yx, power=4 * setup.task.power
    )
    assert "from_arrays" in to_spec(setup.replace(task=doubled))["task"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fs.tasks.from_arrays([1.0, 2.0], [[1.0]]), "x has shape"),
        (lambda: fs.tasks.from_arrays(np.ones((3, 2)), np.ones((4, 2))), "x has 3 rows and y has 4"),
        (lambda: fs.tasks.from_arrays([[np.nan]], [[1.0]]), "x has 1 value"),
        (lambda: fs.tasks.from_arrays([[1.0 + 1j]], [[1.0]]), "x is list"),
        (lambda: fs.tasks.from_arrays([["1.0"]], [[1.0]]), "x is list"),
        (lambda: fs.tasks.from_arrays([[1.0]], [[np.inf]]), "y has 1 value"),
        (lambda: fs.tasks.from_arrays([["a"]], [[1.0]]), "x is list"),
        (lambda: fs.tasks.from_arrays([[1.0], [2.0, 3.0]], [[1.0]]), "x is list"),
        (lambda: fs.tasks.from_arrays(np.ones((0, 2)), np.ones((0, 2))), "x has shape"),
        (lambda: fs.tasks.from_arrays([[1.0]], [[1.0]], items=["a", "b"]), "items has 2 names"),
        (lambda: fs.tasks.from_arrays([[1.0]], [[1.0]], labels=[0]), "labels is list"),
        (lambda: fs.tasks.from_arrays([[1.0]], [[1.0]], labels={3: [0]}), "a label with the name 3"),
        (
            lambda: fs.tasks.from_arrays([[1.0]], [[1.0]], labels={"sign": [0, 1]}),
            "label 'sign' has 2 numbers for 1 samples",
        ),
        (lambda: fs.tasks.from_arrays([[1.0]], [[1.0]], labels={"sign": [[0]]}), "label 'sign' has shape (1, 1)"),
        (lambda: fs.tasks.from_arrays([[1.0]], [[1.0]], labels={"sign": ["+"]}), "label 'sign' is list"),
        (lambda: fs.tasks.from_arrays([[1.0]], [[1.0]], labels={"sign": [np.nan]}), "label 'sign' has 1 value"),
        (lambda: fs.tasks.from_moments([[1.0, 1.0]], [[1.0]]), "cov_x has shape"),
        (lambda: fs.tasks.from_moments([[1.0, 0.0]], [[1.0, 0.5], [0.0, 1.0]]), "cov_x is not symmetric"),
        (lambda: fs.tasks.from_moments([[1.0, 0.0]], [[1.0, 0.0], [0.0, -1.0]]), "negative eigenvalue"),
        (lambda: fs.tasks.from_moments([[1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]), "no variance"),
        (lambda: fs.tasks.from_moments([[1.0]], [[1.0]], [[0.5]]), "cov_y explains less"),
        (lambda: fs.tasks.from_moments([[1.0]], [[1.0]], [[1.0, 0.0], [0.0, 1.0]]), "cov_y has shape"),
        (lambda: fs.tasks.hierarchy(levels=-1), "levels = -1"),
        (lambda: fs.tasks.hierarchy(levels=1.5), "levels = 1.5"),
        (lambda: fs.tasks.regression(d_in=5, samples=4), "samples = 4 with d_in = 5"),
        (lambda: fs.tasks.regression(d_out=0), "d_out = 0"),
        (lambda: fs.tasks.student_teacher(samples=4), "samples = 4 with d_in = 5"),
        (lambda: fs.tasks.student_teacher(scale=0), "scale = 0"),
        (lambda: fs.tasks.student_teacher(hidden=0), "hidden = 0"),
        (lambda: fs.tasks.whitened(fs.tasks.regression(samples=4, whiten=False)), "its smallest eigenvalue is"),
        (lambda: fs.tasks.whitened(np.eye(3)), "task is array"),
    ],
)
def test_impossible_data_are_refused_in_three_parts(make, words):
    with pytest.raises(fs.BadInput) as refusal:
        make()
    assert words in refusal.value.seen
    assert refusal.value.needed
    assert refusal.value.do
