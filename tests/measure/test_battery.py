"""The battery in one table is its parts, one below the other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.battery import SIMILAR, battery_table
from judgelab.measure.bias import bias_table
from judgelab.measure.drift import drift_table
from judgelab.measure.length import length_table
from judgelab.measure.preferences import normalize
from judgelab.measure.probes import probe_table
from judgelab.measure.rows import COLUMNS

from .conftest import ALPHA_BETA

A, B, T = ALPHA_BETA
N = 12
INTERVALS = {"ci_level": 0.9, "resamples": 100, "seed": 3}


def study():
    """Verdicts of two judges on twelve items, as the verdict table has them, and as preferences."""
    rng, rows = np.random.default_rng(5), []
    for judge in ("live", "old"):
        for item in range(N):
            place = {"judge": judge, "item_id": f"i{item}", "category": "c", "status": "verdict", "reason": ""}
            place |= {"critical_error": False, "reason_codes": "[]", "order": item}
            for number, system in enumerate((A, B)):
                direct = {"strategy": "direct", "pass": "direct", "system": system, "order": 2 * item + number}
                score = int(rng.integers(1, 6))
                rows.append(place | direct | {"total": float(score), "score_clarity": score})
            for pass_, first, second in (("original", A, B), ("swapped", B, A)):
                shown = {"strategy": "pairwise", "pass": pass_, "first": first, "second": second}
                rows.append(place | shown | {"system_x": A, "system_y": B, "verdict": rng.choice(["A", "B", "TIE"])})
    verdicts = pd.DataFrame(rows)
    names = {"item_id": [f"i{item}" for item in range(N)], "system_x": A, "system_y": B}
    human = pd.DataFrame({**names, "human": rng.choice([A, B, T], N), "human_score_x": 4.0, "human_score_y": 3.0})
    comparisons = pd.DataFrame({**names, "category": "c", "first": A, "words_x": 30, "words_y": range(10, 10 + N)})
    return verdicts, normalize(verdicts, human, comparisons, margin=0.0)


def table(verdicts, normalized, pairs, **options):
    families = {"families": {"own": [A]}, "system_families": {A: "own", B: None}}
    judges = {"judge_families": {"live": "own", "old": None}}
    return battery_table(
        verdicts, normalized, pairs, labels=ALPHA_BETA, acceptance_threshold=4, scale=(1, 5),
        **{**families, **judges, **INTERVALS, **options},
    )  # fmt: skip


def rows_of(whole, part):
    """The rows of the whole that are of a part's judges, slices and measures."""
    keys = ["judge", "strategy", "pass", "slice", "measure"]
    return part[keys].merge(whole, on=keys, how="left", sort=False)


def test_every_part_stands_in_it():
    verdicts, normalized = study()
    made = table(verdicts, normalized, pd.DataFrame())
    assert list(made.columns) == list(COLUMNS)
    assert not made.duplicated(["judge", "strategy", "pass", "slice", "measure"]).any()
    parts = [
        bias_table(normalized, labels=ALPHA_BETA, families={"own": [A]}, **INTERVALS),
        length_table(normalized, labels=ALPHA_BETA, similar=SIMILAR, **INTERVALS),
        drift_table(verdicts, **INTERVALS),
    ]
    for part in parts:
        found = rows_of(made, part)[list(COLUMNS)]
        pd.testing.assert_frame_equal(found, part.reset_index(drop=True), check_dtype=False)
    rest = {"family_log_odds", "true_positive_rate", "tie_rate_gap", "verdict_reason_contradiction_rate"}
    assert rest <= set(made["measure"])
    assert not made["slice"].str.startswith("probe=").any()


def test_probes_come_first():
    verdicts, normalized = study()
    pairs = pd.DataFrame(
        {"judge": "live", "probe": "padding", "variant": "", "item_id": [f"i{item}" for item in range(N)],
         "category": "c", "system_x": A, "system_y": B, "pass": "original", "repeat": 0, "first": A, "second": B,
         "target": A, "verdict": "A", "base": "B", "again": None, "words_added": 25, "reason": ""}
    )  # fmt: skip
    made, part = table(verdicts, normalized, pairs), probe_table(pairs, **INTERVALS)
    pd.testing.assert_frame_equal(made.head(len(part)), part, check_dtype=False)
    net = made[made["measure"] == "net_flip_rate"]
    assert net["estimate"].tolist() == [1.0]


def test_nothing_is_said_of_the_drift_of_verdicts_made_elsewhere():
    verdicts, normalized = study()
    made = table(verdicts, normalized, pd.DataFrame(), recorded=["old"])
    drift = made[made["measure"].str.contains("drift")]
    assert set(drift["judge"]) == {"live"}
    with pytest.raises(ValueError, match="order"):
        table(verdicts.drop(columns="order"), normalized, pd.DataFrame())
