"""One published figure beside ours, compared as it was printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from judgelab.report.words import plural

__all__ = ["COLUMNS", "Figure", "as_printed", "figure_frame", "row_value"]

COLUMNS = ["source", "figure", "published", "ours", "equal", "n", "remark"]
NUMBER = re.compile(r"^(?P<sign>[-−]?)(?P<whole>\d*)(?:\.(?P<fraction>\d+))?(?P<unit> ?%)?$")


@dataclass(frozen=True)
class Figure:
    """A figure of a publication and what the lab computes for it from the same data.

    Attributes
    ----------
    source
        Data set, and where in it: file, table or key.
    figure
        What is counted or estimated, of which judge.
    published
        The figure as printed, or as text of a number for files of floating-point numbers.
    ours
        Our number (a share for a percentage), or a text such as ``92 / 100``.
    n
        Items, pairs or answers behind it.
    digits
        Digits after the point that are compared; None: as many as are printed.
    remark
        Which convention makes the two comparable, or why they differ. A difference needs one.
    """

    source: str
    figure: str
    published: str
    ours: float | str
    n: int
    digits: int | None = None
    remark: str = ""

    @property
    def shown(self) -> str:
        """Our number with the published one's digits and unit."""
        return self.ours if isinstance(self.ours, str) else as_printed(self.ours, self.published, self.digits)

    @property
    def printed(self) -> str:
        """The published number with the digits that are compared."""
        return _canonical(self.published, self.digits)

    @property
    def equal(self) -> bool:
        """Whether both are equal to the compared digit."""
        return self.shown == self.printed


def as_printed(value: float, published: str, digits: int | None = None) -> str:
    """A number in the form of a published one: its digits after the point, a percentage where it is one.

    Raises
    ------
    ValueError
        If the published text is no number.

    Examples
    --------
    >>> as_printed(0.93549, "93.5%"), as_printed(-0.0158078, "-.015808"), as_printed(105, "422")
    ('93.5%', '-0.015808', '105')
    """
    parts = _parts(published)
    if not math.isfinite(value):
        return "undefined"
    decimals = len(parts["fraction"] or "") if digits is None else digits
    unit = parts["unit"] or ""
    number = f"{100 * value if unit else value:.{decimals}f}"
    return (number.removeprefix("-") if float(number) == 0 else number) + unit


def _canonical(published: str, digits: int | None) -> str:
    """``-.0158`` as ``-0.0158``; cut to ``digits`` by rounding where the source has more."""
    match = NUMBER.match(published)
    if not match:
        return published
    value = float(published.replace("−", "-").rstrip(" %"))
    return as_printed(value / 100 if match["unit"] else value, published, digits)


def _parts(published: str) -> dict[str, str | None]:
    match = NUMBER.match(published)
    if not match:
        raise ValueError(f"{published!r} is no published number")
    return match.groupdict()


def figure_frame(figures: Iterable[Figure]) -> pd.DataFrame:
    """Figures as a table with the columns :data:`COLUMNS`.

    Raises
    ------
    ValueError
        If a figure differs from the published one and does not say why.
    """
    lines = []
    for one in figures:
        if not one.equal and not one.remark:
            raise ValueError(
                f"{one.source}, {one.figure}: published {one.printed}, ours {one.shown}, and nothing says why"
            )
        lines.append((one.source, one.figure, one.printed, one.shown, "yes" if one.equal else "no", one.n, one.remark))
    return pd.DataFrame(lines, columns=COLUMNS)


def row_value(table: pd.DataFrame, measure: str, **where: str) -> pd.Series:
    """The one row of a table of the one shape with this measure and these values (``pass_``, ``slice_``, ...).

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    chosen = table[table["measure"] == measure]
    for name, value in where.items():
        chosen = chosen[chosen[name.rstrip("_")] == value]
    if len(chosen) != 1:
        raise ValueError(f"{plural(len(chosen), 'row')} of {measure} with {where}; 1 is needed")
    return chosen.iloc[0]
