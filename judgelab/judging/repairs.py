"""The repairs: other ways of asking a judge, planned as passes of their own on the evaluation items.

What a repair needs to be tuned comes from development items alone: examples, and the plain scores of development
items that thresholds, margins and recalibrations are fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from judgelab.judging.embeddings import EmbeddingSimilarity
from judgelab.judging.examples import Pool, TfidfSimilarity, example_pool, few_shot, question, retrieved
from judgelab.judging.judges.base import Call
from judgelab.judging.passes import PASSES, PassPlan, is_recorded, plain_pass, presentations, recorded_presentations
from judgelab.judging.wording import PLAIN, Example, Wording
from judgelab.study.configuration import asks_a_model
from judgelab.study.items import Item
from judgelab.study.protocol import Study
from judgelab.study.randomisation import sample
from judgelab.study.unfrozen import StudyData

__all__ = ["DEVELOPMENT", "TUNED", "plain_logprobs", "repair_plans", "repaired_judges", "repairs_left_out"]

DEVELOPMENT = "development"  # the plain passes of development items: development/direct
TUNED = ("recalibration", "tie_margin")  # fitted on the plain scores of development items
PAIRWISE = ("pairwise_original", "pairwise_swapped")
Examples = Callable[[Item], tuple[Example, ...]]
_NO_LOGPROBS = ("anthropic", "simulated", "control")  # kinds of judges


def repaired_judges(study: Study) -> list[Any]:
    """The judges that are repaired: those that the protocol names, else all but the controls."""
    named = study.repairs.judges
    return [judge for judge in study.judges if (judge.name in named if named is not None else judge.kind != "control")]


def repair_plans(run: StudyData) -> list[PassPlan]:
    """The passes of all repairs of the protocol that need calls, judge by judge; none if it names none.

    Raises
    ------
    JudgeError
        If an endpoint for embeddings cannot be asked.
    """
    study = run.study
    if not study.repairs.run:
        return []
    chosen = frozenset(sample(study.random_seed, [i.item_id for i in run.each_evaluation_item()], study.repairs.items))
    examples = _examples(run)
    plans = [
        plan
        for judge in repaired_judges(study)
        for repair in (None, *study.repairs.run)
        for plan in (
            _development(study, judge) if repair is None else _plans_of(study, judge, repair, chosen, examples)
        )
    ]
    return [plan for plan in plans if is_recorded(plan)]


def plain_logprobs(study: Study) -> dict[str, list[PassPlan]]:
    """The plain direct passes that bring the log-probabilities of a repair, by its name: it needs no calls there."""
    return {
        repair.name: [
            plain_pass(study, judge, "direct")
            for judge in repaired_judges(study)
            if _has_logprobs(judge, repair) and "direct" in study.passes_of(judge)
        ]
        for repair in study.repairs.run
        if repair.kind == "logprob_scores"
    }


def repairs_left_out(run: StudyData) -> pd.DataFrame:
    """The repairs of the protocol that a judge cannot have, with the reason: judge, repair, reason."""
    study, rows = run.study, []
    asked = {(plan.judge.name, plan.pass_.partition("/")[0]) for plan in repair_plans(run)}
    for judge in repaired_judges(study):
        passes = study.passes_of(judge)
        for repair in study.repairs.run:
            needed = DEVELOPMENT if repair.kind in TUNED else repair.name
            reason = ""
            if repair.kind == "both_presentations":
                reason = "" if "pairwise_swapped" in passes else "the judge has no swapped pass"
            elif repair.kind == "panel":
                reason = "" if judge.name in repair.judges else "the judge is not on the panel"
            elif (judge.name, needed) not in asked and not _has_logprobs(judge, repair):
                reason = _reason(study, judge, repair)
            if reason:
                rows.append({"judge": judge.name, "repair": repair.name, "reason": reason})
    return pd.DataFrame(rows, columns=["judge", "repair", "reason"])


def _reason(study: Study, judge: Any, repair: Any) -> str:
    """Why a judge was not asked for a repair."""
    if repair.kind == "logprob_scores" and judge.kind in _NO_LOGPROBS:
        return "its endpoint gives no log-probabilities" if judge.kind == "anthropic" else "it has no tokens"
    if judge.kind == "recorded":
        return "the record holds no such call"
    if repair.kind in TUNED and not study.split.development_share:
        return "the study has no development items"
    if repair.kind in ("few_shot", "retrieved_examples"):
        return "no development item has a human label of the kind that the examples need"
    return "the judge does not run the pass that the repair changes"


def _development(study: Study, judge: Any) -> Iterator[PassPlan]:
    """The plain scores of development items, where a repair is fitted on them."""
    tuned = any(repair.kind in TUNED for repair in study.repairs.run) and study.split.development_share
    if tuned and "direct" in study.passes_of(judge):
        yield _pass(study, judge, "direct", DEVELOPMENT, PLAIN, None, split="development")


def _plans_of(
    study: Study, judge: Any, repair: Any, chosen: frozenset[str], examples: dict[tuple[str, str], Examples]
) -> Iterator[PassPlan]:
    """The passes of one repair of one judge."""
    own = study.passes_of(judge)
    pairwise = [name for name in PAIRWISE if name in own]
    kind = repair.kind
    if kind in ("verdict_only", "reasoning_first"):
        asked = _with(judge, max_tokens=repair.max_tokens) if kind == "reasoning_first" else judge
        wording = Wording(reasons="first" if kind == "reasoning_first" else "none")
        for name in pairwise or [name for name in own if name == "direct"]:
            yield _pass(study, asked, name, repair.name, wording, chosen)
    elif kind == "level_descriptions" and "direct" in own:
        yield _pass(study, judge, "direct", repair.name, Wording(levels=tuple(sorted(repair.levels.items()))), chosen)
    elif kind in ("few_shot", "retrieved_examples"):
        for strategy in repair.strategies:
            shown = examples.get((repair.name, strategy))
            for name in pairwise if strategy == "pairwise" else [name for name in own if name == "direct"]:
                if shown is not None:
                    yield _pass(study, judge, name, repair.name, PLAIN, chosen, examples=shown)
    elif kind == "logprob_scores" and "direct" in own and not _has_logprobs(judge, repair):
        if judge.kind not in _NO_LOGPROBS:
            yield _pass(study, _with_logprobs(judge, repair.alternatives), "direct", repair.name, PLAIN, chosen)
    elif kind == "self_consistency":
        asked = _with(judge, temperature=repair.temperature)
        for name in pairwise or [name for name in own if name == "direct"]:
            yield _pass(study, asked, name, repair.name, PLAIN, chosen, repeats=range(repair.samples))


def _pass(
    study: Study,
    judge: Any,
    pass_name: str,
    label: str,
    wording: Wording,
    chosen: frozenset[str] | None,
    *,
    split: str = "evaluation",
    repeats: Sequence[int] = (0,),
    examples: Examples | None = None,
) -> PassPlan:
    """A plain pass in another wording, with examples, or several times."""
    strategy, plain = PASSES[pass_name]
    pass_, recorded = f"{label}/{plain}", recorded_presentations(judge, strategy, plain)

    def calls(item: Item) -> list[Call]:
        if chosen is not None and item.item_id not in chosen:
            return []
        drawn = presentations(item, study.system_names, pass_name)
        shown = [recorded.get((item.item_id, frozenset(pair)), pair) for pair in drawn]
        full = wording if examples is None else Wording(examples=examples(item))
        return [Call(strategy, pass_, item, pair, repeat, full) for pair in shown for repeat in repeats]

    return PassPlan(judge, pass_, strategy, pass_, calls, wording, split)


def _examples(run: StudyData) -> dict[tuple[str, str], Examples]:
    """What shows the examples of each repair and strategy; none where no development item is labelled."""
    wanted = [repair for repair in run.study.repairs.run if repair.kind in ("few_shot", "retrieved_examples")]
    if not wanted:
        return {}
    items = [item for item in run.each_item() if item.split == "development"]
    reference = run.reference("development")
    found: dict[tuple[str, str], Examples] = {}
    for repair in wanted:
        for strategy in repair.strategies:
            pool = example_pool(items, reference, run.study, strategy)
            if pool.examples:
                found[repair.name, strategy] = _shown(run, pool, repair)
    return found


def _shown(run: StudyData, pool: Pool, repair: Any) -> Examples:
    if repair.kind == "few_shot":
        return few_shot(pool, repair)
    if repair.embeddings is None:
        return retrieved(pool, repair, TfidfSimilarity([question(item) for item in pool.items]))
    similarity = EmbeddingSimilarity(repair.embeddings, run.path("embeddings.jsonl"))
    similarity.prepare([question(item) for item in (*pool.items, *run.each_evaluation_item())])
    return retrieved(pool, repair, similarity)


def _with(judge: Any, **changes: Any) -> Any:
    """The judge with other decoding; a judge that asks no model, or a change that is None, stays as it is."""
    kept = {name: value for name, value in changes.items() if value is not None}
    return judge.model_copy(update=kept) if kept and asks_a_model(judge) else judge


def _with_logprobs(judge: Any, alternatives: int) -> Any:
    if not asks_a_model(judge):
        return judge
    return judge.model_copy(update={"capabilities": judge.capabilities.model_copy(update={"logprobs": alternatives})})


def _has_logprobs(judge: Any, repair: Any) -> bool:
    """Whether the plain direct pass brings the log-probabilities that a repair needs."""
    return repair.kind == "logprob_scores" and asks_a_model(judge) and judge.capabilities.logprobs >= 2
