"""What a study is, as small tables and sentences: the protocol, the items, the labels, the calls."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from judgelab.report.sentences import Sentences
from judgelab.report.tables_for_people import cell
from judgelab.report.words import plural
from judgelab.study.configuration import describe
from judgelab.study.run import Run

__all__ = [
    "asked_summary",
    "blindness_sentences",
    "item_table",
    "judge_table",
    "length_table",
    "protocol_table",
    "readiness_sentences",
    "reference_table",
    "score_summary",
    "side_by_side",
    "verdict_table",
]


def protocol_table(run: Run) -> pd.DataFrame:
    """The decisions that no later stage may change."""
    study = run.study
    criteria = ", ".join(f"{name} ({weight:g})" for name, weight in study.direct_scale.weights.items())
    rows = {
        "study": study.study_id,
        "systems": ", ".join(study.system_names),
        "sampling rule": study.sampling_rule,
        "rubric": f"{study.rubric_version}: {criteria}",
        "scale": f"{study.direct_scale.minimum} to {study.direct_scale.maximum}",
        "tie margin": f"{study.direct_tie_margin:g}",
        "a tie means": study.tie_meaning,
        "missing": study.missing_policy,
        "seed": str(study.random_seed),
        "passes": ", ".join(study.passes),
        "retries": f"malformed {study.retries.malformed_output}, transient {study.retries.transient_error}",
        "human labels": run.provenance,
        "protocol SHA-256": study.sha256,
    }
    return pd.DataFrame({"decision": rows.keys(), "value": rows.values()}).set_index("decision")


def item_table(run: Run) -> pd.DataFrame:
    """Items by category and split, with what was left out at reading."""
    frame = pd.DataFrame([{"category": item.category, "split": item.split} for item in run.items()])
    table = pd.crosstab(frame["category"], frame["split"])
    table = table.reindex(columns=["development", "evaluation"], fill_value=0)
    table.loc["all"] = table.sum()
    table.columns.name = None
    return table


def length_table(run: Run) -> pd.DataFrame:
    """Words per answer, by system."""
    rows = [{"system": name, "words": words} for item in run.items() for name, words in item.words.items()]
    grouped = pd.DataFrame(rows).groupby("system", sort=False)
    return grouped.agg(
        answers=("words", "count"), shortest=("words", "min"), median=("words", "median"), longest=("words", "max")
    )


def judge_table(run: Run) -> pd.DataFrame:
    """The judges on trial."""
    return pd.DataFrame(
        [
            {
                "judge": judge.name,
                "what it is": describe(judge),
                "passes": ", ".join(run.study.passes_of(judge)),
                "configuration": judge.sha256[:12],
            }
            for judge in run.study.judges
        ]
    ).set_index("judge")


def readiness_sentences(run: Run, findings: pd.DataFrame) -> Sentences:
    """Whether the study is complete, blind and large enough, in words."""
    study, excluded = run.study, run.excluded_items()
    n, wanted = len(run.evaluation_items()), study.decision.minimum_items
    left_out = (
        "No line of the items file was left out."
        if excluded.empty
        else f"{plural(len(excluded), 'line')} of the items file left out: "
        + ", ".join(f"{count} {reason}" for reason, count in excluded["reason"].value_counts().items())
        + "."
    )
    enough = (
        f"{plural(n, 'evaluation item')}: the protocol asks for at least {wanted}, so there are enough."
        if n >= wanted
        else f"{plural(n, 'evaluation item')}: the protocol asks for at least {wanted}, so this study is too small to "
        "support a judge's use, whatever the numbers below say."
    )
    return Sentences([left_out, enough, *blindness_sentences(findings, len(run.items()))])


def blindness_sentences(findings: pd.DataFrame, n_items: int) -> Sentences:
    """What the blindness scan found."""
    if findings.empty:
        return Sentences([f"Blindness: no name or phrase that gives an author away in {plural(n_items, 'item')}."])
    items = findings["item_id"].nunique()
    terms = ", ".join(sorted(findings["term"].astype(str).str.lower().unique())[:8])
    return Sentences(
        [
            f"Blindness: {plural(len(findings), 'finding')} in {items} of {plural(n_items, 'item')} ({terms}). Judges "
            "will see these words unless the protocol lists a mask for them."
        ]
    )


def reference_table(reference: pd.DataFrame) -> pd.DataFrame:
    """How the reference came about: items by rule and label."""
    shown = reference.assign(human=reference["human"].fillna("(none)"))
    table = pd.crosstab(shown["rule"], shown["human"])
    table["all"] = table.sum(axis=1)
    table.columns.name = None
    return table


def asked_summary(asked: pd.DataFrame, judges: Sequence[str]) -> pd.DataFrame:
    """What came of the calls of probes or repairs: one row for each of some judges and each way of asking.

    Parameters
    ----------
    asked
        What :func:`judgelab.judging.runner.run_passes` returned; passes are called ``<name>/<pass>``.
    judges
        The judges that have rows of their own; the others share one.

    Returns
    -------
    pandas.DataFrame
        judge, asked, planned, verdicts, unusable, failed; no index of meaning.
    """
    named = asked["judge"].isin(list(judges))
    ways = pd.Series([str(name).partition("/")[0] for name in asked["pass"]], index=asked.index, dtype=object)
    table = asked.assign(judge=asked["judge"].where(named, "all other judges"), asked=ways.where(named, "all of these"))
    counts = ["planned", "verdicts", "unusable", "failed"]
    return table.groupby(["judge", "asked"], sort=False)[counts].sum().reset_index()


def score_summary(direct: pd.DataFrame) -> pd.DataFrame:
    """Weighted totals by judge and system: answers scored, mean, standard deviation, range."""
    rows = []
    for (judge, system), group in direct.groupby(["judge", "system"], sort=False):
        totals = group["total"].dropna().astype(float)
        rows.append(
            {
                "judge": judge,
                "system": system,
                "planned": len(group),
                "scored": len(totals),
                "mean": totals.mean(),
                "sd": totals.std(),
                "lowest": totals.min(),
                "highest": totals.max(),
                "different_totals": totals.nunique(),
            }
        )
    columns = ["judge", "system", "planned", "scored", "mean", "sd", "lowest", "highest", "different_totals"]
    return pd.DataFrame(rows, columns=columns)


def side_by_side(rows: pd.DataFrame, *, by: str | None = None) -> pd.DataFrame:
    """Rows of the one shape with a judge a line and a measure or pass a column, as text with counts and interval.

    ``by`` names a column (``pass``, say) that tells the lines of a judge apart instead of standing in the columns.
    """
    names = [name for name in ("measure", "pass") if name != by and len(set(rows[name])) > 1] or ["measure"]
    keys = ["judge"] if by is None else ["judge", by]
    table: dict[tuple[str, ...], dict[str, str]] = {}
    for _, row in rows.iterrows():
        line = table.setdefault(tuple(str(row[key]) for key in keys), {})
        line[", ".join(str(row[part]) for part in names)] = cell(row)
    return pd.DataFrame([dict(zip(keys, key, strict=True)) | line for key, line in table.items()]).fillna("not planned")


def verdict_table(verdicts: pd.DataFrame, labels: list[str]) -> pd.DataFrame:
    """Pairwise verdicts by judge and pass, as given: by letter, not by system."""
    pairwise = verdicts[verdicts["strategy"] == "pairwise"]
    shown = pairwise.assign(verdict=pairwise["verdict"].fillna("unusable"))
    table = pd.crosstab([shown["judge"], shown["pass"]], shown["verdict"])
    table = table.reindex(columns=[*labels, "unusable"], fill_value=0)
    order = [judge for judge in verdicts["judge"].unique() if judge in table.index.get_level_values(0)]
    table = table.reindex(order, level=0)
    table.columns.name = None
    return table
