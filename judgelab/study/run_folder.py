"""The folder that a run writes to: its tables and its figures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.study.tables import read_table, write_bytes, write_csv

__all__ = ["RunFolder"]

DOTS_PER_INCH = 144


class RunFolder:
    """What every run has: a name, a folder, and where its human labels come from."""

    name: str
    folder: Path

    @property
    def provenance(self) -> str:
        """Where the human labels come from: ``human``, ``simulated``, or ``none`` without labels."""
        return "none"

    @property
    def shows_provenance(self) -> bool:
        """Whether there are human labels whose origin every table must say."""
        return False

    def path(self, *parts: str) -> Path:
        """A path inside the run's folder."""
        return self.folder.joinpath(*parts)

    def save_table(self, frame: pd.DataFrame, name: str) -> pd.DataFrame:
        """Write ``tables/<name>.csv`` and return what was written.

        In a study with human labels every table ends in the column ``provenance`` (human or simulated).
        """
        table = frame.drop(columns="provenance", errors="ignore").reset_index(drop=True)
        if self.shows_provenance:
            table["provenance"] = self.provenance
        write_csv(table, self.path("tables", f"{name}.csv"))
        return table

    def table(self, name: str) -> pd.DataFrame:
        """Read ``tables/<name>.csv`` back: names as text, counts as whole numbers, empty notes as ``""``.

        Raises
        ------
        RunError
            If no stage has written it yet.
        """
        return read_table(self.path("tables", f"{name}.csv"))

    def save_figure(self, figure: Any, name: str) -> None:
        """Write a matplotlib figure as ``figures/<name>.png``; equal figures give equal bytes (no date, no version)."""
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        write_bytes(content.getvalue(), self.path("figures", f"{name}.png"))
