"""Do people agree? Reviewers among themselves, and with a judge as one more rater."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.alpha import alpha_from_totals, alpha_row, unit_features
from judgelab.measure.association import association_rows
from judgelab.measure.carriers import carriers
from judgelab.measure.chance import chance_rows, dominance, fleiss_row
from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.estimates import Place, Settings, interval_of, kappa_row, rate_row, table_row
from judgelab.measure.icc import icc_rows
from judgelab.measure.resampling import Floats, Ints, ItemTable, bootstrap
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import each_judge

__all__ = ["alpha_with_judge", "initial_labels", "reviewer_table"]

NAN = float("nan")
PAIR = ["item_id", "system_x", "system_y"]


def reviewer_table(
    labels: pd.DataFrame,
    *,
    labels_allowed: Sequence[str],
    ci_level: float,
    resamples: int,
    seed: int,
    alpha_level: str = "nominal",
) -> pd.DataFrame:
    """Agreement of the reviewers' initial labels, before any adjudication.

    Parameters
    ----------
    labels : DataFrame
        One row per human label: item_id, reviewer_id, system_x, system_y, preference, score_x, score_y,
        is_adjudicated. Adjudicated labels are not counted here.
    labels_allowed : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.
    alpha_level : str
        Level of measurement of alpha; ``nominal`` is the only one for preferences.

    Returns
    -------
    DataFrame
        Rows with an empty ``judge``: ``exact_agreement`` (slice ``all``: pairs of reviewers pooled; slice
        ``reviewers=r01,r02``: that pair), ``cohen_kappa`` for each pair, ``krippendorff_alpha`` (the level is in
        ``method``), ``fleiss_kappa``, ``gwet_ac1`` and ``pabak`` for each pair, ``tie_rate`` (all, and
        ``reviewer=r01``). Where two reviewers scored the same answers: ``spearman``, ``kendall``,
        ``mean_absolute_difference`` and ``mean_difference`` (second minus first) of their scores for each pair, and
        over all reviewers ``krippendorff_alpha_scores_ordinal``, ``krippendorff_alpha_scores_interval``, ``icc_2_1``,
        ``icc_2_k``, ``icc_3_1``. NaN with a reason for a single reviewer or no overlap. Pairs of reviewers without
        a common item have no row.

    Raises
    ------
    ValueError
        If a reviewer labels one item and pair twice, a preference is not allowed, or the level is not nominal.

    Notes
    -----
    Alpha: Krippendorff, 2011; checked against the package krippendorff and its canonical example (0.743). The
    bootstrap resamples items with all their labels.
    """
    if alpha_level != "nominal":
        raise ValueError(f"alpha_level is {alpha_level!r}; allowed for preferences is nominal")
    settings = Settings(ci_level, resamples, seed)
    initial = initial_labels(labels)
    codes = encode(initial["preference"], labels_allowed, "labels, column preference")
    initial = initial.assign(code=codes)[codes >= 0].reset_index(drop=True)
    lines = [_pooled_agreement(initial, settings)]
    for names, pair in _reviewer_pairs(initial):
        lines += _pair_rows(names, pair, len(labels_allowed), settings)
    lines.append(_alpha_row(initial, len(labels_allowed), settings))
    arrays = (initial[name].to_numpy(dtype=np.int64) for name in ("item", "unit", "code"))
    lines.append(fleiss_row(Place(), *arrays, settings=settings))
    lines += _tie_rows(initial, settings)
    lines += _score_rows(initial, settings)
    return frame(lines)


def initial_labels(labels: pd.DataFrame) -> pd.DataFrame:
    """The labels before any adjudication, with the codes ``unit`` (item and pair of systems) and ``item``.

    Raises
    ------
    ValueError
        If a column is missing or a reviewer labels one item and pair twice.
    """
    check_columns(labels, [*PAIR, "reviewer_id", "preference", "is_adjudicated"], "labels")
    initial = labels[~labels["is_adjudicated"].to_numpy(dtype=bool)].reset_index(drop=True)
    twice = initial.duplicated([*PAIR, "reviewer_id"]).to_numpy()
    if twice.any():
        where = initial[twice].iloc[0]
        raise ValueError(
            f"labels: {int(twice.sum())} of {len(initial)} initial labels repeat an item and reviewer; "
            f"first item {where['item_id']}, reviewer {where['reviewer_id']}"
        )
    unit = initial.groupby(PAIR, sort=False).ngroup().to_numpy()
    return initial.assign(unit=unit, item=pd.factorize(initial["item_id"])[0])


def _reviewer_pairs(initial: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Units labelled by both of two reviewers, for every two that share one."""
    by_reviewer = {str(name): group for name, group in initial.groupby("reviewer_id", sort=True)}
    for one, two in combinations(by_reviewer, 2):
        pair = by_reviewer[one].merge(by_reviewer[two], on=["unit", "item"], suffixes=("_1", "_2"))
        if len(pair):
            yield (one, two), pair


def _pooled_agreement(initial: pd.DataFrame, settings: Settings) -> dict[str, Any]:
    pairs = [pair for _, pair in _reviewer_pairs(initial)]
    items = np.concatenate([pair["item"].to_numpy() for pair in pairs]) if pairs else np.zeros(0, dtype=np.int64)
    same = [(pair["code_1"] == pair["code_2"]).to_numpy(dtype=np.float64) for pair in pairs]
    values: Floats = np.concatenate(same) if same else np.zeros(0)
    alone = np.setdiff1d(initial["item"].to_numpy(), items)
    reason = "" if pairs else _no_pairs(initial)
    note = joined(reason, excluded_note(initial["item"].nunique(), "items", with_one_label=len(alone)))
    items, values = np.concatenate([items, alone]), np.concatenate([values, np.full(len(alone), NAN)])
    return rate_row("exact_agreement", Place(), items, values, settings=settings, note=note)


def _no_pairs(initial: pd.DataFrame) -> str:
    n = initial["reviewer_id"].nunique()
    return f"{n} reviewer{'s' * (n != 1)} with initial labels" + (", no item in common" if n > 1 else "")


def _pair_rows(
    names: tuple[str, str], pair: pd.DataFrame, n_labels: int, settings: Settings
) -> Iterator[dict[str, Any]]:
    place = Place(slice_=f"reviewers={names[0]},{names[1]}")
    items = pair["item"].to_numpy()
    first, second = pair["code_1"].to_numpy(), pair["code_2"].to_numpy()
    yield rate_row("exact_agreement", place, items, (first == second).astype(float), settings=settings)
    note = dominance(first, second)
    yield kappa_row("cohen_kappa", place, items, first, second, n_labels=n_labels, settings=settings, note=note)
    yield from chance_rows(place, items, first, second, settings=settings)
    if not {"score_x_1", "score_y_1"} <= set(pair.columns):
        return
    scores = [pair[[f"score_x_{k}", f"score_y_{k}"]].to_numpy(dtype=np.float64).ravel() for k in (1, 2)]
    if (~np.isnan(scores[0]) & ~np.isnan(scores[1])).any():
        yield from association_rows(place, np.repeat(items, 2), scores[0], scores[1], settings=settings)


def _score_rows(initial: pd.DataFrame, settings: Settings) -> Iterator[dict[str, Any]]:
    """Alpha and intraclass correlation of all reviewers' scores; no row unless two of them scored one answer."""
    if not {"score_x", "score_y"} <= set(initial.columns):
        return
    sides = [
        initial[["item", "reviewer_id", f"system_{side}", f"score_{side}"]].set_axis(
            ["item", "rater", "system", "value"], axis=1
        )
        for side in "xy"
    ]
    given = pd.concat(sides, ignore_index=True).dropna(subset=["value"])
    # An answer that stands in several pairs may be scored in each of them: the mean is the reviewer's score.
    scores = given.groupby(["item", "system", "rater"], sort=False)["value"].mean().reset_index()
    units = np.asarray(scores.groupby(["item", "system"], sort=False).ngroup(), dtype=np.int64)
    if not len(units) or np.bincount(units).max() < 2:
        return
    items, n_raters = scores["item"].to_numpy(dtype=np.int64), int(scores["rater"].nunique())
    for level in ("ordinal", "interval"):
        measure = f"krippendorff_alpha_scores_{level}"
        yield alpha_row(measure, Place(), items, units, scores["value"], level, n_raters, settings)
    wide = scores.assign(unit=units).pivot_table(index=["unit", "item"], columns="rater", values="value")
    yield from icc_rows(
        Place(), wide.index.get_level_values("item").to_numpy(), wide.to_numpy(dtype=np.float64), settings=settings
    )


def _alpha_table(initial: pd.DataFrame, n_labels: int) -> ItemTable | None:
    """Sums of unit features by item; None if no unit has two labels."""
    units, codes = initial["unit"].to_numpy(), initial["code"].to_numpy()
    pairable, features = unit_features(units, codes, n_labels)
    if len(pairable) == 0:
        return None
    item_of_unit = np.zeros(int(units.max()) + 1, dtype=np.int64)
    item_of_unit[units] = initial["item"].to_numpy()
    return ItemTable.of(item_of_unit[pairable], features)


def _alpha_of(totals: Floats) -> Floats:
    return alpha_from_totals(totals)[np.newaxis, :]


def _alpha_row(initial: pd.DataFrame, n_labels: int, settings: Settings, place: Place = Place()) -> dict[str, Any]:  # noqa: B008
    table = _alpha_table(initial, n_labels)
    n_items = initial["item"].nunique()
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": table.n_items if table else 0}
    common["n_excluded"] = n_items - common["n_used"]
    if table is None:
        note = f"undefined: {_no_pairs(initial)}"
        return place.row("krippendorff_alpha", NAN, method="nominal level", note=note, **common)
    return table_row(
        "krippendorff_alpha",
        place,
        table,
        _alpha_of,
        settings=settings,
        note=excluded_note(n_items, "items", with_one_label=common["n_excluded"]),
        undefined="every label is the same",
        method="nominal level",
        **common,
    )


def _tie_rows(initial: pd.DataFrame, settings: Settings) -> Iterator[dict[str, Any]]:
    ties: Floats = np.asarray(initial["preference"].astype(object) == TIE, dtype=np.float64)
    items = initial["item"].to_numpy()
    yield rate_row("tie_rate", Place(), items, ties, settings=settings)
    reviewers = initial["reviewer_id"].astype(str).to_numpy()
    for name in sorted(set(reviewers)):
        chosen = reviewers == name
        place = Place(slice_=f"reviewer={name}")
        yield rate_row("tie_rate", place, items[chosen], ties[chosen], settings=settings)


def alpha_with_judge(
    labels: pd.DataFrame,
    normalized: pd.DataFrame,
    *,
    labels_allowed: Sequence[str],
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Alpha over the reviewers plus one judge's preferences as one more rater, beside the reviewers' own.

    Returns
    -------
    DataFrame
        For each judge and each planned pass (direct, original, swapped), over the same items (those with the judge's
        preference and two initial labels): ``krippendorff_alpha`` (reviewers and judge),
        ``krippendorff_alpha_reviewers`` (without the judge) and ``krippendorff_alpha_difference`` (with minus
        without; from the same resamples; below 0: the judge agrees less with the reviewers than they do among
        themselves).

    Raises
    ------
    ValueError
        As :func:`reviewer_table`.
    """
    settings = Settings(ci_level, resamples, seed)
    initial = initial_labels(labels)
    codes = encode(initial["preference"], labels_allowed, "labels, column preference")
    initial = initial.assign(code=codes)[codes >= 0].reset_index(drop=True)
    units = initial.drop_duplicates("unit")[[*PAIR, "unit", "item"]]
    lines: list[dict[str, Any]] = []
    groups = {str(name): group for name, group in normalized.groupby("judge", sort=False)}
    for judge in each_judge(normalized, labels_allowed):
        for name in ("direct", "original", "swapped"):
            if judge.planned[name].any():
                given = groups[judge.judge][PAIR].assign(code=getattr(judge, name))[judge.planned[name]]
                place = Place(judge.judge, "direct" if name == "direct" else "pairwise", name)
                lines += _with_and_without(place, initial, units, given, len(labels_allowed), settings)
    return frame(lines)


def _with_and_without(
    place: Place,
    initial: pd.DataFrame,
    units: pd.DataFrame,
    given: pd.DataFrame,
    n_labels: int,
    settings: Settings,
) -> Iterator[dict[str, Any]]:
    n_planned = given["item_id"].nunique()
    judged = given[given["code"] >= 0].merge(units, on=PAIR)
    shared = initial[initial["unit"].isin(judged["unit"])]
    counts = shared.groupby("unit")["code"].transform("size")
    people = shared[counts >= 2]
    judged = judged[judged["unit"].isin(people["unit"])]
    n_items = people["item"].nunique()
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items, "n_excluded": n_planned - n_items}
    names = ("krippendorff_alpha", "krippendorff_alpha_reviewers", "krippendorff_alpha_difference")
    if n_items == 0:
        note = "undefined: no item with two initial labels and the judge's preference"
        yield from (place.row(name, NAN, method="nominal level", note=note, **common) for name in names)
        return
    table = _joint_table(people, judged, n_labels)
    width = n_labels + 1

    def statistic(totals: Floats) -> Floats:
        joint, alone = alpha_from_totals(totals[:, :width]), alpha_from_totals(totals[:, width:])
        return np.stack([joint, alone, joint - alone])

    estimates = statistic(table.totals)[:, 0]
    rng = place.rng("alpha_with_judge", settings)
    sampled = bootstrap(table, statistic, resamples=settings.resamples, rng=rng)
    left_out = excluded_note(n_planned, "items", without_two_initial_labels_and_a_usable_verdict=common["n_excluded"])
    carried = carriers(table, statistic)
    for name, estimate, values, few in zip(names, estimates, sampled, carried, strict=True):
        method = joined("nominal level", settings.method)
        if np.isnan(estimate):
            note = joined("undefined: every label is the same", left_out)
            yield place.row(name, NAN, method=method, note=note, **common)
            continue
        kind: Any = "difference" if name.endswith("difference") else "coefficient"
        made = interval_of(values, float(estimate), table.n_items, kind, settings, method, float(few))
        made["note"] = joined(made["note"], left_out)
        yield place.row(name, float(estimate), **made, **common)


def _joint_table(people: pd.DataFrame, judged: pd.DataFrame, n_labels: int) -> ItemTable:
    """Per item: unit features of reviewers and judge together, then those of the reviewers alone."""
    alone_units, alone = unit_features(people["unit"].to_numpy(), people["code"].to_numpy(), n_labels)
    every = pd.concat([people[["unit", "code"]], judged[["unit", "code"]]])
    joint_units, joint = unit_features(every["unit"].to_numpy(), every["code"].to_numpy(), n_labels)
    if not np.array_equal(alone_units, joint_units):
        raise AssertionError("each unit has two labels without the judge, and so with it")
    item_of_unit: Ints = (
        people.drop_duplicates("unit").set_index("unit")["item"].reindex(pd.Index(alone_units)).to_numpy()
    )
    return ItemTable.of(item_of_unit, np.hstack([joint, alone]))
