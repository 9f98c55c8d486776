"""The report page in a real browser: it draws, its button works, and nothing is fetched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from festina._figures.style import new_figure, predicted, styled, trained
from festina._reporting.page.render import render
from test_page import report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--virtual-time-budget=3000", "--window-size=1000,1600",
)  # fmt: skip


def browse(tmp_path, page: str, *flags: str) -> str:
    if BROWSER is None:
        # Where .ci/run installs a browser its absence is a failure, not a reason to skip.
        assert not os.environ.get("CI"), "no chromium, although CI installs it"
        pytest.skip("no chromium on this machine")
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, (tmp_path / "index.html").as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    with styled():
        sheet, axes = new_figure()
        trained(axes[0, 0], [0, 1], [[0, 1]], colour="#0072B2")
        predicted(axes[0, 0], [0, 1], [0, 1], colour="#0072B2")
        path = tmp_path_factory.mktemp("figure") / "figure.svg"
        sheet.savefig(path)
    one = report()
    return render([one], {one["experiment"]: path.read_text()})


def test_the_page_draws(page, tmp_path):
    browse(tmp_path, page, f"--screenshot={tmp_path / 'page.png'}")
    from matplotlib.image import imread

    picture = imread(tmp_path / "page.png")
    assert picture.shape[:2] == (1600, 1000)
    # Text, lines and a figure: many more shades than a blank or broken page has.
    assert len({tuple(pixel) for pixel in picture[::4, ::4].reshape(-1, picture.shape[2])}) > 50


def test_the_button_changes_the_colours(page, tmp_path):
    click = "<script>addEventListener('load', () => document.getElementById('theme').click())</script></body>"
    # The page allows no script but its own, so the test's click needs the policy out of the way.
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace("</body>", click)
    assert 'data-theme=""' in browse(tmp_path, page, "--dump-dom")
    assert re.search(r'data-theme="(dark|light)"', browse(tmp_path, open_page, "--dump-dom"))
