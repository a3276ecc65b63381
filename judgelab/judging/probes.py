"""The probes: matched pairs of calls that differ in one thing, planned as passes of their own.

Every probe asks about the pairs of the plain passes, in the same presentations, with one thing changed; the plain
verdicts are the other half of each matched pair. Which answer is manipulated depends on the human labels and the
protocol's seed, never on what a judge said: a judge's own noise must not choose the pairs on which it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from judgelab.judging.judges.base import Call
from judgelab.judging.passes import PASSES, PassPlan, is_recorded, presentations, recorded_presentations
from judgelab.judging.transformations import transformed, words_added
from judgelab.judging.wording import PLAIN, Wording
from judgelab.study.battery import ANSWER_PROBES
from judgelab.study.items import Item
from judgelab.study.protocol import Study
from judgelab.study.randomisation import first_system, sample
from judgelab.study.run import Run
from judgelab.study.unfrozen import StudyData

__all__ = ["Manipulation", "examples", "left_out", "manipulated_items", "probe_plans", "worse_answers"]

PLAIN_PASSES = ("pairwise_original", "pairwise_swapped")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Manipulation:
    """What a probe does to one answer of a pair: ``item`` with the changed answer of ``system``."""

    item: Item
    system: str


def probe_plans(run: StudyData) -> list[PassPlan]:
    """The passes of all probes of the protocol, judge by judge; none if the protocol names no probe.

    A recorded judge is asked what its record holds; :func:`left_out` says what is not asked.
    """
    probes = run.study.probes
    if not probes.run:
        return []
    chosen = frozenset(sample(run.study.random_seed, [i.item_id for i in run.each_evaluation_item()], probes.items))
    worse = worse_answers(run.reference(), run.study)
    plans = [plan for judge in _judges(run.study) for plan in _plans_of(run.study, judge, chosen, worse)]
    return [plan for plan in plans if is_recorded(plan)]


def left_out(run: StudyData) -> pd.DataFrame:
    """The probes of the protocol that a judge is not asked, with the reason: judge, probe, reason."""
    probes, rows = run.study.probes, []
    plans = {(plan.judge.name, _probe_of(plan)): plan for plan in probe_plans(run)}
    items = run.items() if plans else ()
    asked = {key for key, plan in plans.items() if any(plan.calls(item) for item in items if item.split == plan.split)}
    for judge in run.study.judges:
        for probe in probes.run:
            if (judge.name, probe) in asked or (probes.judges is not None and judge.name not in probes.judges):
                continue
            reason = "the judge has no pairwise pass"
            if "pairwise_original" in run.study.passes_of(judge):
                reason = "the record holds no such call"
                if (judge.name, probe) in plans:
                    reason = "it changes nothing in any of the answers"
                elif probe == "identity" and _identity(run.study, judge) is None:
                    reason = "the judge has no family, and the protocol names no identity"
            rows.append({"judge": judge.name, "probe": probe, "reason": reason})
    return pd.DataFrame(rows, columns=["judge", "probe", "reason"])


def examples(run: Run) -> pd.DataFrame:
    """What each probe does to an answer, on the first pair that it is asked about, to be looked at.

    Returns
    -------
    DataFrame
        probe, item_id, system, before, after, words_added: one row for each probe of the protocol that changes answers.
    """
    study, rows = run.study, []
    chosen = sample(study.random_seed, [item.item_id for item in run.each_evaluation_item()], study.probes.items)
    worse = worse_answers(run.reference(), study)
    identity = next((name for judge in _judges(study) if (name := _identity(study, judge)) is not None), None)
    items = [item for item in run.each_evaluation_item() if item.item_id in set(chosen)]
    for probe in study.probes.run:
        if probe not in ANSWER_PROBES or (probe == "identity" and identity is None):
            continue
        change = manipulated_items(study, probe, worse, identity)
        pair = (study.system_names[0], study.system_names[1])
        found = next((made for item in items if (made := change(item, pair)) is not None), None)
        if found is not None:
            before = next(item.answers[found.system] for item in items if item.item_id == found.item.item_id)
            after = found.item.answers[found.system]
            more = {"before": before, "after": after, "words_added": words_added(before, after)}
            rows.append({"probe": probe, "item_id": found.item.item_id, "system": found.system, **more})
    return pd.DataFrame(rows, columns=["probe", "item_id", "system", "before", "after", "words_added"])


def worse_answers(reference: pd.DataFrame, study: Study) -> dict[tuple[str, str, str], str]:
    """Of each pair the system whose answer people find worse; drawn by the protocol's seed where they do not say.

    Parameters
    ----------
    reference
        One row per item and pair: item_id, system_x, system_y, human.

    Returns
    -------
    dict
        System by item id and pair in the protocol's order.
    """
    worse = {}
    columns = (reference[name] for name in ("item_id", "system_x", "system_y", "human"))
    for item_id, x, y, human in zip(*columns, strict=True):
        if human in (x, y):
            worse[item_id, x, y] = y if human == x else x
        else:
            worse[item_id, x, y] = first_system(study.random_seed, f"worse {item_id}", x, y)
    return worse


def manipulated_items(
    study: Study, probe: str, worse: Mapping[tuple[str, str, str], str], identity: str | None
) -> Callable[[Item, Pair], Manipulation | None]:
    """What makes the changed item of a pair; None where the probe can change nothing.

    The worse answer is changed, except by ``surface_noise``: typos in the better one. The item keeps its hash, so that
    the fence around the answers stays what it was.
    """
    scale = study.direct_scale
    names = [criterion.name for criterion in scale.criteria]
    texts = [criterion.description for criterion in scale.criteria]

    def change(item: Item, pair: Pair) -> Manipulation | None:
        x, y = sorted(pair, key=study.system_names.index)
        bad = worse.get((item.item_id, x, y)) or first_system(study.random_seed, f"worse {item.item_id}", x, y)
        system = (y if bad == x else x) if probe == "surface_noise" else bad
        before = item.answers[system]
        after = transformed(
            probe, before, seed=study.random_seed, item_id=item.item_id, criteria=names, criterion_texts=texts,
            identity=identity or "",
        )  # fmt: skip
        if after == before:
            return None
        changed = replace(
            item, answers={**item.answers, system: after}, words={**item.words, system: len(after.split())}
        )
        return Manipulation(changed, system)

    return change


def _judges(study: Study) -> list[Any]:
    """The judges that are probed: those that the protocol names, as far as they compare at all."""
    named = study.probes.judges
    return [
        judge
        for judge in study.judges
        if (named is None or judge.name in named) and "pairwise_original" in study.passes_of(judge)
    ]


def _plans_of(
    study: Study, judge: Any, chosen: frozenset[str], worse: Mapping[tuple[str, str, str], str]
) -> Iterator[PassPlan]:
    for probe in study.probes.run:
        if probe == "identical":
            yield _identical(study, judge, chosen)
        elif probe == "labels":
            for letters in study.probes.letters:
                yield from _reworded(
                    study, judge, chosen, probe, f"labels:{'-'.join(letters)}", Wording(letters=letters)
                )
        elif probe == "criterion_order":
            yield from _reworded(study, judge, chosen, probe, probe, Wording(reversed_criteria=True))
        elif probe == "repetition":
            yield from _reworded(study, judge, chosen, probe, probe, PLAIN, range(1, study.probes.repeats))
        elif probe in ANSWER_PROBES:
            identity = _identity(study, judge)
            if probe != "identity" or identity is not None:
                yield from _changed(study, judge, chosen, probe, manipulated_items(study, probe, worse, identity))


def _identity(study: Study, judge: Any) -> str | None:
    """The name that the probe ``identity`` discloses to a judge."""
    name: str | None = study.probes.identity or judge.family
    return name


def _shown(study: Study, judge: Any, pass_name: str) -> Callable[[Item], list[tuple[str, ...]]]:
    """The presentations of an item in a plain pass, as this judge saw them."""
    recorded = recorded_presentations(judge, *PASSES[pass_name])

    def of(item: Item) -> list[tuple[str, ...]]:
        drawn = presentations(item, study.system_names, pass_name)
        return [recorded.get((item.item_id, frozenset(shown)), shown) for shown in drawn]

    return of


def _reworded(
    study: Study,
    judge: Any,
    chosen: frozenset[str],
    probe: str,
    label: str,
    wording: Wording,
    repeats: Sequence[int] = (0,),
) -> Iterator[PassPlan]:
    """The plain passes with another wording, or once more."""
    for pass_name in _plain_passes(study, judge):
        pass_, shown = f"{label}/{PASSES[pass_name][1]}", _shown(study, judge, pass_name)

        def calls(item: Item, pass_: str = pass_, shown: Any = shown) -> list[Call]:
            if item.item_id not in chosen:
                return []
            return [
                Call("pairwise", pass_, item, pair, repeat, wording, probe)
                for pair in shown(item)
                for repeat in repeats
            ]

        yield PassPlan(judge, pass_, "pairwise", pass_, calls, wording)


def _changed(
    study: Study,
    judge: Any,
    chosen: frozenset[str],
    probe: str,
    change: Callable[[Item, Pair], Manipulation | None],
) -> Iterator[PassPlan]:
    """The plain passes with one answer of each pair changed."""
    for pass_name in _plain_passes(study, judge):
        pass_, shown = f"{probe}/{PASSES[pass_name][1]}", _shown(study, judge, pass_name)

        def calls(item: Item, pass_: str = pass_, shown: Any = shown) -> list[Call]:
            pairs = shown(item) if item.item_id in chosen else []
            changed = [(pair, change(item, pair)) for pair in pairs]
            return [
                Call("pairwise", pass_, made.item, pair, 0, PLAIN, probe, made.system)
                for pair, made in changed
                if made is not None
            ]

        yield PassPlan(judge, pass_, "pairwise", pass_, calls)


def _identical(study: Study, judge: Any, chosen: frozenset[str]) -> PassPlan:
    """Every answer against itself."""

    def calls(item: Item) -> list[Call]:
        systems = study.system_names if item.item_id in chosen else ()
        return [Call("pairwise", "identical/original", item, (name, name), 0, PLAIN, "identical") for name in systems]

    return PassPlan(judge, "identical/original", "pairwise", "identical/original", calls)


def _plain_passes(study: Study, judge: Any) -> list[str]:
    return [name for name in PLAIN_PASSES if name in study.passes_of(judge)]


def _probe_of(plan: PassPlan) -> str:
    return plan.pass_.partition("/")[0].partition(":")[0]
