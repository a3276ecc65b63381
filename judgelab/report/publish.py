"""Publishing a run: its pages, and what the start page says, taken from the run's own tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from judgelab.judging.match_run import MatchRun
from judgelab.report.leaderboard import leaderboard_table
from judgelab.report.narrative import recommendation_sentences
from judgelab.report.pages import publish
from judgelab.report.picking import judges_of, one
from judgelab.report.tables_for_people import cell
from judgelab.report.words import listed, natural, plural
from judgelab.study.humans import reviewers
from judgelab.study.run import Run

__all__ = ["headline_table", "publish", "publish_run"]

PAIRWISE = "pairwise agreement, original order"
ALL = ("judge", "direct agreement", PAIRWISE, "swap consistency", "first-position rate")


def publish_run(run: Run | MatchRun, questions: Mapping[str, str]) -> Path:
    """Publish a run: every executed notebook as a page, and the start page with its headline.

    Parameters
    ----------
    run
        The run.
    questions
        The question of each stage, by the notebook's name, in the order of the stages.

    Returns
    -------
    Path
        ``report/index.html``.

    Raises
    ------
    RunError
        If there is no executed notebook, one cannot be read, or the report cannot be written.
    """
    study = run.study
    sentences = []
    if (made := _table(run, "recommendations")) is not None:
        evidence = _table(run, "decision")
        sentences = list(recommendation_sentences(evidence if evidence is not None else _NO_EVIDENCE, made))
    headline = headline_table(_table(run, "agreement"), _table(run, "position"))
    tables = {} if headline.empty else {"Agreement with the human reference, and the position test": headline}
    if (ranked := _table(run, "leaderboard")) is not None:
        tables[f"Ranking of the systems by {_rankers(run)}"] = leaderboard_table(ranked)
    return publish(
        run.folder,
        title=study.title or study.study_id,
        question=study.question,
        questions=questions,
        provenance=run.provenance,
        facts=_facts(run),
        headline=sentences,
        tables=tables,
        announced=("manifest.json",),
    )


_NO_EVIDENCE = pd.DataFrame(columns=["judge", "outcome", "n_used"])


def headline_table(agreement: pd.DataFrame | None, position: pd.DataFrame | None) -> pd.DataFrame:
    """One row a judge: what it agrees on in each strategy, and what the swap does to it.

    Parameters
    ----------
    agreement, position
        Rows of the one shape, or None if the stage did not run.

    Returns
    -------
    pandas.DataFrame
        Columns ``judge``, ``direct agreement``, ``pairwise agreement, original order``, ``swap consistency``,
        ``first-position rate`` (both passes, else the original one); text with denominator and interval.
    """
    tables = [table for table in (agreement, position) if table is not None]
    rows = []
    for judge in judges_of(*tables):
        cells = [_found(agreement, judge, "exact_agreement", (pass_,)) for pass_ in ("direct", "original")]
        cells.append(_found(position, judge, "swap_consistency", ("both",)))
        cells.append(_found(position, judge, "first_position_rate", ("both", "original")))
        rows.append((judge, *cells))
    return pd.DataFrame(rows, columns=list(ALL))


def _found(table: pd.DataFrame | None, judge: str, measure: str, passes: tuple[str, ...]) -> str:
    if table is None:
        return "not measured"
    for pass_ in passes:
        row = one(table, judge=judge, measure=measure, pass_=pass_, slice_="all")
        if row is not None:
            return cell(row, between="\n")
    return "not measured"


def _table(run: Run | MatchRun, name: str) -> pd.DataFrame | None:
    return run.table(name) if run.path("tables", f"{name}.csv").is_file() else None


def _facts(run: Run | MatchRun) -> dict[str, str]:
    if isinstance(run, MatchRun):
        return _match_facts(run)
    study = run.study
    judged = len(run.evaluation_items())
    every = len(run.items())
    kinds = [f"{judge.name} ({judge.kind})" for judge in study.judges]
    return {
        "Run": run.name,
        "Study": study.study_id,
        "Items": f"{plural(judged, 'item')} judged, {every - judged} kept for development",
        "Systems": listed(study.system_names),
        "Judges": listed(kinds),
        **_people(run),
        "Sampling rule": study.sampling_rule,
        "Rubric": study.rubric_version,
        "Protocol SHA-256": study.sha256,
    }


def _people(run: Run) -> dict[str, str]:
    """Whose labels the reference is made of, what people prefer, and how far they agree; nothing without labels."""
    reference = _table(run, "reference")
    labels = None if reference is None else run.labels()
    if reference is None or labels is None or labels.empty:
        return {}
    adjudicated = labels["is_adjudicated"].astype(bool)
    made = "an answer key" if run.provenance == "answer_key" else plural(len(reviewers(labels)), "reviewer")
    given = plural(int((~adjudicated).sum()), "initial label")
    where = ", made in this study" if run.study.human_review.labelling is not None else ""
    counts = reference["human"].value_counts()
    preferred = [f"{name} {int(counts.get(name, 0))}" for name in run.study.labels]
    facts = {
        "Human labels": f"{given} of {made}, {int(adjudicated.sum())} adjudicated{where}",
        "Reference": f"{', '.join(preferred)}, none {int(reference['human'].isna().sum())}, of {len(reference)}",
    }
    people = _table(run, "reviewers")
    agreed = None if people is None else one(people, measure="exact_agreement", slice_="all")
    return facts if agreed is None else facts | {"Reviewers agree": cell(agreed)}


def _rankers(run: Run | MatchRun) -> str:
    """Who gave the verdicts that rank the systems."""
    if isinstance(run, MatchRun):
        return "verdicts that were given elsewhere"
    panel = run.study.ranking.panel(run.study.judges)
    return f"the judge{'s' * (len(panel) > 1)} {listed(panel)}"


def _match_facts(run: MatchRun) -> dict[str, str]:
    matches = run.matches()
    return {
        "Run": run.name,
        "Study": run.study.study_id,
        "Matches": f"{plural(len(matches), 'match', 'matches')}, judged elsewhere",
        "Systems": str(len({*matches["system_x"], *matches["system_y"]})),
        "Judges": listed(natural(matches["judge"].unique())),
        "Sampling rule": run.study.sampling_rule or "not stated",
        "Protocol SHA-256": run.study.sha256,
    }
