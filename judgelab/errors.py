"""Every error that judgelab raises on purpose.

    JudgelabError
    ├── ProtocolError (ValueError)   the protocol is not valid
    │   └── DriftError               a frozen run was given another protocol, other items or other labels
    ├── DataError (ValueError)       a file of items, labels or records cannot be used as it is
    ├── RunError (RuntimeError)      a run folder is missing, incomplete, busy or cannot be written
    │   ├── LedgerError              the ledger cannot be opened, read or written
    │   └── LabelError               a reviewer's journal is in use, cannot be read or written, or refuses a decision
    └── JudgeError (RuntimeError)    a judge cannot be asked at all (key, address, model file)

Each message says what is wrong, where, how many of how many, and what is allowed. In a notebook these
errors show their message alone: a traceback into this package helps nobody who has a typo in a file.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "DriftError",
    "JudgeError",
    "JudgelabError",
    "LabelError",
    "LedgerError",
    "ProtocolError",
    "RunError",
]


class JudgelabError(Exception):
    """An error whose message is meant for the user."""

    def _render_traceback_(self) -> list[str]:
        """IPython asks for this in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class ProtocolError(JudgelabError, ValueError):
    """The protocol has an unknown key, a wrong type or an impossible value."""


class DriftError(ProtocolError):
    """A frozen run was given a protocol, items or labels that differ from the frozen ones."""


class DataError(JudgelabError, ValueError):
    """A file of items, human labels or recorded verdicts cannot be used as it is."""


class RunError(JudgelabError, RuntimeError):
    """A run folder is missing, incomplete, in use by another process, or cannot be written."""


class LedgerError(RunError):
    """The ledger cannot be opened, read or written. What it already holds is kept."""


class LabelError(RunError):
    """A reviewer's journal is in use, cannot be read or written, or refuses a decision. What it holds is kept."""


class JudgeError(JudgelabError, RuntimeError):
    """A judge cannot be asked at all: no key, wrong address, unknown model, damaged model file."""
