"""What notebooks show: tables of objects, progress, completion, figures, films and data frames."""

from __future__ import annotations

import re
import sys
import types

import numpy as np
import pytest

import festina as fs
from festina._foundation import progress


@pytest.fixture(scope="module")
def setup():
    return fs.Setup(fs.tasks.hierarchy(levels=2), fs.nets.DeepLinear(4), fs.inits.Aligned(1e-2), until=20.0, points=12)


@pytest.fixture(scope="module")
def theory(setup):
    return fs.solve(setup)


@pytest.fixture(scope="module")
def trained(setup):
    return fs.simulate(setup, 2, ["loss", "modes", "similarity"])


def words(html):
    assert "<script" not in html
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_every_noun_has_a_table(setup, theory, trained):
    assert "net DeepLinear" in words(setup._repr_html_())
    assert "singular values of Σʸˣ 0.661, 0.433" in words(setup.task._repr_html_())
    covering = fs.covering(setup)._repr_html_()
    assert "✓ AlignedModes (exact): holds" in words(covering)
    assert "✗ PathDynamics (reduction): gated: measured DeepLinear" in words(covering)
    assert covering.count("<details open>") == 1
    assert "similarity seed, time, sample, sample_" in words(trained._repr_html_())
    assert "largest relative difference loss" in words(fs.compare(theory, trained)._repr_html_())
    assert "strict saddle" in words(fs.saddles(setup.task, 4)._repr_html_())


def test_texts_of_users_are_escaped():
    task = fs.tasks.from_arrays(np.eye(2), np.eye(2))
    hostile = fs.Trajectory(np.arange(2.0), {"<b>x": np.ones(2)}, {"<b>x": ("time",)}, "<script>")
    assert "<b>" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()
    assert "own data" in task._repr_html_()


def test_a_fit_has_a_table(trained):
    assert "applies" in words(fs.fit("AlignedModes", trained, seed=0)._repr_html_())


def test_keys_are_completed(theory):
    assert "loss" in theory._ipython_key_completions_()


def test_a_trajectory_is_drawn_as_what_it_is(theory, trained):
    (dashed, *_), (pale, *_) = (t.plot("loss").axes[0].lines for t in (theory, trained))
    assert dashed.get_linestyle() == "--"
    assert pale.get_linestyle() == "-"
    assert pale.get_linewidth() > 2 * dashed.get_linewidth()
    assert len(trained.plot().axes) == 2  # loss and modes; similarity is no curve
    np.testing.assert_array_equal(pale.get_ydata(), trained["loss"][0])
    with pytest.raises(fs.UnknownName, match="lss"):
        theory.plot("lss")


def test_a_film_ends_at_the_last_time_and_is_written(trained, tmp_path):
    film = trained.animate("modes", tmp_path / "modes.gif")
    assert (tmp_path / "modes.gif").read_bytes()[:6] == b"GIF89a"
    *_, last = film._iter_gen()
    assert last == len(trained.times) - 1
    with pytest.raises(fs.BadInput, match=r"\.gif or \.mp4"):
        trained.animate("loss", tmp_path / "loss.avi")


def test_a_film_of_representations_moves_without_jumps(trained, tmp_path):
    film = trained.animate("similarity", tmp_path / "points.gif")
    figure = film._fig
    names = {text.get_text() for text in figure.axes[0].texts}
    assert names == set(trained.coordinates["sample"])
    from festina._formulas.classical_scaling import centred, on_axes_of_the_last

    products = centred(np.asarray(trained["similarity"][0]))
    points = on_axes_of_the_last(products, 3)
    distances = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    squares = np.diagonal(products, axis1=1, axis2=2)
    wanted = np.sqrt(np.maximum(squares[:, :, None] + squares[:, None] - 2 * products, 0))
    np.testing.assert_allclose(distances, wanted, atol=1e-6)
    signed = np.sign(np.einsum("tsd,sd->td", points[-4:], points[-1]))
    assert (signed >= 0).all()


def test_a_data_frame_has_a_row_for_each_entry(trained):
    frame = trained.to_dataframe()
    assert list(frame.columns) == ["seed", "time", "loss"]
    assert len(frame) == 2 * 12
    np.testing.assert_array_equal(frame["loss"], trained["loss"].ravel())
    assert list(trained.to_dataframe("modes").columns) == ["seed", "time", "mode", "modes"]
    with pytest.raises(fs.BadInput, match="different axes"):
        trained.to_dataframe(["loss", "modes"])


@pytest.mark.parametrize(("column", "width"), [("single", 3.5), ("double", 7.2)])
def test_figures_are_saved_at_the_width_of_columns(theory, tmp_path, column, width):
    figure = theory.plot(["loss", "modes"])
    before = figure.get_size_inches().copy()
    path = fs.figures.save(figure, tmp_path / "figure.svg", column=column)
    assert f'width="{width * 72:g}pt"' in path.read_text()
    np.testing.assert_array_equal(figure.get_size_inches(), before)
    with pytest.raises(fs.BadInput, match=r"\.pdf"):
        fs.figures.save(figure, tmp_path / "figure.docx")


def test_progress_shows_in_a_notebook(monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert progress._in_notebook()
    progress._terminal.cache_clear()
    assert not progress._terminal().stderr  # the kernel shows what is displayed, not what is written to stderr
    progress._terminal.cache_clear()
