"""Sentences on a ranking, each made from its tables: who is ahead and by how much, who cannot be ranked, and Elo.

What is said of all systems at once (who can be the best, who is told apart from whom) comes from rank sets and letters
that hold for all systems together; a gap has an interval of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pandas as pd

from judgelab.measure.comparability import named
from judgelab.report.leaderboard import PRIOR, letters_of, text_of, why_outside
from judgelab.report.picking import rows_of
from judgelab.report.sentences import Sentences
from judgelab.report.words import interval_text, listed, number_text, percent, plural, reason_text

__all__ = ["elo_sentences", "matches_text", "points", "ranking_sentences", "value_text"]

PLACED = "some systems are joined to the others by no match, and the prior alone places them"
TOP = 3  # gaps that are told, from the top
KINDS = {
    "no match": "Without a match that was decided: {}; nothing is known of them: too little data.",
    "undefeated": "Undefeated, so that the matches alone give no upper bound: {}.",
    "winless": "Winless, so that the matches alone give no lower bound: {}.",
    "no chain of matches": "Not joined to the others by matches, so that they cannot be compared: {}.",
    "no chain of wins": "Joined to the others by wins in one direction only: {}.",
}


def ranking_sentences(
    table: pd.DataFrame, gaps: pd.DataFrame, *, minimum_matches: int, ci_level: float, judges: Sequence[str]
) -> Sentences:
    """Who is ahead and by how much, who can be told apart, who has too few matches, and what made the strengths.

    Parameters
    ----------
    table, gaps
        Of :class:`judgelab.measure.leaderboard.Leaderboard`; may be without rows.
    minimum_matches
        The fewest decided matches of a system of which something is concluded.
    ci_level
        Level of the intervals and of the rank sets.
    judges
        Names of the judges whose verdicts these are.

    Returns
    -------
    Sentences
        Who is ahead: "supported" if the first can have no other rank, "undecided" if others can be the best too, "too
        little data" if the first has fewer matches than ``minimum_matches``. Then the gaps at the top, who is told
        apart from the first and from the last, few matches, systems without a strength, priors, matches without
        a verdict.
    """
    of = f" by {listed(judges)}" if len(judges) < 4 else f" by {len(judges)} judges"
    of = of if any(judges) else ""  # a file of matches need not say who judged
    total = int(table["matches"].sum()) // 2 if len(table) else 0
    if not total:
        silent = int(table["undecided"].sum()) // 2 if len(table) else 0
        more = f", {plural(silent, 'match', 'matches')} without a verdict" if silent else ""
        return Sentences([f"Nobody is ranked: no match was decided{of} (n = 0 matches{more}): too little data."])
    board = _Board(table, minimum_matches, ci_level, f"n = {matches_text(total)}{of}", _parted(gaps))
    found = [board.ahead()]
    if int(table["ties"].sum()) < 2 * total:
        found += _gaps(gaps, table, minimum_matches)
    found += [*board.apart(), board.few(), *board.outside(), *board.strengths()]
    silent = int(table["undecided"].sum()) // 2
    if silent:
        found.append(f"Without a verdict and left out: {silent} of {matches_text(total + silent)}.")
    return Sentences(found)


class _Board:
    """A leaderboard with at least one decided match."""

    def __init__(self, table: pd.DataFrame, minimum: int, ci_level: float, n: str, parted: bool) -> None:
        self.table, self.minimum, self.level, self.n = table, minimum, percent(ci_level), n
        self.prior = any(PRIOR in text_of(note) for note in table["note"])
        self.placed = parted and self.prior  # between parts that no match joins nothing but the prior tells
        self.rated = table[table["strength_elo"].notna()].sort_values("rank", kind="stable")
        self.best = self.rated[self.rated["rank_low"] == 1]

    def ahead(self) -> str:
        """Who is the best."""
        if int(self.table["ties"].sum()) == int(self.table["matches"].sum()):
            return f"Every match is a tie ({self.n}): nobody is ahead."
        if self.table["matches"].sum() == 2:
            won = self.table.loc[self.table["wins"] == 1, "system"].iloc[0]
            return f"{won} won the only match ({self.n}): too little data."
        if len(self.rated) < 2:
            who = f"only {self.rated['system'].iloc[0]} has" if len(self.rated) else "no system has"
            return f"Nobody is ahead, because {who} a strength ({self.n}): too little data."
        first, among = self.rated.iloc[0], len(self.rated)
        shared = list(self.rated.loc[self.rated["rank"] == first["rank"], "system"])
        told = f"{first['system']} has the highest strength: {self._record(first)}"
        if len(shared) > 1:
            told = f"{named(shared)} share the highest strength"
        outcome = "undecided"
        if first["rank_low"] == first["rank_high"] == 1:
            others = str(self.rated["system"].iloc[1]) if among == 2 else f"the {among - 1} others"
            sure = f"{first['system']} is surely ahead of {others} ({self.level}): {self._record(first)}"
            told, outcome = (told, "undecided") if self.placed else (sure, "supported")
        else:
            few = self.best.loc[self.best["matches"] < self.minimum, "system"]
            grey = f" (of these with fewer than {self.minimum} matches: {named(list(few))})" if len(few) else ""
            can = f"{len(self.best)} of {among} systems can be the best ({self.level}, all together): "
            told = f"{can}{named(list(self.best['system']))}{grey}; {told}"
        told += f"; {PLACED}" if self.placed else ""
        rest = len(self.table) - among
        told += f"; {plural(rest, 'system')} without a strength may stand anywhere" if rest else ""
        if int(first["matches"]) < self.minimum:
            told += f"; {first['system']} has {matches_text(first['matches'])} of the {self.minimum} required"
            outcome = "too little data"
        return f"{told} ({self.n}): {outcome}."

    def _record(self, row: pd.Series) -> str:
        """Wins and win rate of one system."""
        counted = f"{int(row['wins'])} won, {int(row['ties'])} tied, {int(row['losses'])} lost"
        bounds = interval_text({"ci_low": row["win_low"], "ci_high": row["win_high"]})
        told = "no interval" if bounds == "none" else f"{self.level} interval {bounds}"
        return f"{counted}, win rate {number_text(float(row['win_rate']))}, {told}"

    def apart(self) -> list[str]:
        """How many systems are told apart from the first and from the last."""
        others = len(self.rated) - 1
        if others < 2:
            return []
        told = []
        for place, side, name in ((0, "below", "first"), (-1, "above", "last")):
            own = set(letters_of(self.rated["letters"].iloc[place]))
            count = sum(not own & set(letters_of(text)) for text in self.rated["letters"])
            number = str(count) if count else "none"
            told.append(f"{number} of the {others} others surely {side} the {name}, {self.rated['system'].iloc[place]}")
        placed = f"; {PLACED}" if self.placed else ""
        return [f"Told apart ({self.level}, all pairs together): {told[0]}; {told[1]}{placed}."]

    def few(self) -> str:
        """Who has too few matches."""
        counts = self.table.loc[self.table["matches"] < self.minimum, ["system", "matches"]]
        if counts.empty:
            return (
                f"Every system has at least {matches_text(self.minimum)} (the fewest: {self.table['matches'].min()})."
            )
        told = named([f"{name} ({int(count)})" for name, count in counts.itertuples(index=False)])
        return f"Fewer than {matches_text(self.minimum)}, so that nothing is concluded: {told}: too little data."

    def outside(self) -> list[str]:
        """To whom the matches alone give no strength, by the reason."""
        why = {str(row["system"]): why_outside(row["note"]) for _, row in self.table.iterrows()}
        played = {str(row["system"]): int(row["matches"]) for _, row in self.table.iterrows()}
        said, found = set(), []
        for kind, text in KINDS.items():
            names = [name for name, reason in why.items() if reason.startswith(kind)]
            said.update(names)
            if names:
                counts = "" if kind == "no match" else "{} ({})"
                found.append(
                    text.format(named([counts.format(name, matches_text(played[name])) or name for name in names]))
                )
        other = [f"{name} ({reason})" for name, reason in why.items() if reason and name not in said]
        return [*found, *([f"Without a strength of their own: {named(other)}."] if other else [])]

    def strengths(self) -> list[str]:
        """What made the strengths, and whether they have intervals."""
        rated, every = len(self.rated), len(self.table)
        if not rated:
            return []
        rest = f", of {rated} of {every} systems; the others may stand anywhere" if rated < every else ""
        made = f"The strengths are of the matches alone: no prior was needed{rest}."
        if self.prior:
            made = f"The strengths are of the matches and of a normal prior: without it some have no bound{rest}."
        without = int(self.rated["strength_low"].isna().sum())
        if not without:
            return [made]
        alike = (self.rated["rank_low"] == 1).all() and (self.rated["rank_high"] == rated).all()
        more = ", and no system is told apart from another" if alike else ""
        return [made, f"Strengths without an interval: {without} of {rated}{more}."]


def _parted(gaps: pd.DataFrame) -> bool:
    """Whether there are systems that no chain of matches joins: then some neighbours have no gap for that reason."""
    return len(gaps) > 0 and any("no chain of matches" in text_of(note) for note in gaps["note"])


def _gaps(gaps: pd.DataFrame, table: pd.DataFrame, minimum: int) -> list[str]:
    """The gaps at the top, by Elo."""
    rows = rows_of(gaps, measure="elo_gap")
    played = {str(name): int(count) for name, count in zip(table["system"], table["matches"], strict=True)}
    groups = {str(row["system"]): set(letters_of(row["letters"])) for _, row in table.iterrows()}
    told = []
    for _, row in rows.head(TOP).iterrows():
        above, below = _pair(row, list(played))
        if pd.isna(row["estimate"]):
            told.append(f"from {above} to {below} undefined: {reason_text(row).split(';')[0]}")
            continue
        low, high = float(row["ci_low"]), float(row["ci_high"])
        sure = "supported" if low > 0 else "undecided, the interval holds 0"
        if low > 0 and groups[above] & groups[below]:
            sure = "undecided, for all pairs at once the two are not told apart"
        if math.isnan(low):
            sure = "undecided, no interval"
        elif low == high:
            sure = "undecided, for it is the same in every resample"
        if min(played.get(above, minimum), played.get(below, minimum)) < minimum:
            sure = f"fewer than {minimum} matches, too little data"
        told.append(f"from {above} to {below} {value_text(row, 'match', 'matches', digits=0)}, {row['band']}, {sure}")
    if not told:
        return []
    what = "The gap" if len(rows) == 1 else f"The first {len(told)} of {len(rows)} gaps from the top"
    return [f"{what}, in Elo points: {'; '.join(told)}."]


def elo_sentences(table: pd.DataFrame, gaps: pd.DataFrame) -> Sentences:
    """Whether the order of the matches matters, and whether Elo and Bradley and Terry's model rank alike.

    Parameters
    ----------
    table, gaps
        Of :class:`judgelab.measure.leaderboard.Leaderboard`; may be without rows.

    Returns
    -------
    Sentences
        The largest spread over orders beside the smallest gap, and how many gaps are smaller than the spreads of their
        two systems together; then how many neighbours by strength stand the other way round by Elo, and who is first
        by each of the two, or shares the first place.
    """
    both = table.dropna(subset=["strength_elo", "elo"]) if len(table) else table
    rows = rows_of(gaps, measure="elo_gap").dropna(subset=["estimate"])
    if len(both) < 2 or rows.empty:
        return Sentences(
            [f"Elo: fewer than two systems are rated (n = {plural(len(both), 'system')}): too little data."]
        )
    return Sentences([_orders(table.dropna(subset=["elo"]), rows), _alike(both)])


def _orders(table: pd.DataFrame, rows: pd.DataFrame) -> str:
    """The spreads over orders beside the gaps."""
    spread = {str(name): float(value) for name, value in zip(table["system"], table["elo_spread"], strict=True)}
    if any(math.isnan(value) for value in spread.values()):
        return "Order of the matches: with one order its effect is not known (n = 1 order): too little data."
    gaps = {_pair(row, list(spread)): float(row["estimate"]) for _, row in rows.iterrows()}
    widest, least = max(spread, key=spread.__getitem__), min(gaps, key=gaps.__getitem__)
    turned = [f"{a} over {b}" for (a, b), gap in gaps.items() if spread.get(a, 0.0) + spread.get(b, 0.0) > gap]
    told = (
        f"Order of the matches: it moves a rating by up to {points(spread[widest])} points (standard deviation over "
        f"orders, {widest}); the smallest gap between neighbours is {points(gaps[least])} ({' over '.join(least)})"
    )
    if spread[widest] == 0:
        return f"{told}: no order differs from another."
    which = f", which a single order may turn round ({named(turned)})" if turned else ""
    return f"{told}; gaps smaller than the spreads of their two systems together: {len(turned)} of {len(gaps)}{which}."


def _alike(both: pd.DataFrame) -> str:
    """Neighbours by strength that stand the other way round by Elo."""
    ranked = both.sort_values("rank", kind="stable").round({"strength_elo": 9, "elo": 9}).to_dict("records")
    turned = [
        f"{above['system']} and {below['system']}"
        for above, below in pairwise(ranked)
        if above["strength_elo"] > below["strength_elo"] and above["elo"] < below["elo"]
    ]
    best = {"rank": min(line["rank"] for line in ranked), "elo": max(line["elo"] for line in ranked)}
    strongest, rated = ([str(line["system"]) for line in ranked if line[name] == value] for name, value in best.items())
    first = f"both have {named(strongest)} first"
    if len(strongest) > 1 or len(rated) > 1 or strongest != rated:
        first = f"by strength {_place(strongest)}, by Elo {_place(rated)}"
    counted = f"neighbours that stand the other way round: {len(turned)} of {len(ranked) - 1}"
    counted += f" ({named(turned)})" if turned else ""
    return f"Elo and Bradley and Terry's model rank {'differently' if turned else 'alike'}: {counted}; {first}."


def _place(names: Sequence[str]) -> str:
    """That somebody is first, or who shares the first place."""
    return f"{names[0]} is first" if len(names) == 1 else f"{named(names)} share the first place"


def value_text(row: pd.Series, unit: str, units: str | None = None, *, digits: int = 3, signed: bool = False) -> str:
    """``229 (95 % interval [146, 321], n = 252 matches)``: a value that does not count items; or why there is none."""
    n = f"n = {plural(row['n_used'], unit, units)}"
    value = float(row["estimate"])
    if math.isnan(value):
        return f"undefined ({n}: {reason_text(row)})"
    bounds = [number_text(float(row[name]), digits) for name in ("ci_low", "ci_high")]
    known = math.isfinite(float(row["ci_low"])) and math.isfinite(float(row["ci_high"]))
    told = f"{percent(float(row['ci_level']))} interval [{', '.join(bounds)}]" if known else "no interval"
    return f"{points(value, signed, digits)} ({told}, {n})"


def points(value: float, signed: bool = False, digits: int = 1) -> str:
    """A number, with ``+`` before it if it is above 0 and that matters."""
    text = number_text(float(value), digits)
    return f"+{text}" if signed and value > 0 and float(text) != 0 else text


def matches_text(count: float) -> str:
    """``1 match``, ``2 matches``."""
    return plural(count, "match", "matches")


def _pair(row: pd.Series, systems: Sequence[str]) -> tuple[str, str]:
    """The two systems of a gap; names may have a bar themselves."""
    text = str(row["slice"]).removeprefix("gap=")
    for name in systems:
        if text.startswith(f"{name}|") and text[len(name) + 1 :] in systems:
            return name, text[len(name) + 1 :]
    above, _, below = text.partition("|")
    return above, below
