"""Tables of stage 05 for which the protocol decides what is computed: acceptance, panel, confidence, corrections."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from judgelab.judging.evidence import verdicts
from judgelab.measure.classification import acceptance_table
from judgelab.measure.correction import correction_table, pass_rate_table
from judgelab.measure.monitoring import decisive_table, monitor_table
from judgelab.measure.panels import error_correlation_table, panel_table
from judgelab.measure.risk_coverage import risk_coverage_table
from judgelab.measure.rows import frame
from judgelab.report.corrections import correction_sentences
from judgelab.report.monitoring import LOOKS, stopping_sentences
from judgelab.report.sentences import Sentences
from judgelab.report.tables_for_people import cell
from judgelab.report.words import p_text, slice_text
from judgelab.study.run import Run

__all__ = [
    "acceptance",
    "by_slice",
    "correction_text",
    "corrections",
    "defined",
    "llm_judges",
    "monitoring",
    "panel",
    "risk_coverage",
    "stopping",
]


def by_slice(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of slices with a slice a line and a measure a column, as text with counts and interval."""
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    for _, row in rows.iterrows():
        key = (str(row["judge"]), str(row["pass"]), slice_text(str(row["slice"])))
        bare = str(row["measure"]).endswith(("_p", "_holm")) and pd.notna(row["estimate"])
        lines.setdefault(key, {})[str(row["measure"])] = p_text(float(row["estimate"])) if bare else cell(row)
    names = ["judge", "pass", "slice"]
    table = pd.DataFrame([dict(zip(names, key, strict=True)) | line for key, line in lines.items()])
    return table.fillna("") if len(table) else pd.DataFrame(columns=names)


def defined(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that have an estimate; where none has, the first one, for its reason."""
    known = rows[rows["estimate"].notna()]
    return rows.head(1) if known.empty else known


def llm_judges(run: Run, normalized: pd.DataFrame, pass_: str = "original") -> list[str]:
    """Judges with a model whose pass was planned: controls take no part in a panel."""
    planned = set(normalized.loc[normalized[f"planned_{pass_}"].to_numpy(dtype=bool), "judge"])
    return [judge.name for judge in run.study.judges if judge.kind != "control" and judge.name in planned]


def acceptance(run: Run, normalized: pd.DataFrame) -> pd.DataFrame:
    """Direct totals against human scores at the acceptance threshold, as ``acceptance.csv``; empty without one."""
    threshold = run.study.direct_scale.acceptance_threshold
    if threshold is None:
        return run.save_table(frame([]), "acceptance")
    made = acceptance_table(normalized, threshold=threshold, **run.study.intervals)
    return run.save_table(made, "acceptance")


def panel(run: Run, normalized: pd.DataFrame) -> pd.DataFrame:
    """Error correlation and panel decisions of the LLM judges in the original pass, as ``panel.csv``."""
    names = llm_judges(run, normalized)
    options = {"labels": run.study.labels, "judges": names, **run.study.intervals}
    tables = [error_correlation_table(normalized, **options)]
    if len(names) > 1:
        tables.append(panel_table(normalized, **options))
    return run.save_table(pd.concat(tables, ignore_index=True), "panel")


def risk_coverage(run: Run, normalized: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Curves and areas of every judge and signal, as ``risk_coverage_curves.csv`` and ``risk_coverage.csv``."""
    curves, areas = risk_coverage_table(
        verdicts(run, margins=True),
        normalized,
        labels=run.study.labels,
        panel=llm_judges(run, normalized),
        **run.study.intervals,
    )
    return run.save_table(curves, "risk_coverage_curves"), run.save_table(areas, "risk_coverage")


def corrections(run: Run, normalized: pd.DataFrame) -> pd.DataFrame:
    """Win rates, and pass rates where there is a threshold, beside their corrections, as ``corrections.csv``."""
    tables = [correction_table(normalized, labels=run.study.labels, **run.study.intervals)]
    threshold = run.study.direct_scale.acceptance_threshold
    if threshold is not None:
        tables.append(pass_rate_table(normalized, threshold=threshold, **run.study.intervals))
    return run.save_table(pd.concat(tables, ignore_index=True), "corrections")


def correction_text(corrected: pd.DataFrame, judges: Sequence[str]) -> Sentences:
    """What the corrections say of each judge."""
    return Sentences.joined(correction_sentences(corrected, judge=name) for name in judges)


def monitoring(run: Run, normalized: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Intervals that hold at every look, as ``monitoring.csv``, and the plain binomial tests, as ``decisive.csv``."""
    labels, level = run.study.labels, run.study.measures.ci_level
    monitor = monitor_table(normalized, labels=labels, looks=LOOKS, ci_level=level)
    decisive = decisive_table(normalized, labels=labels, ci_level=level)
    return run.save_table(monitor, "monitoring"), run.save_table(decisive, "decisive")


def stopping(run: Run, monitor: pd.DataFrame, decisive: pd.DataFrame, judges: Sequence[str]) -> Sentences:
    """Whether the study could have been stopped early, for each judge."""
    minimum = run.study.decision.minimum_agreement
    return Sentences.joined(
        stopping_sentences(monitor, decisive, judge=name, minimum_agreement=minimum) for name in judges
    )
