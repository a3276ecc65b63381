"""Which stages can answer their question for a study that was imported, and which cannot and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgelab.judging.judges.recorded import records_of
from judgelab.judging.match_files import read_matches
from judgelab.project import resolve, shown
from judgelab.report.position_data import in_both_orders
from judgelab.report.words import plural
from judgelab.study.items import read_items
from judgelab.study.match_study import is_match_study, parse_match_study
from judgelab.study.protocol import Study, parse_study, read_params

__all__ = ["stage_lines"]

NUMBERS = tuple(f"{number:02d}" for number in range(11))  # of the stages, 00 first
ONE_ORDER = "the file holds one order only (n = 0 of {total} judged in both orders)"


@dataclass(frozen=True)
class _Recorded:
    """What the judges' records hold: single scores, pairs in any order, and pairs in both, of all judges together."""

    scores: int
    pairs: int
    both: int


def stage_lines(params: Path) -> list[str]:
    """What to expect of `judgelab run`: the stages that can run, and a line for each that cannot be answered.

    Parameters
    ----------
    params
        A parameter file whose judges are recorded, or that names matches.

    Returns
    -------
    list of str
        First the stages whose question can be answered, then those that cannot, each with the reason.

    Raises
    ------
    ProtocolError, DataError
        If the parameters, or a file that they name, cannot be used.
    """
    values = read_params(params).get("study") or {}
    if is_match_study(values):
        study = parse_match_study(values, where=shown(params))
        both, total = in_both_orders(read_matches(resolve(study.matches)))
        return _lines(_of_matches(both, total), "no answers, no rubric and no reference are in a study of matches")
    return _lines(_of_study(parse_study(values, where=shown(params))), "")


def _of_matches(both: int, total: int) -> dict[str, str]:
    """The reason by stage, empty where it can run; stages that are not named are not there at all."""
    found = ONE_ORDER.format(total=plural(total, "comparison"))
    return {"06": "" if both else found, "09": ""}


def _of_study(study: Study) -> dict[str, str]:
    asked = [judge for judge in study.judges if judge.kind != "control"]
    made = _recorded(study) if all(judge.kind == "recorded" for judge in asked) else _planned(study)
    total = plural(len(read_items(study).items), "item")
    labels = study.human_labels
    verdicts = made.scores + made.pairs
    nobody = "the file holds no verdict of a judge; name your own under judges"
    unlabelled = "there are no labels of people in the file"
    one_order = ONE_ORDER.format(total=total)
    reasons = {
        "01": "",
        "02": "" if labels else unlabelled,
        "03": "" if made.scores else "the file holds no scores of single answers" if verdicts else nobody,
        "04": "" if made.pairs else "the file holds no comparison of two answers" if verdicts else nobody,
        "05": nobody if not verdicts else "" if labels else unlabelled,
        "06": "" if made.both else one_order if made.pairs else "the file holds no comparison of two answers",
        "07": "" if verdicts else nobody,
        "08": "" if study.repairs.run else "no repair can be computed: each needs both orders, or new verdicts",
        "09": "" if made.pairs else "the file holds no comparison of two answers",
        "10": "" if verdicts and labels else nobody if not verdicts else f"{unlabelled}, so that no use is supported",
    }
    if labels and labels.provenance == "answer_key":
        reasons["02"] = "the reference is an answer key: nobody labelled, so that no people agree or disagree"
    return reasons


def _recorded(study: Study) -> _Recorded:
    scores = pairs = both = 0
    for judge in study.judges:
        if judge.kind != "recorded":
            continue
        orders: dict[tuple[str, frozenset[str]], set[tuple[str, ...]]] = {}
        for item_id, strategy, pass_, presentation, _ in records_of(judge):
            scores += strategy == "direct"
            if strategy == "pairwise" and pass_ in ("original", "swapped"):
                orders.setdefault((item_id, frozenset(presentation)), set()).add(presentation)
        pairs += len(orders)
        both += sum(len(shown_orders) > 1 for shown_orders in orders.values())
    return _Recorded(scores, pairs, both)


def _planned(study: Study) -> _Recorded:
    """What judges that can still be asked will give."""
    passes = {name for judge in study.judges if judge.kind != "control" for name in study.passes_of(judge)}
    return _Recorded(*(int(name in passes) for name in ("direct", "pairwise_original", "pairwise_swapped")))


def _lines(reasons: Mapping[str, str], others: str) -> list[str]:
    able = [number for number, reason in reasons.items() if not reason]
    lines = [f"stages that can run: {_listed(able)}"]
    lines += [f"{number} cannot be answered: {reason}" for number, reason in reasons.items() if reason]
    rest = [number for number in NUMBERS[1:] if number not in reasons]
    return [*lines, *([f"{_listed(rest)} cannot run: {others}"] if rest else [])]


def _listed(numbers: Sequence[str]) -> str:
    """Neighbours as ``01 to 06``, others one by one."""
    return ", ".join(_runs(NUMBERS, numbers)) or "none"


def _runs(order: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    run: list[str] = []
    for number in [*order, ""]:
        if number in numbers and number:
            run.append(number)
            continue
        if len(run) > 2:
            yield f"{run[0]} to {run[-1]}"
        else:
            yield from run
        run = []
