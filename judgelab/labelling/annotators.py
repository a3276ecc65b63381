"""Names of people in other tools, e-mail addresses or numbers, as reviewers' names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from judgelab.errors import DataError, LabelError
from judgelab.labelling.tasks import check_reviewer

__all__ = ["read_renames", "reviewer_names"]


def read_renames(options: Iterable[str]) -> dict[str, str]:
    """Options ``OLD=NEW`` as a mapping.

    Raises
    ------
    LabelError
        If an option has another form, or NEW is no name for a reviewer, or OLD is named twice.
    """
    renames: dict[str, str] = {}
    for option in options:
        old, sign, new = (part.strip() for part in option.rpartition("="))
        if not (old and sign and new):
            raise LabelError(f"--reviewer {option}: OLD=NEW is needed, for example {option.strip('=')}=anna")
        if old in renames:
            raise LabelError(f"--reviewer {option}: {old} is renamed twice")
        check_reviewer(new)
        renames[old] = new
    return renames


def reviewer_names(annotators: Mapping[str, Sequence[str]], renames: Mapping[str, str], where: str) -> dict[str, str]:
    """A reviewer's name for each annotator.

    Parameters
    ----------
    annotators
        Every way in which a file names a person, by the one that is unique; the last of them makes the name.
    renames
        New names, by any of those ways.
    where
        The file, for messages.

    Returns
    -------
    dict
        The name of each annotator. Of an e-mail address, what stands before the ``@``; a character that no
        reviewer's name may have becomes ``-``.

    Raises
    ------
    DataError
        If two annotators become one name, a name cannot be used, or a new name is for nobody in the file.
    """
    names, used = {}, set()
    for annotator, ways in annotators.items():
        chosen = [way for way in (annotator, *ways) if way in renames]
        used |= set(chosen)
        names[annotator] = renames[chosen[0]] if chosen else _name((annotator, *ways)[-1])
    problems = [
        f"{old} is nobody in the file; it has {', '.join(annotators) or 'no annotator'}"
        for old in renames
        if old not in used
    ]
    owners: dict[str, str] = {}
    for annotator, name in names.items():
        first = owners.setdefault(name.lower(), annotator)
        if first != annotator:
            both = " and ".join(", ".join((person, *annotators[person])) for person in (first, annotator))
            problems.append(f"{both} would both become {name}; name one with --reviewer OLD=NEW")
        try:
            check_reviewer(name)
        except LabelError:
            problems.append(f"{annotator!r} makes no name for a reviewer; give one with --reviewer OLD=NEW")
    if problems:
        raise DataError(f"{where}: {'; '.join(problems)}; nothing was imported")
    return names


def _name(way: str) -> str:
    local = way.split("@")[0] if "@" in way else way
    return re.sub("[^A-Za-z0-9_.-]", "-", local).lstrip("_.-")
