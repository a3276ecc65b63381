"""Readers of published data sets: each makes items, human labels and recorded verdicts of a foreign layout.

``IMPORTERS`` has them by the name that `judgelab import` knows. Each takes the folder and the run's name, writes
``outputs/<run>/source`` and, if missing, ``params/<run>.yaml``, and returns that path and notes for the user.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from judgelab.study.sources.llmbar import import_llmbar

__all__ = ["IMPORTERS", "import_llmbar"]

IMPORTERS: dict[str, Callable[[Path, str], tuple[Path, list[str]]]] = {"llmbar": import_llmbar}
