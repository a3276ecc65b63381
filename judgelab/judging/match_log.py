"""The match log of a standing leaderboard: one SQLite file that grows over runs, a match once and for all.

A match is one verdict about one item and two systems by one judge in one presentation. Its key: the version of the
board (protocol and items, by their hashes), judge, the judge's configuration, item, unordered pair, the system that was
shown first, pass and repeat. A match without preference counts and is stored with its reason; it is replaced once the
same match comes with a preference. A preference is never replaced: the same one again is the same match, another one is
a conflict, none at all changes nothing.

Versions are never mixed unasked: :meth:`MatchLog.matches` wants to be told which one, or that all are meant.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from judgelab.errors import DataError, LedgerError
from judgelab.judging import match_log_schema as schema
from judgelab.judging.match_rules import MATCH_COLUMNS, MATCH_KEY, checked_matches, without_keys

__all__ = ["Added", "MatchLog", "comparable", "mixing_notes"]

SOURCES = ("run", "import")
_FROM_ADDITION = ("run", "source", "added_at")
_COLUMNS = (*MATCH_COLUMNS, *schema.VERSION_COLUMNS, *_FROM_ADDITION)
_TYPES: dict[str, Any] = dict.fromkeys(_COLUMNS, "str") | {
    "repeat": "int64", "words_x": "float64", "words_y": "float64"
}  # fmt: skip
_FIND = (  # by the index `one_match`, which orders the pair as SQLite does
    "SELECT id, preference FROM matches WHERE version = ? AND item_id = ? AND judge = ? AND config_sha256 = ? "
    "AND min(system_x, system_y) = min(?, ?) AND max(system_x, system_y) = max(?, ?) "
    "AND first = ? AND pass = ? AND repeat = ?"
)
_STORED = ("version", *MATCH_COLUMNS, *_FROM_ADDITION)
_INSERT = f"INSERT INTO matches ({', '.join(_STORED)}) VALUES ({', '.join('?' * len(_STORED))})"
_REPLACE = "UPDATE matches SET preference = ?, reason = ?, run = ?, source = ?, added_at = ? WHERE id = ?"


@dataclass(frozen=True)
class Added:
    """What :meth:`MatchLog.add` did with the matches it was given; added, already and replaced sum up to them.

    Attributes
    ----------
    added
        Matches that the log did not have.
    already
        Matches that it had, which are left as they were.
    conflicting
        Matches that it has with another preference: 0, since ``add`` refuses these as a whole.
    replaced
        Matches that it had without a preference and now has with one.
    """

    added: int
    already: int
    conflicting: int = 0
    replaced: int = 0


class MatchLog(schema.LogFile):
    """The matches of a board in one file. Use as a context manager; several processes may add at once."""

    def add(
        self,
        matches: pd.DataFrame,
        *,
        run: str,
        study_id: str,
        protocol_sha256: str,
        items_sha256: str,
        rubric_version: str,
        prompt_version: str,
        systems: Sequence[str],
        source: str = "run",
    ) -> Added:
        """Add matches of one version in one transaction: all of them or none. Adding them again changes nothing.

        Parameters
        ----------
        matches
            See :func:`judgelab.judging.match_rules.checked_matches` for its columns. Others are not stored. With
            ``source="import"`` their added_at is kept; else (``run``) it is the time of this call (UTC).
        run, study_id
            Where the matches are from.
        protocol_sha256, items_sha256
            The version. ``""`` is a version too: of matches of which nobody knows the protocol.
        rubric_version, prompt_version
            What the version's protocol says of them: the same at every addition.
        systems
            The board's systems; nobody else may have a match. Further ones may come with later additions.

        Raises
        ------
        DataError
            If a row is no match (every kind of problem is told), or a name looks like a key.
        LedgerError
            If a match is stored with another preference (how many, and the first), the version is stored with another
            study, rubric or prompt version, or the file cannot be written. Nothing was written.
        """
        if source not in SOURCES:
            raise DataError(f"source {source!r} is none of {', '.join(SOURCES)}")
        names = {"run": run, "study_id": study_id, "rubric_version": rubric_version, "prompt_version": prompt_version}
        names |= {"protocol_sha256": protocol_sha256, "items_sha256": items_sha256}
        secret = [name for name, value in names.items() if without_keys(value) != value]
        if secret:
            raise DataError(f"{', '.join(secret)} looks like a key, which a match log must not hold; nothing was added")
        table = checked_matches(matches, where="matches", systems=systems)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        given = table["added_at"] if source == "import" and "added_at" in table else pd.Series(None, table.index, "str")
        times = [now if missing else time for time, missing in zip(given, given.isna(), strict=True)]
        with self._explained(), self._transaction():
            version = self._version_id(names, systems, now)
            found = self._add_all(version, table, [(run, source, time) for time in times])
            self._db.execute(
                "INSERT INTO additions (added_at, run, source, version, added, replaced, already) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (now, run, source, version, found.added, found.replaced, found.already),
            )
        return found

    def matches(
        self,
        *,
        version: tuple[str, str] | None = None,
        judges: Sequence[str] | None = None,
        systems: Sequence[str] | None = None,
        mix: bool = False,
    ) -> pd.DataFrame:
        """The matches in the order in which they came, undecided ones among them.

        Parameters
        ----------
        version
            (protocol_sha256, items_sha256), each as short as it is unmistakable.
        judges, systems
            Only matches by these judges, only matches of which both systems are among these; names that the log does
            not have have no matches.
        mix
            Whether several versions may be in one table (see :func:`mixing_notes` and :func:`comparable`).

        Returns
        -------
        DataFrame
            ``MATCH_COLUMNS`` (first and preference may be missing), protocol_sha256, items_sha256, study_id,
            rubric_version, prompt_version, run, source, added_at. No rows if nothing that is there is asked for.

        Raises
        ------
        LedgerError
            If several versions match and ``mix`` is not given, or ``version`` is none or several of the log.
        """
        wanted, values = ["1"], list[Any]()
        if version is not None:
            wanted.append("v.protocol_sha256 = ? AND v.items_sha256 = ?")
            values += self._whole_version(version)
        for chosen, column in ((judges, "judge"), (systems, "system_x"), (systems, "system_y")):
            if chosen is not None:
                wanted.append(f"m.{column} IN (SELECT value FROM json_each(?))")
                values.append(json.dumps(list(chosen)))
        columns = ", ".join(f"{'v' if name in schema.VERSION_COLUMNS else 'm'}.{name}" for name in _COLUMNS)
        table = self._frame(
            f"SELECT {columns} FROM matches m JOIN versions v ON v.id = m.version "
            f"WHERE {' AND '.join(wanted)} ORDER BY m.id",
            values,
            dtype=object,
        )
        table["first"] = table["first"].where(table["first"] != "")
        table = table.astype(_TYPES)
        parts = [part for _, part in schema.by_version(table)] if not mix else []
        if len(parts) > 1:
            first = tuple(str(parts[0][name].iloc[0])[:8] for name in schema.VERSION)
            more = f"; and {len(parts) - 6} more" if len(parts) > 6 else ""
            raise LedgerError(
                f"{self._where}: these {len(table)} matches are of {len(parts)} versions, which are not mixed unasked: "
                f"{'; '.join(schema.described(part) for part in parts[:6])}{more}. "
                f"Pass version={first!r} for one of them, or mix=True for all"
            )
        return table

    def versions(self) -> pd.DataFrame:
        """One row a version, in the order in which they came.

        study_id, rubric_version, prompt_version, protocol_sha256, items_sha256, matches (undecided ones too), items
        (that have a match), systems and judges (tuples of names), first_seen, last_added (UTC, of the additions).
        """
        table = self._frame(
            "SELECT v.study_id, v.rubric_version, v.prompt_version, v.protocol_sha256, v.items_sha256, "
            "count(m.id) AS matches, count(DISTINCT m.item_id) AS items, v.systems, "
            "json_group_array(DISTINCT m.judge) FILTER (WHERE m.judge IS NOT NULL) AS judges, v.first_seen, "
            "(SELECT max(a.added_at) FROM additions a WHERE a.version = v.id) AS last_added "
            "FROM versions v LEFT JOIN matches m ON m.version = v.id GROUP BY v.id ORDER BY v.id",
            dtype=object,
        )
        table["systems"] = table["systems"].map(lambda names: tuple(json.loads(names)))
        table["judges"] = table["judges"].map(lambda names: tuple(sorted(json.loads(names))))
        texts = [name for name in table if name not in ("matches", "items", "systems", "judges")]
        return table.astype(dict.fromkeys(texts, "str") | {"matches": "int64", "items": "int64"})

    def counts(self) -> pd.DataFrame:
        """One row a system that has a match, by name: system, matches, undecided, judges, items, versions (counts)."""
        either = " UNION ALL ".join(f"SELECT {name} AS system, * FROM matches" for name in ("system_x", "system_y"))
        table = self._frame(
            "SELECT system, count(*) AS matches, sum(preference IS NULL) AS undecided, "
            "count(DISTINCT judge) AS judges, count(DISTINCT item_id) AS items, count(DISTINCT version) AS versions "
            f"FROM ({either}) GROUP BY system ORDER BY system",
            dtype=object,
        )
        return table.astype({"system": "str"} | dict.fromkeys(table.columns[1:], "int64"))

    def _version_id(self, names: dict[str, str], systems: Sequence[str], now: str) -> int:
        """The version's number in the file; a new version is noted, a known one must be what it was."""
        columns = [*schema.VERSION_COLUMNS, "systems", "first_seen"]
        key = [names[name] for name in schema.VERSION]
        query = f"SELECT id, {', '.join(columns)} FROM versions WHERE protocol_sha256 = ? AND items_sha256 = ?"
        row = self._db.execute(query, key).fetchone()
        if row is None:
            values = [*(names[name] for name in schema.VERSION_COLUMNS), json.dumps(list(dict.fromkeys(systems))), now]
            marks = ", ".join("?" * len(columns))
            cursor = self._db.execute(f"INSERT INTO versions ({', '.join(columns)}) VALUES ({marks})", values)
            return int(cursor.lastrowid or 0)
        stored = dict(zip(("id", *columns), row, strict=True))
        other = [
            f"{name} {stored[name]!r}, not {names[name]!r}"
            for name in schema.VERSION_COLUMNS
            if stored[name] != names[name]
        ]
        if other:
            where = f"protocol {schema.short(key[0])} with items {schema.short(key[1])}"
            raise LedgerError(f"{self._where}: {where} is there with {'; '.join(other)}; nothing was written")
        every = list(dict.fromkeys([*json.loads(stored["systems"]), *systems]))
        self._db.execute("UPDATE versions SET systems = ? WHERE id = ?", (json.dumps(every), stored["id"]))
        return int(stored["id"])

    def _add_all(self, version: int, table: pd.DataFrame, origins: list[tuple[str, str, str]]) -> Added:
        """Store each match that is not there; the caller holds the transaction."""
        plain = table.astype(object).where(table.notna(), None)
        plain["first"] = plain["first"].map(lambda name: name or "")
        added, already, replaced, conflicts = 0, 0, 0, list[str]()
        rows = plain[list(MATCH_COLUMNS)].itertuples(index=False, name=None)
        for row, origin in zip(rows, origins, strict=True):
            match = dict(zip(MATCH_COLUMNS, row, strict=True))
            preference = match["preference"]
            item, judge, config, x, y, *shown_as = (match[name] for name in MATCH_KEY)
            known = self._db.execute(_FIND, (version, item, judge, config, x, y, x, y, *shown_as)).fetchone()
            if known is None:
                self._db.execute(_INSERT, (version, *row, *origin))
                added += 1
            elif preference is None or preference == known[1]:
                already += 1
            elif known[1] is None:
                self._db.execute(_REPLACE, (preference, match["reason"], *origin, known[0]))
                replaced += 1
            else:
                conflicts.append(
                    f"item {item!r}, {x} and {y}, judge {judge!r}, pass {match['pass']!r}, repeat {match['repeat']}: "
                    f"{known[1]} is there, {preference} was given"
                )
        if conflicts:
            raise LedgerError(
                f"{self._where}: {len(conflicts)} of {len(table)} matches are there with another preference; "
                f"first {conflicts[0]}. Nothing was written"
            )
        return Added(added=added, already=already, replaced=replaced)

    def _whole_version(self, version: tuple[str, str]) -> tuple[str, str]:
        """The one version of the log that is meant by the beginnings of its hashes."""
        table = self._frame(f"SELECT {', '.join(schema.VERSION)} FROM versions ORDER BY id", dtype=object)
        known = [(str(protocol), str(items)) for protocol, items in table.itertuples(index=False, name=None)]
        meant = [one for one in known if one == tuple(version)]
        meant = meant or [one for one in known if all(a.startswith(b) for a, b in zip(one, version, strict=True))]
        if len(meant) != 1:
            there = ", ".join(f"({schema.short(one[0])}, {schema.short(one[1])})" for one in meant or known)
            what = f"{len(meant)} versions begin with" if meant else "no version begins with"
            raise LedgerError(
                f"{self._where}: {what} {tuple(version)!r}; there is (protocol, items): {there or 'none'}"
            )
        return meant[0]


def mixing_notes(matches: pd.DataFrame) -> tuple[str, ...]:
    """What is mixed in a table of matches: sentences for people, none if all are of one version.

    They say how many versions; of each its matches, systems and items, and how many of these other versions have as
    well; what that means for a ranking. Read are system_x, system_y, item_id, protocol_sha256, items_sha256, study_id
    and rubric_version; a DataError names those that are missing.
    """
    parts = [part for _, part in schema.by_version(matches)]
    if len(parts) < 2:
        return ()
    kinds = (("items_sha256", "sets of items"), ("protocol_sha256", "protocols"), ("rubric_version", "rubrics"))
    counts = {what: matches[name].nunique(dropna=False) for name, what in kinds}
    counted = ", ".join(f"{what}: {count}" for what, count in counts.items())
    notes = [f"{len(matches)} matches of {len(parts)} versions are mixed ({counted})."]
    systems = [set(part["system_x"]) | set(part["system_y"]) for part in parts]
    items = [set(part["item_id"].dropna()) - {""} for part in parts]
    for number, part in enumerate(parts):
        met, asked = (len(sets[number] & set().union(*sets[:number], *sets[number + 1 :])) for sets in (systems, items))
        alone = "" if met else " No match joins its systems to the others: their strengths cannot be compared."
        notes.append(
            f"{schema.described(part)}: {met} of {len(systems[number])} systems and {asked} of {len(items[number])} "
            f"items are in other versions too.{alone}"
        )
    if counts["sets of items"] > 1:
        notes.append("An item id in two sets of items may stand for two different texts.")
    if counts["rubrics"] > 1:
        notes.append("Verdicts by different rubrics answer different questions.")
    return tuple(notes)


def comparable(matches: pd.DataFrame) -> pd.DataFrame:
    """Which versions in a table of matches are of the same items and the same rubric, and so may be taken together.

    ``matches`` are as in :func:`mixing_notes`. One row a version: group (from 1, in order of appearance; the same
    number is the same items and rubric), items_sha256, rubric_version, protocol_sha256, study_id, matches (a count).
    """
    columns = ["group", "items_sha256", "rubric_version", "protocol_sha256", "study_id", "matches"]
    groups: dict[tuple[str, str], int] = {}
    rows = []
    for (protocol, items), part in schema.by_version(matches):
        rubric = part["rubric_version"].iloc[0]
        group = groups.setdefault((items, rubric), len(groups) + 1)
        rows.append((group, items, rubric, protocol, part["study_id"].iloc[0], len(part)))
    types = dict.fromkeys(columns, "str") | {"group": "int64", "matches": "int64"}
    return pd.DataFrame(rows, columns=columns).astype(types).sort_values("group", kind="stable", ignore_index=True)
