"""The report page in a real browser: it draws, its button works, and nothing is fetched."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess

import pytest

from festina._figures.style import new_figure, predicted, styled, trained
from festina._reporting.page.render import render
from test_page import CLAIM, report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=3000",
    "--window-size=1000,1600",
)


# Measured inside the page: what overflows it, and the least contrast of texts against what is behind them.
MEASURE = """<script>addEventListener('load', () => {
  for (const closed of document.querySelectorAll('details')) closed.open = true;
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let least = 99;
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.closest('svg, script, style') || !node.getClientRects().length) continue;
    const [one, other] = [light(numbers(getComputedStyle(node).color)), light(behind(node))];
    least = Math.min(least, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
  }
  const wide = [...document.querySelectorAll('table, p, h2, pre, dl, figcaption, .formula')].filter((node) =>
    node.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
  parent.document.body.dataset.measured = JSON.stringify({
    inner: innerWidth,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    parts: wide.map((node) => node.outerHTML.slice(0, 80)), least, zooms: document.querySelectorAll('.zoom').length,
  });
})</script></body>"""


def measured(tmp_path, page: str, width: int, *flags: str) -> dict:
    """What a page is like in a frame of this width: no window of the browser is narrower than 500 pixels."""
    # The page allows no script but its own, so the test's needs the policy out of the way.
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace("</body>", MEASURE)
    frame = (
        f'<!doctype html><body><iframe width="{width}" height="900" style="border:0" srcdoc="{html.escape(open_page)}">'
    )
    dom = browse(tmp_path, frame, "--dump-dom", "--window-size=1400,1000", *flags)
    return json.loads(html.unescape(re.search(r'data-measured="([^"]*)"', dom)[1]))


def browse(tmp_path, page: str, *flags: str) -> str:
    return opened(tmp_path, page, *flags).stdout


def opened(tmp_path, page: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """The browser after it has shown a page; where there is none the test is skipped, and in CI it fails."""
    if BROWSER is None:
        # Where .ci/run installs a browser its absence is a failure, not a reason to skip.
        assert not os.environ.get("CI"), "no chromium, although CI installs it"
        pytest.skip("no chromium on this machine")
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, (tmp_path / "index.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    with styled():
        sheet, axes = new_figure()
        trained(axes[0, 0], [0, 1], [[0, 1]], colour="#0072B2")
        predicted(axes[0, 0], [0, 1], [0, 1], colour="#0072B2")
        path = tmp_path_factory.mktemp("figure") / "figure.svg"
        sheet.savefig(path)
    long = "    dW/dt = −∂loss/∂W + " + " + ".join(f"a_{k} (s − λ a_{k})" for k in range(20))
    claims = [
        CLAIM | {"headline": True, "panel": "a"},
        CLAIM,
        CLAIM | {"holds": False, "expected": False, "reason": "x"},
    ]
    one = report(caption="**a** Two lines.", description=f"Depth.\n\n{long}", claims=claims, theme="modes")
    two = report(experiment="another_experiment", theme="gates")
    figures = {name: path.read_text() for name in (one["experiment"], two["experiment"])}
    return render([one, two], figures, folders={one["experiment"]: "one"})


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


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overflows_and_every_text_can_be_read(page, tmp_path, width, dark):
    dressed = page.replace('<html lang="en">', '<html lang="en" data-theme="dark">') if dark else page
    dressed = dressed.replace("root.dataset.theme = localStorage", "void localStorage")  # the page forgets its choice
    seen = measured(tmp_path, dressed, width)
    assert seen["inner"] == width
    assert seen["wide"] <= 0
    assert seen["parts"] == []
    assert seen["least"] >= 4.5  # WCAG AA
    assert seen["zooms"] == 2


def test_the_page_writes_no_errors(page, tmp_path):
    flags = ("--enable-logging=stderr", "--dump-dom")
    # A script that the page does not allow is such an error.
    foreign = page.replace("</body>", "<script>console.error('foreign')</script></body>")
    assert "CONSOLE" in opened(tmp_path, foreign, *flags).stderr
    assert "CONSOLE" not in opened(tmp_path, page, *flags).stderr


def test_no_raw_markup_is_left(page):
    body = re.sub(r"<style.*?</style>|<script.*?</script>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert not re.search(r"\*\*|`|\\\*", re.sub(r"<[^>]+>", "", body))
