"""Raising a cap of a frozen run: the protocol stays as it is, and the ledger says what was changed."""

from __future__ import annotations

import math

from judgelab.errors import RunError
from judgelab.judging.budget import CAPS
from judgelab.judging.ledger import Ledger
from judgelab.judging.locks import hold_run
from judgelab.study.run import Run

__all__ = ["raise_cap"]


def raise_cap(run: Run, change: str) -> str:
    """Raise one cap of a judge of a frozen run, as ``JUDGE.CAP=VALUE``: noted in the ledger, the protocol stays.

    Returns
    -------
    str
        What was done, for people.

    Raises
    ------
    RunError
        If there is no such judge or cap, or the value is not above the cap that holds now.
    """
    place, _, text = change.partition("=")
    name, _, key = place.strip().rpartition(".")
    judge = next((each for each in run.study.judges if each.name == name and hasattr(each, "limits")), None)
    if judge is None or key not in CAPS:
        judges = [each.name for each in run.study.judges if hasattr(each, "limits")]
        raise RunError(
            f"--raise {change!r}: the form is JUDGE.CAP=VALUE with a judge of {', '.join(judges) or 'none'} "
            f"and a cap of {', '.join(CAPS)}"
        )
    with hold_run(run.folder), Ledger(run.path("ledger.sqlite")) as ledger:
        before = ledger.caps(name).get(key, getattr(judge.limits, key))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if before is None or not before < value < math.inf:
            told = "there is no such cap" if before is None else f"a number above {before:g} is needed"
            raise RunError(f"--raise {change!r}: {told}")
        ledger.raise_cap(name, key, value)
    return f"limits.{key} of judge {name} raised from {before:g} to {value:g} for run {run.name}"
