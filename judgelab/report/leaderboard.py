"""The leaderboard for people: as a table of plain texts, and as the HTML table that a team publishes.

Names of systems and reasons are untrusted: all text is escaped. What colours and lines say is also said by letters and
words, for published pages without the rules of ``report.css`` lose both, and some readers cannot see them.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import seaborn as sns

from judgelab.measure.coding import check_columns
from judgelab.report.formulas import without_formulas
from judgelab.report.words import number_text, percent, plural

__all__ = ["LeaderboardShown", "leaderboard_table", "letters_of", "shown_leaderboard", "text_of", "why_outside"]

COLUMNS = (
    "rank", "ranks possible", "system", "tied groups", "Elo points [interval]", "Elo over orders",
    "win rate [interval]", "matches", "note",
)  # fmt: skip
NEEDED = (
    "system", "rank", "rank_low", "rank_high", "letters", "strength_elo", "strength_low", "strength_high", "elo",
    "elo_spread", "win_rate", "win_low", "win_high", "wins", "losses", "ties", "matches", "undecided", "few", "note",
)  # fmt: skip
PRIOR = "strength by a prior"
NONE = "-"
SPACE = "\u00a0"  # where no line may break; it does not collapse either
NOTHING = "No system is ranked: there is no match (n = 0 matches)."
PROVENANCES = {
    "simulated": "Simulated: this shows the method, not how good the systems are.",
    "known_by_construction": "The answers were made so that the order of the systems is known.",
}
STRIP = 52  # groups up to which each letter has its own place
_COLOURS = [sns.color_palette("colorblind").as_hex()[place] for place in (0, 1, 2, 3, 4, 5, 9, 6)]
_CELL = "text-align:left;vertical-align:top;padding:4px 8px"  # for JupyterLab; report.css says the same by class
_LINE = "border-top:2px solid #6b6b6b"
_FEW = "opacity:0.65"  # grey on light and on dark themes


def leaderboard_table(table: pd.DataFrame) -> pd.DataFrame:
    """A leaderboard as plain texts, for the start page of the report and for a README.

    Parameters
    ----------
    table
        ``table`` of :class:`judgelab.measure.leaderboard.Leaderboard`; may be without rows.

    Returns
    -------
    pandas.DataFrame
        One row a system in the order given, all text, index 1, 2, ...: ``rank`` (``2.5`` where two tie, ``-`` without a
        strength), ``ranks possible`` (``1 to 3``), ``system``, ``tied groups`` (letters: systems that share one are not
        told apart), ``Elo points [interval]`` (Bradley and Terry's strength), ``Elo over orders`` (mean ± standard
        deviation over the orders of the matches), ``win rate [interval]`` (``(110 + 28/2)/158 = 0.785 [0.71, 0.85]``:
        wins and half the ties, over the matches), ``matches`` (decided, and how many have no verdict), ``note``.

    Raises
    ------
    ValueError
        If a column is missing.

    Examples
    --------
    >>> made = leaderboard_table(pd.DataFrame([{"system": "a", "rank": 1.0, "rank_low": 1.0, "rank_high": 2.0,
    ...     "letters": "a", "strength_elo": 1172.1, "strength_low": 1112.8, "strength_high": 1242.0, "elo": 1096.1,
    ...     "elo_spread": 2.83, "win_rate": 0.785, "win_low": 0.7125, "win_high": 0.8466, "wins": 110, "losses": 20,
    ...     "ties": 28, "matches": 158, "undecided": 0, "few": False, "note": ""}]))
    >>> made.iloc[0, 4:8].tolist()
    ['1172 [1113, 1242]', '1096 ± 2.8', '(110 + 28/2)/158 = 0.785 [0.71, 0.85]', '158']
    """
    _check(table)
    lines = []
    for _, row in table.iterrows():
        few = "few matches" if row["few"] and row["matches"] else ""
        prior = PRIOR if PRIOR in text_of(row["note"]) else ""
        lines.append(
            [
                _rank(row["rank"]),
                _ranks(row),
                str(row["system"]),
                text_of(row["letters"]),
                _points(row),
                _over_orders(row),
                " ".join(part for part in _win_rate(row) if part),
                _matches(row),
                "; ".join(part for part in (why_outside(row["note"]), prior, few) if part),
            ]
        )
    return pd.DataFrame(lines, columns=list(COLUMNS), index=pd.RangeIndex(1, len(lines) + 1), dtype=object)


def letters_of(text: Any) -> list[str]:
    """The letters of a leaderboard's row, each with the number that follows it.

    Examples
    --------
    >>> letters_of("aba2")
    ['a', 'b', 'a2']
    """
    return re.findall(r"[A-Za-z]\d*", text_of(text))


def text_of(value: Any) -> str:
    """A value of a column of texts, empty where it is missing: a file that is read again has NaN for an empty text."""
    return "" if pd.isna(value) else str(value)


def why_outside(note: Any) -> str:
    """Why the matches alone give a system no strength, from the note of its row; empty where they do."""
    parts = text_of(note).removeprefix("undefined:").split(";")
    return "; ".join(part for part in (each.strip() for each in parts) if part and part != PRIOR)


@dataclass(frozen=True)
class LeaderboardShown:
    """A leaderboard that shows itself as a table in a notebook and as text elsewhere.

    Attributes
    ----------
    table
        As :func:`shown_leaderboard` got it.
    minimum_matches
        Systems with fewer are grey.
    lines
        What stands below the table.
    """

    table: pd.DataFrame
    minimum_matches: int
    lines: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        if self.table.empty:
            return "\n".join([NOTHING, *self.lines])
        few = self.table["matches"] < self.minimum_matches
        told = leaderboard_table(self.table.assign(few=few))
        told["system"] = [" ".join(name.split()) for name in told["system"]]
        return "\n".join([told.to_string(index=False, max_colwidth=None, justify="left"), *self.lines])

    def _repr_html_(self) -> str:
        below = "".join(f"<br><small>{html.escape(line)}</small>" for line in self.lines)
        if self.table.empty:
            return f'<p class="sentence">{html.escape(NOTHING)}{below}</p>'
        names = ("rank", "possible", "groups", "system", "Elo points", "over orders", "win rate", "won / tied / lost",
                 "matches")  # fmt: skip
        head = "".join(f'<th scope="col" style="{_CELL}">{name}</th>' for name in names)
        groups = list(dict.fromkeys(letter for text in self.table["letters"] for letter in letters_of(text)))
        rows, above = [], None
        for _, row in self.table.iterrows():
            rows.append(self._row(row, above, groups))
            above = row
        lines = "<br>".join(f"<small>{html.escape(line)}</small>" for line in self.lines)
        foot = f'<tfoot><tr><td colspan="{len(names)}" style="{_CELL}">{lines}</td></tr></tfoot>'
        return without_formulas(
            f'<table class="leaderboard" style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody>{foot}</table>"
        )

    def _row(self, row: pd.Series, above: pd.Series | None, groups: list[str]) -> str:
        """One system."""
        own, rated = letters_of(row["letters"]), pd.notna(row["strength_elo"])
        few = int(row["matches"]) < self.minimum_matches
        begins = above is not None and _begins(row, above)
        colour = groups.index(own[0]) % len(_COLOURS) if own else None
        kinds = ["new-group"] * begins + ["few"] * few + ["unrated"] * (not rated)
        kinds += [] if colour is None else [f"group-{colour + 1}"]
        line, edge = f";{_LINE}" if begins else "", "transparent" if colour is None else _COLOURS[colour]
        first = f"{_CELL};border-left:6px solid {edge}{line}"
        rate, interval = _win_rate(row)
        told = [part for part in (_without(row), few * f"few matches: fewer than {self.minimum_matches}") if part]
        cells = [
            html.escape(_kept(_ranks(row))),
            _strip(own, groups),
            f"<strong>{html.escape(str(row['system']))}</strong>",
            _small(*_parted(_points(row))) if rated else f"no strength: {html.escape(why_outside(row['note']))}",
            html.escape(_kept(_over_orders(row))),
            _small(rate.rpartition(" = ")[2], interval),
            _kept(f"{int(row['wins'])} / {int(row['ties'])} / {int(row['losses'])}"),
            "<br>".join([str(int(row["matches"])), *(f"<small>{html.escape(part)}</small>" for part in told)]),
        ]
        if rated and (why := why_outside(row["note"])):
            cells[2] += f"<br><small>{html.escape(why)}</small>"
        looks = {2: ";overflow-wrap:anywhere;min-width:8em", 3: ";min-width:9em"}  # the system and its strength
        other = "".join(
            f'<td dir="auto" style="{_CELL}{line}{looks.get(place, "")}">{cell}</td>'
            for place, cell in enumerate(cells)
        )
        look = f' style="{_FEW}"' if few else ""
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        return f'<tr{kind}{look}><th scope="row" style="{first}">{html.escape(_rank(row["rank"]))}</th>{other}</tr>'


def shown_leaderboard(
    table: pd.DataFrame,
    *,
    minimum_matches: int,
    provenance: str = "none",
    notes: Sequence[str] = (),
    ci_level: float | None = None,
) -> LeaderboardShown:
    """A leaderboard to publish.

    Parameters
    ----------
    table
        ``table`` of :class:`judgelab.measure.leaderboard.Leaderboard`; may be without rows.
    minimum_matches
        Systems with fewer decided matches are grey and say "few matches".
    provenance
        ``simulated`` and ``known_by_construction`` are said below the table; ``human`` and ``none`` are not.
    notes
        Further lines below the table, as plain text.
    ci_level
        Level of the intervals; named where it is given.

    Returns
    -------
    LeaderboardShown
        Best first, systems without a strength last with the reason. A line stands above each row that shares no letter
        with the row above it; the border on the left has the colour of the row's first letter. Classes of the rows:
        ``new-group``, ``few``, ``unrated``, ``group-1`` to ``group-8``. The output depends on the arguments alone.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    _check(table)
    level = "Intervals" if ci_level is None else f"{percent(ci_level)} intervals"
    lines = []
    if len(table):
        lines = [
            f"Elo points are strengths by Bradley and Terry's model. {level} stand in brackets. Systems that share a "
            "letter are not told apart; a line parts those that share none. Ranks and groups hold for all pairs at "
            "once and allow for few items, so that they can be wider than single intervals suggest. Over orders: mean "
            "Elo ± standard deviation over the orders of the matches. Win rate: (wins + ties / 2) / matches."
        ]
        few = int((table["matches"] < minimum_matches).sum())
        lines += [f"Grey: {plural(few, 'system')} with fewer than {minimum_matches} matches."] if few else []
        if any(PRIOR in text_of(note) for note in table["note"]):
            lines.append("A normal prior made the strengths finite; without it some have no bound.")
        if table["strength_elo"].isna().any():
            lines.append("Systems without a strength may stand anywhere; ranks count the others.")
    lines += [PROVENANCES[provenance]] if provenance in PROVENANCES else []
    return LeaderboardShown(table.reset_index(drop=True), minimum_matches, (*lines, *(str(note) for note in notes)))


def _check(table: pd.DataFrame) -> None:
    """A leaderboard of no match has the column of systems alone."""
    check_columns(table, NEEDED if len(table) else ("system",), "table")


def _begins(row: pd.Series, above: pd.Series) -> bool:
    """Whether a group begins: no letter is shared, or from here on there are no strengths."""
    own, before = set(letters_of(row["letters"])), set(letters_of(above["letters"]))
    return not own & before if own or before else False


def _strip(own: list[str], groups: list[str]) -> str:
    """The letters, each in its own place, so that a group is seen as a column."""
    if len(groups) > STRIP:
        return html.escape("".join(own))
    return f"<samp>{''.join(letter if letter in own else SPACE for letter in groups)}</samp>"


def _small(text: str, more: str) -> str:
    """A value and, smaller, its interval, on one line."""
    return html.escape(text) + (f"{SPACE}<small>{html.escape(_kept(more))}</small>" if more else "")


def _kept(text: str) -> str:
    """A text that is not broken into lines."""
    return text.replace(" ", SPACE)


def _parted(text: str) -> tuple[str, str]:
    """A value and what stands behind it in brackets."""
    value, _, rest = text.partition(" ")
    return value, rest


def _rank(rank: float) -> str:
    return NONE if pd.isna(rank) else f"{rank:g}"


def _ranks(row: pd.Series) -> str:
    """The rank set."""
    low, high = row["rank_low"], row["rank_high"]
    if pd.isna(low) or pd.isna(high):
        return NONE
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _points(row: pd.Series) -> str:
    """The strength as Elo points with its interval."""
    return _with_interval(row["strength_elo"], row["strength_low"], row["strength_high"], 0)


def _over_orders(row: pd.Series) -> str:
    """The mean Elo over orders with its spread."""
    if pd.isna(row["elo"]):
        return NONE
    spread = "" if pd.isna(row["elo_spread"]) else f" ± {number_text(float(row['elo_spread']), 1)}"
    return f"{number_text(float(row['elo']), 0)}{spread}"


def _win_rate(row: pd.Series) -> tuple[str, str]:
    """``(110 + 28/2)/158 = 0.785`` and ``[0.71, 0.85]``."""
    if pd.isna(row["win_rate"]):
        return NONE, ""
    wins, ties, matches = (int(row[name]) for name in ("wins", "ties", "matches"))
    counted = f"({wins} + {ties}/2)/{matches}" if ties else f"{wins}/{matches}"
    bounds = _bounds(row["win_low"], row["win_high"], 2)
    return f"{counted} = {number_text(float(row['win_rate']))}", bounds


def _with_interval(value: float, low: float, high: float, digits: int) -> str:
    return NONE if pd.isna(value) else f"{number_text(float(value), digits)} {_bounds(low, high, digits)}"


def _bounds(low: float, high: float, digits: int) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return "(no interval)"
    return f"[{number_text(float(low), digits)}, {number_text(float(high), digits)}]"


def _matches(row: pd.Series) -> str:
    """Decided matches, and how many have no verdict."""
    without = _without(row)
    return f"{int(row['matches'])}" + (f" ({without})" if without else "")


def _without(row: pd.Series) -> str:
    return f"{int(row['undecided'])} without a verdict" if row["undecided"] else ""
