"""The Report of an experiment: its figure, claims and provenance, and how it is saved and loaded."""

from __future__ import annotations

import base64
import dataclasses
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._foundation import checks, html
from .._foundation.errors import BadInput
from .._foundation.files import alone_in, writable_folder
from .._foundation.netcdf import load_netcdf, netcdf_bytes
from .._setup.setup import Setup
from ..experiments.base import Claim, Result
from .experiment import Experiment
from .provenance import json_safe
from .report_files import KIND, check_file, read_report, write_report


@dataclasses.dataclass(frozen=True)
class Report:
    """Figure, claims and provenance of one run of an experiment."""

    experiment: Experiment
    result: Result
    claims: tuple[Claim, ...]
    facts: Mapping[str, Any]

    def __post_init__(self):
        do = "use festina.run(name), or Report.load(folder)"
        checks.instance(self.experiment, "experiment", Experiment, do)
        checks.instance(self.result, "result", Result, do)
        for claim in checks.listed(self.claims, "claims", "a list of claims", do, empty=True):
            checks.instance(claim, "claims", Claim, do)
        checks.mapping(self.facts, "facts", "what report.json holds, a dict", do)

    @property
    def as_expected(self) -> bool:
        return all(claim.as_expected for claim in self.claims)

    def figure(self) -> Any:
        """The experiment's figure, drawn anew from the data."""
        from .._figures.style import styled

        with styled():
            return self.experiment.module.figure(self.result)

    def networks(self) -> dict[str, Any]:
        """A picture of every gated network of the run, drawn anew, by the name of its file; none of other nets."""
        from .._figures.style import styled

        pictures = {}
        with styled():
            for file, labels in self.facts.get("networks", {}).items():
                setup = self.result.setups.get(labels[0])
                if setup is None:  # of a report that was loaded
                    setup = Setup.from_json(json.dumps(self.facts["setup"][labels[0]]))
                pictures[file] = setup.net.draw(setup.first_task)
        return pictures

    def to_dict(self) -> dict[str, Any]:
        """What report.json holds."""
        return {**self.facts, "claims": [json_safe(dataclasses.asdict(claim)) for claim in self.claims]}

    def save(self, folder: str | Path) -> Path:
        """Write report.json, data.nc, figure.svg and figure.png, and network-1.svg, … if there are gated networks.

        All are made before the first is written, and report.json, which has checksums of them and of itself, is moved
        to its place last: what was there stays, until all of the new report is on disk.
        """
        with alone_in(writable_folder(folder, "folder")) as folder:
            self._save_into(folder)
        return folder

    def _save_into(self, folder: Path) -> None:
        """`save` into a folder that this run has for itself."""
        from .._figures.style import picture_bytes, styled

        pictures = self.networks()
        with styled():
            figure = self.figure()
            files = {
                "data.nc": netcdf_bytes(self.result.data),
                "figure.svg": picture_bytes(figure, "svg"),
                "figure.png": picture_bytes(figure, "png"),
                **{file: picture_bytes(picture, "svg") for file, picture in pictures.items()},
            }
        write_report(folder, self.to_dict(), files)

    @classmethod
    def load(cls, folder: str | Path) -> Report:
        """Read what `save` wrote, if it is as it was written."""
        folder = checks.path(folder, "folder")
        facts = read_report(folder / "report.json")
        try:
            claims = tuple(Claim(**claim) for claim in facts.pop("claims"))
            experiment = Experiment.named(facts["experiment"])
        except (TypeError, BadInput) as error:
            raise BadInput(
                f"{folder / 'report.json'} has other claims than festina's ({error})", KIND, "run the experiment again"
            ) from None
        if "files" in facts:
            check_file(folder, "data.nc", facts["files"])
        else:
            warnings.warn(f"{folder} has no checksums, so damage may pass unseen; run it again", stacklevel=2)
        return cls(experiment, Result(load_netcdf(folder / "data.nc")), claims, facts)

    def _repr_html_(self) -> str:
        from .._figures.style import picture_bytes

        picture = base64.b64encode(picture_bytes(self.figure(), "png")).decode()
        image = f'<img src="data:image/png;base64,{picture}" alt="{html.escape(self.experiment.finding)}">'
        rows = [
            (html.mark(claim.as_expected), claim.text, show_number(claim.measured), claim.required, claim.source)
            for claim in self.claims
        ]
        claims = html.table(rows, ("", "claim", "measured", "required", "source"))
        name, finding = self.experiment.name, html.escape(self.experiment.finding)
        return f"<p><b>{name}</b>: {finding}</p>{image}{claims}"

    def __repr__(self) -> str:
        lines = [f"{self.experiment.name}: {self.experiment.finding}"]
        for claim in self.claims:
            mark = "✓" if claim.holds else "✗"
            note = "" if claim.as_expected else "   ← not as expected"
            if not claim.expected and claim.as_expected:
                note = f"   (known not to reproduce: {claim.reason})"
            lines.append(f"  {mark} {claim.text}: {show_number(claim.measured)} ({claim.required}){note}")
        return "\n".join(lines)


def show_number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
