"""Is this enough data? What a frozen study can see, and which labels are worth buying next, in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from judgelab.measure.plan_tables import labels_worth_buying, plan_table
from judgelab.report.sentences import Sentences
from judgelab.report.words import number_text, percent, plural
from judgelab.study.run import Run

__all__ = ["enough_sentences", "labels_to_buy", "plan_for_people", "plan_of"]

SPARE = 0.1  # how far above its minimum the agreement is expected, for planning
DISCORDANT = (0.1, 0.2, 0.3)  # shares of items on which exactly one strategy is right


def plan_of(run: Run) -> pd.DataFrame:
    """What the study can see with the items and labels it has; see :func:`judgelab.measure.plan_tables.plan_table`.

    The agreement that is assumed lies 0.1 above the protocol's minimum.
    """
    measures = run.study.measures
    return plan_table(
        n_items=len(run.evaluation_items()),
        n_labelled=_labelled(run),
        thresholds=run.study.decision.model_dump(),
        ci_level=measures.ci_level,
        power=measures.power,
        rate=_expected(run),
        discordant=DISCORDANT,
        width=2 * measures.wanted_half_width,
    )


def labels_to_buy(run: Run) -> pd.DataFrame:
    """What 25, 50, 100, 200 more labelled items would bring."""
    measures = run.study.measures
    return labels_worth_buying(
        _labelled(run), rate=_expected(run), discordant=DISCORDANT[1], level=measures.ci_level, power=measures.power
    )


def plan_for_people(plan: pd.DataFrame) -> pd.DataFrame:
    """The plan as text: whole numbers of items and calls, shares with three digits, the reason where there is none."""
    shares = plan["unit"] == "share"
    values = [
        note if pd.isna(value) else number_text(value) if share else str(int(value))
        for value, share, note in zip(plan["value"], shares, plan["note"], strict=True)
    ]
    notes = plan["note"].where(plan["value"].notna(), "")
    return pd.DataFrame({"quantity": plan["quantity"], "value": values, "assumption": plan["assumption"], "": notes})


def enough_sentences(run: Run, plan: pd.DataFrame, labels: pd.DataFrame) -> Sentences:
    """What the plan means: the interval to expect, the difference that stays unseen, limits that cannot be met."""
    n, level = _labelled(run), percent(run.study.measures.ci_level)
    told = [_interval_sentence(run, plan, n, level), _difference_sentence(run, plan, n)]
    for quantity, note in zip(plan["quantity"], plan["note"], strict=True):
        if "unusable rate" in quantity and note != "reached":
            limit = run.study.decision.maximum_unusable_rate
            fewest = int(plan.loc[plan["quantity"] == quantity, "value"].iloc[0])
            told.append(
                f"No judge can show an unusable rate of {limit:g} or less here: that takes {fewest} calls a pass "
                f"without one unusable reply, and there are n = {plural(len(run.evaluation_items()), 'item')}."
            )
    told.append(_buy_sentence(labels, n))
    return Sentences(told)


def _interval_sentence(run: Run, plan: pd.DataFrame, n: int, level: str) -> str:
    half: Any = _value(plan, "half width")
    needed = _value(plan, "labelled items for an interval")
    wanted, expected = run.study.measures.wanted_half_width, _expected(run)
    if pd.isna(half):
        return (
            f"No item has a reference (n = 0 items): agreement cannot be measured; {int(needed)} labelled items give "
            f"± {wanted:g}."
        )
    enough = "which is narrow enough" if n >= needed else f"the wanted ± {wanted:g} takes {int(needed)} of them"
    items = plural(n, "labelled item")
    return f"With n = {items} an agreement of {expected:g} gets a {level} interval of ± {number_text(half)}; {enough}."


def _difference_sentence(run: Run, plan: pd.DataFrame, n: int) -> str:
    rows = plan[plan["quantity"].str.startswith("smallest difference")]
    seen = rows[rows["value"].notna()]
    meaningful, power = run.study.decision.meaningful_difference, run.study.measures.power
    if seen.empty:
        return (
            f"With n = {plural(n, 'labelled item')} no difference between direct scoring and pairwise comparison is "
            f"found with power {power:g}, whatever its size."
        )
    least = float(seen["value"].min())
    verdict = "so the meaningful difference can be found" if least <= meaningful else "larger than the meaningful one"
    return (
        f"The smallest difference between direct scoring and pairwise comparison that is found with power {power:g} is "
        f"{number_text(least)} (n = {plural(n, 'labelled item')}; exactly one of the two is right on "
        f"{percent(_share(seen, least))} of them): {verdict} ({meaningful:g})."
    )


def _share(rows: pd.DataFrame, least: float) -> float:
    """The assumed share of discordant items behind the least difference: the table has its rows in that order."""
    return DISCORDANT[rows["value"].tolist().index(least)] if len(rows) == len(DISCORDANT) else DISCORDANT[-1]


def _buy_sentence(labels: pd.DataFrame, n: int) -> str:
    worth = labels[labels["advice"].str.startswith(("worth", "the first"))]
    if worth.empty:
        return f"More labels bring little now (n = {plural(n, 'labelled item')}): {labels['advice'].iloc[1]}."
    best = worth.iloc[-1]
    return (
        f"Buying labels: up to {int(best['labels_added'])} more are worth it (n = {plural(n, 'labelled item')} now); "
        f"with them the interval would be ± {number_text(float(best['half_width']))}."
    )


def _value(plan: pd.DataFrame, words: str) -> float:
    return float(plan.loc[plan["quantity"].str.startswith(words), "value"].iloc[0])


def _labelled(run: Run) -> int:
    """Items of which every planned pair has a reference."""
    reference = run.reference()
    return int(reference["human"].notna().groupby(reference["item_id"]).all().sum())


def _expected(run: Run) -> float:
    return round(min(0.95, run.study.decision.minimum_agreement + SPARE), 4)
