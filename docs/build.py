"""Build the documentation site: python docs/build.py [--out site] [--reports FOLDER].

The gallery shows the reports of experiments. `--reports` is a folder that `festina reproduce --quick` filled; without
it they are made in docs/_build/reports, where finished ones are kept.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
REPORTS = HERE / "_build" / "reports"


def build(out: Path, reports: Path, *, fresh: bool = False, partial: bool = False) -> int:
    """Run Sphinx, with warnings as errors; returns its exit status."""
    from sphinx.cmd.build import main

    with tempfile.TemporaryDirectory() as nothing_read:
        read = nothing_read if fresh else str(HERE / "_build" / "doctrees")
        words = ["-b", "html", "-W", "--keep-going", "-q", "-d", read, *["-a"] * fresh]
        words += ["-D", f"festina_reports={reports.resolve()}", "-D", f"festina_partial={int(partial)}"]
        return main([*words, str(HERE), str(out)])


def make_reports(folder: Path) -> None:
    """Run the quick preset of every experiment that has no finished report in the folder."""
    from festina._reporting.reproduce import reproduce

    reproduce([], quick=True, out=folder, jobs=max(1, (os.cpu_count() or 1) // 2), tell=print)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE.parent / "site", help="the folder of the built site")
    parser.add_argument("--reports", type=Path, help="a folder of finished reports of experiments")
    parser.add_argument("--partial", action="store_true", help="allow experiments without a report")
    parser.add_argument("--fresh", action="store_true", help="read every page again")
    chosen = parser.parse_args()
    if chosen.reports is None and not chosen.partial:
        make_reports(REPORTS)
    status = build(chosen.out, chosen.reports or REPORTS, fresh=chosen.fresh, partial=chosen.partial)
    if status == 0:
        print(f"The site: {chosen.out.resolve() / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
