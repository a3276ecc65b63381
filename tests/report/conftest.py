"""Small tables in the shapes of the other rooms, written by hand so that every expected text can be read off."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import pandas as pd
import pytest

from judgelab.measure import rows

NAN = float("nan")


def rate(measure, k, n, low, high, **where):
    """A rate of the one shape; 0 of 0 is undefined with its reason."""
    where.setdefault("note", "" if n else "no valid pair")
    return rows.row(
        measure, k / n if n else NAN, interval=(low, high) if n else (NAN, NAN), ci_level=0.95,
        numerator=k, denominator=n, n_used=n, method="wilson", **where,
    )  # fmt: skip


def value(measure, estimate, low, high, n, **where):
    """A statistic that is no rate."""
    return rows.row(measure, estimate, interval=(low, high), ci_level=0.95, n_used=n, method="bootstrap", **where)


@pytest.fixture
def agreement():
    found = []
    for judge, direct, original in (("glm", 17, 21), ("small", 9, 8), ("longest", 12, 12)):
        for strategy, pass_, k in (("direct", "direct", direct), ("pairwise", "original", original)):
            where = {"judge": judge, "strategy": strategy, "pass_": pass_}
            found.append(rate("exact_agreement", k, 25, k / 25 - 0.16, min(1.0, k / 25 + 0.14), **where))
            found.append(value("cohen_kappa", k / 25 - 0.2, k / 25 - 0.4, k / 25, 25, **where))
            found.append(rate("tie_rate", 3, 25, 0.04, 0.3, **where))
            for category, part in (("account", 10), ("billing", 15)):
                share = round(k * part / 25)
                found.append(
                    rate("exact_agreement", share, part, max(0, share / part - 0.2), min(1, share / part + 0.2),
                         slice_=f"category={category}", **where)
                )  # fmt: skip
        gap, where = (original - direct) / 25, {"judge": judge, "strategy": "pairwise", "pass_": "original"}
        found.append(value("exact_agreement_difference", gap, gap - 0.1, gap + 0.1, 25, **where))
    constant = {"judge": "constant", "strategy": "pairwise", "pass_": "original"}
    found.append(rate("exact_agreement", 0, 0, NAN, NAN, **constant))
    found.append(value("cohen_kappa", NAN, NAN, NAN, 0, note="undefined: no jointly valid item", **constant))
    return rows.frame(found)


@pytest.fixture
def position():
    found = []
    for judge, stable, first in (("glm", 20, (12, 11)), ("small", 3, (25, 24)), ("longest", 25, (13, 12))):
        where = {"judge": judge, "strategy": "pairwise"}
        found.append(rate("swap_consistency", stable, 25, stable / 25 - 0.1, min(1, stable / 25 + 0.1),
                          pass_="both", **where))  # fmt: skip
        found.append(rate("reversal_rate", 25 - stable, 25, 0.0, 1 - stable / 25 + 0.1, pass_="both", **where))
        found.append(rate("coverage", stable, 25, stable / 25 - 0.1, min(1, stable / 25 + 0.1),
                          pass_="aggregated", **where))  # fmt: skip
        for pass_, k in (("original", first[0]), ("swapped", first[1])):
            found.append(rate("first_position_rate", k, 25, k / 25 - 0.2, min(1, k / 25 + 0.18), pass_=pass_, **where))
        k = sum(first)
        found.append(rate("first_position_rate", k, 50, k / 50 - 0.1, min(1, k / 50 + 0.1), pass_="both", **where))
        for category, n in (("account", 10), ("billing", 15)):
            part = {"pass_": "both", "slice_": f"category={category}"} | where
            found.append(rate("swap_consistency", n - 2, n, 0.4, 0.98, **part))
            found.append(rate("first_position_rate", n, 2 * n, 0.3, 0.7, **part))
    return rows.frame(found)


@pytest.fixture
def confusion():
    cells = [("ALPHA", "ALPHA", 10), ("ALPHA", "TIE", 1), ("BETA", "BETA", 9), ("BETA", "ALPHA", 2), ("TIE", "TIE", 3)]
    return pd.DataFrame(
        [
            {"judge": judge, "strategy": strategy, "pass": pass_, "human": human, "judged": judged, "count": count}
            for judge in ("glm", "small")
            for strategy, pass_ in (("direct", "direct"), ("pairwise", "original"))
            for human, judged, count in cells
        ]
    )


@pytest.fixture
def swap():
    cells = [("ALPHA", "ALPHA", 11), ("BETA", "BETA", 8), ("TIE", "TIE", 1), ("ALPHA", "BETA", 3), ("BETA", "TIE", 2)]
    return pd.DataFrame(
        [{"judge": j, "original": o, "swapped": s, "count": c} for j in ("glm", "small") for o, s, c in cells]
    )


@pytest.fixture
def frequencies():
    found = []
    for judge in ("glm", "small"):
        for source, counts in (("human", (11, 11, 3)), ("direct", (12, 9, 4)), ("original", (25, 0, 0))):
            for label, count in zip(("ALPHA", "BETA", "TIE"), counts, strict=True):
                found.append({"judge": judge, "source": source, "label": label, "count": count,
                              "denominator": 25, "share": count / 25})  # fmt: skip
    return pd.DataFrame(found)


@pytest.fixture
def reviewers():
    return rows.frame(
        [
            rate("exact_agreement", 22, 25, 0.70, 0.96, slice_="reviewers=r01,r02"),
            value("krippendorff_alpha", 0.78, 0.55, 0.95, 25, slice_="all"),
            value("krippendorff_alpha", 0.61, 0.40, 0.80, 25, slice_="all", judge="glm"),
        ]
    )


@pytest.fixture
def unusable():
    return rows.frame(
        [
            rate("unusable_rate", 0, 50, 0.0, 0.07, judge="glm", strategy="direct", pass_="direct"),
            rate("unusable_rate", 1, 25, 0.0, 0.2, judge="glm", strategy="pairwise", pass_="original"),
            rate("unusable_rate", 0, 25, 0.0, 0.13, judge="glm", strategy="pairwise", pass_="swapped"),
            rate("unusable_rate", 12, 25, 0.3, 0.67, judge="small", strategy="pairwise", pass_="original"),
        ]
    )


@pytest.fixture
def verdicts():
    """Four items; glm scores both systems, small gives no usable score; one pairwise pass each way."""
    found = []
    for index, item in enumerate(("i1", "i2", "i3", "i4")):
        for system, total in (("ALPHA", 4.0 + 0.2 * index), ("BETA", 3.0)):
            for judge in ("glm", "small"):
                usable = judge == "glm"
                found.append(
                    {"judge": judge, "strategy": "direct", "pass": "direct", "item_id": item, "category": "account",
                     "system": system, "system_x": "ALPHA", "system_y": "BETA", "first": None, "second": None,
                     "verdict": None, "total": total if usable else NAN, "status": "verdict" if usable else "unusable",
                     "reason": None if usable else "not_json"}
                )  # fmt: skip
        for pass_, first in (("original", "ALPHA"), ("swapped", "BETA")):
            found.append(
                {"judge": "glm", "strategy": "pairwise", "pass": pass_, "item_id": item, "category": "account",
                 "system": None, "system_x": "ALPHA", "system_y": "BETA", "first": first,
                 "second": "BETA" if first == "ALPHA" else "ALPHA", "verdict": "A", "total": NAN,
                 "status": "verdict", "reason": None}
            )  # fmt: skip
    return pd.DataFrame(found)


@pytest.fixture
def normalized():
    """Six items of one judge: direct is right on 5, pairwise original on 4; one reversal, one winner to tie."""
    lines = [
        # item, category, human, direct, original, swapped, words x, words y, total x, total y
        ("i1", "account", "ALPHA", "ALPHA", "ALPHA", "ALPHA", 90, 40, 4.6, 3.0),
        ("i2", "account", "ALPHA", "ALPHA", "ALPHA", "BETA", 50, 80, 4.0, 3.6),
        ("i3", "billing", "BETA", "BETA", "BETA", "TIE", 70, 60, 3.0, 4.0),
        ("i4", "billing", "BETA", "TIE", "ALPHA", "ALPHA", 100, 30, 3.4, 3.4),
        ("i5", "billing", "TIE", "TIE", "ALPHA", "ALPHA", 60, 60, 4.0, 4.0),
        ("i6", "billing", "TIE", "TIE", "TIE", "TIE", 55, 50, 4.2, 4.2),
    ]
    names = ["item_id", "category", "human", "direct", "pair_original", "pair_swapped", "words_x", "words_y",
             "total_x", "total_y"]  # fmt: skip
    table = pd.DataFrame(lines, columns=names)
    return table.assign(judge="glm", system_x="ALPHA", system_y="BETA", original_first="ALPHA")


@pytest.fixture
def decision():
    """Evidence and recommendations as ``measure.decision`` gives them."""
    columns = ["judge", "strategy", "criterion", "requirement", "measure", "estimate", "ci_low", "ci_high", "threshold",
               "n_used", "outcome"]  # fmt: skip
    what = "exact_agreement: whole interval at 0.7 or above"
    evidence = pd.DataFrame(
        [
            ("glm", "direct", "minimum_agreement", what, "exact_agreement", 0.68, 0.52, 0.82, 0.7, 25, "undecided"),
            ("glm", "pairwise", "minimum_agreement", what, "exact_agreement", 0.84, 0.71, 0.98, 0.7, 25, "met"),
            ("small", "pairwise", "minimum_agreement", what, "exact_agreement", 0.32, 0.16, 0.46, 0.7, 25, "not_met"),
            ("small", "direct", "minimum_agreement", what, "exact_agreement", NAN, NAN, NAN, 0.7, 0, "no_data"),
        ],
        columns=columns,
    )
    recommendations = pd.DataFrame(
        [("glm", "pairwise", "pairwise meets every requirement"), ("small", "human_review", "nothing is supported")],
        columns=["judge", "recommendation", "because"],
    )
    return evidence, recommendations
