"""The rules of one match: its columns, its key, what may stand in them, and no provider's key anywhere."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from judgelab.errors import DataError
from judgelab.study.protocol import TIE
from judgelab.study.secrets import looks_like_a_key

__all__ = ["MATCH_COLUMNS", "MATCH_KEY", "NO_REASON", "TIES", "checked_matches", "without_keys"]

NO_REASON = "no reason given"
MATCH_COLUMNS = (
    *("judge", "config_sha256", "item_id", "category", "pass", "repeat", "system_x", "system_y", "first"),
    *("preference", "reason", "words_x", "words_y"),
)
MATCH_KEY = ("item_id", "judge", "config_sha256", "system_x", "system_y", "first", "pass", "repeat")
_TEXTS = tuple(name for name in MATCH_COLUMNS if name not in ("repeat", "words_x", "words_y"))
_KEPT_MISSING = ("first", "preference")  # elsewhere a missing text is ""
_PASSES = ("original", "swapped", "")
TIES = ("tie", "draw")
_WORDS = re.compile(r"[^\s\"'`=:,;()<>\[\]{}|]+")


def checked_matches(
    table: pd.DataFrame, *, where: str, place: str = "row", places: Sequence[int] | None = None,
    systems: Sequence[str] | None = None, filled: bool = True,
) -> pd.DataFrame:  # fmt: skip
    """Matches with every column of :data:`MATCH_COLUMNS`, or one error that tells every kind of bad row.

    Parameters
    ----------
    table
        system_x, system_y, preference (one of the two, or tie or draw in any case); the other columns of
        :data:`MATCH_COLUMNS` and added_at (ISO 8601 with a time zone) where it has them. Missing texts become ``""``,
        missing numbers of words NaN; first and preference stay missing. A reason that is a list becomes JSON.
    where, place, places
        How messages call the table, its rows, and each row (from 1 by default).
    systems
        The only systems that may have a match; None: any.
    filled
        Give a match with neither preference nor reason :data:`NO_REASON`; else it is refused.

    Returns
    -------
    DataFrame
        New, in the given order. Without a column repeat, matches whose item or judge is unknown are numbered among
        their likes (0, 1, ...), for two of them are two matches; others have repeat 0.

    Raises
    ------
    DataError
        If a column is missing or a row breaks a rule: how many, the first, what is allowed. Keys are never shown.
    """
    missing = [name for name in ("system_x", "system_y", "preference") if name not in table]
    if missing:
        raise DataError(f"{where}: missing column {', '.join(missing)}")
    clean = pd.DataFrame(index=pd.RangeIndex(len(table)))
    for name in _TEXTS:
        values = table[name] if name in table else [None] * len(table)
        gap = None if name in _KEPT_MISSING else ""
        clean[name] = pd.Series([_text(value) or gap for value in values], dtype=object)
    rules = _Rules(where, place, list(places) if places is not None else list(range(1, len(table) + 1)))
    _check_systems(clean, rules)
    for name in ("system_x", "system_y") if systems is not None else ():
        strange = ~clean[name].isin(list(systems or ()))
        rules.refuse(f"have in {name} none of {', '.join(systems or ()) or 'no systems'}", strange, clean[name])
    if filled:
        clean.loc[clean["preference"].isna() & (clean["reason"] == ""), "reason"] = NO_REASON
    rules.refuse("have neither a preference nor a reason why", clean["preference"].isna() & (clean["reason"] == ""))
    rules.refuse("have a pass outside original, swapped and none", ~clean["pass"].isin(_PASSES), clean["pass"])
    for name in ("words_x", "words_y"):
        rules.read(clean, table, name, _words, "a number of words from 0", math.nan)
    if "weight" in table:
        rules.refuse(
            "have a weight other than 1 (a row is one match)", table["weight"].map(_float) != 1, table["weight"]
        )
    if "repeat" in table:
        rules.read(clean, table, "repeat", _whole, "a whole number from 0", 0)
    else:
        clean["repeat"] = _numbered(clean)
    if "added_at" in table:
        rules.read(clean, table, "added_at", _utc, "a time by ISO 8601 with a time zone (2024-05-01T12:00:00Z)", None)
    rules.done()
    types: dict[str, Any] = {name: "str" for name in (*_TEXTS, "added_at") if name in clean}
    return clean.astype(types | {"words_x": "float64", "words_y": "float64", "repeat": "int64"})


def without_keys(text: str) -> str:
    """A text with each word that has the form of a provider's key left out.

    >>> without_keys("better, sk-abcdefghijkl")
    'better, [a key, left out]'
    """
    return _WORDS.sub(lambda word: "[a key, left out]" if looks_like_a_key(word[0]) else word[0], text)


class _Rules:
    """Offenders by kind of problem; all kinds are told at once."""

    def __init__(self, where: str, place: str, places: list[int]) -> None:
        self.where, self.place, self.places = where, place, places
        self.told: list[str] = []

    def refuse(self, kind: str, wrong: pd.Series, values: Any = None) -> None:
        """Note the rows that are ``wrong``; ``values`` are shown of the first, unless they are secret."""
        offenders = [number for number, bad in enumerate(wrong) if bad]
        if offenders:
            value = "" if values is None else f"{_short(list(values)[offenders[0]])} in "
            first = f"{value}{self.place} {self.places[offenders[0]]}"
            self.told.append(f"{len(offenders)} of {len(self.places)} {self.place}s {kind}; first {first}")

    def read(
        self, clean: pd.DataFrame, table: pd.DataFrame, name: str, reader: Callable[[Any], Any], allowed: str, gap: Any
    ) -> None:
        """Put a column of ``table`` into ``clean`` as ``reader`` reads it: None is a value that is not ``allowed``."""
        values = list(table[name]) if name in table else [None] * len(table)
        found = [gap if _text(value) in (None, "") else reader(value) for value in values]
        wrong = [new is None and _text(value) not in (None, "") for new, value in zip(found, values, strict=True)]
        self.refuse(f"do not have {allowed} in {name}", pd.Series(wrong, dtype=bool), values)
        clean[name] = pd.Series([gap if bad else new for new, bad in zip(found, wrong, strict=True)], dtype=object)

    def done(self) -> None:
        """Raise if anything was noted."""
        if len(self.told) == 1:
            raise DataError(f"{self.where}: {self.told[0]}; nothing was taken")
        if self.told:
            head = f"{self.where}: {len(self.told)} kinds of problem; nothing was taken"
            raise DataError("\n  ".join([head, *self.told]))


def _check_systems(clean: pd.DataFrame, rules: _Rules) -> None:
    """Names of systems, what is preferred and what was shown first; a key in a name is not repeated."""
    for name in ("system_x", "system_y"):
        rules.refuse(f"leave {name} without a name", clean[name].str.strip() == "")
        around = (clean[name].str.strip() != clean[name]) & (clean[name].str.strip() != "")
        rules.refuse(f"have blanks around the name of {name}", around, clean[name])
        rules.refuse(f"call {name} tie or draw", clean[name].str.casefold().isin(TIES), clean[name])
    clean["preference"] = clean["preference"].map(lambda name: TIE if name and name.casefold() in TIES else name)
    x, y, preference = clean["system_x"], clean["system_y"], clean["preference"]
    rules.refuse("compare a system with itself", (x == y) & (x.str.strip() != ""), x)
    known = preference.isna() | (preference == x) | (preference == y) | (preference == TIE)
    rules.refuse(f"prefer neither of their two systems nor {TIE}", ~known, preference)
    first = clean["first"].isna() | (clean["first"] == x) | (clean["first"] == y)
    rules.refuse("show first what is neither of their two systems", ~first, clean["first"])
    for name in ("judge", "config_sha256", "item_id", "category", "system_x", "system_y"):
        keys = {value for value in clean[name].unique() if without_keys(value) != value}
        rules.refuse(f"have in {name} what looks like a key, which a log must not hold", clean[name].isin(keys))
    clean["reason"] = clean["reason"].map(without_keys).astype(object)


def _numbered(clean: pd.DataFrame) -> pd.Series:
    """Running numbers of matches of which nobody knows the item or the judge, among their likes; else 0."""
    x, y = clean["system_x"], clean["system_y"]
    likes = clean[["item_id", "judge", "config_sha256", "first", "pass"]].assign(
        a=x.where(x <= y, y), b=y.where(x <= y, x), first=clean["first"].fillna("")
    )
    running = likes.groupby(list(likes.columns), sort=False).cumcount()
    return running.where((clean["item_id"] == "") | (clean["judge"] == ""), 0)


def _text(value: Any) -> str | None:
    r"""A value as text UTF-8 can hold (half a surrogate pair is spelled ``\ud83d``); None if there is none."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, list | tuple | dict):
        return _text(json.dumps(value, ensure_ascii=False))
    return None if value is None or pd.isna(value) else str(value)


def _words(value: Any) -> float | None:
    number = _float(value)
    return number if number is not None and 0 <= number < math.inf else None


def _whole(value: Any) -> int | None:
    number = _float(value)
    return int(number) if number is not None and 0 <= number < 2**53 and number == int(number) else None


def _float(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _utc(value: Any) -> str | None:
    """A time as this log writes it: UTC, to the second."""
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return None if time.tzinfo is None else time.astimezone(UTC).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError):
        return None


def _short(value: object) -> str:
    text = "a key (not shown)" if without_keys(str(value)) != str(value) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
