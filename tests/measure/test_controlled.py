"""Strengths with the first place and length held: planted effects, balanced and unbalanced presentations, what is left
out."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.controlled import controlled_strengths
from judgelab.measure.leaderboard import leaderboard

LEVELS = {"a": 0.6, "b": 0.2, "c": -0.2, "d": -0.6}
PLACE, LENGTH = 0.7, 0.9  # log odds of the first place, and of an answer e times as long
OPTIONS = {"ci_level": 0.95, "resamples": 300, "seed": 1}


def judged(items, *, place=0.0, length=0.0, weak_first=0.5, verbose=0.0, seed=1):
    """One presentation of every pair on every item to a judge with logistic noise.

    The weaker system is shown first with the chance ``weak_first``; an answer's log length has a mean that rises by
    ``verbose`` times the strength of its system.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(items):
        words = {s: int(np.exp(4 + verbose * level + 0.6 * rng.normal())) + 1 for s, level in LEVELS.items()}
        for x, y in combinations(LEVELS, 2):
            first = y if rng.random() < weak_first else x
            odds = LEVELS[x] - LEVELS[y] + place * (1 if first == x else -1) + length * np.log(words[x] / words[y])
            won = x if odds + rng.logistic() > 0 else y
            rows.append(("j", item, x, y, first, won, words[x], words[y]))
    columns = ["judge", "item_id", "system_x", "system_y", "first", "preference", "words_x", "words_y"]
    return pd.DataFrame(rows, columns=columns)


def found(rows, measure):
    """Estimate, lower and upper end by slice, ``system=`` taken off."""
    part = rows[rows["measure"] == measure]
    ends = zip(part["estimate"], part["ci_low"], part["ci_high"], strict=True)
    return dict(zip(part["slice"].str.removeprefix("system="), ends, strict=True))


def far(levels):
    """By how many half widths each strength lies from the planted one."""
    return {
        name: abs(levels[name][0] - true) / ((levels[name][2] - levels[name][1]) / 2) for name, true in LEVELS.items()
    }


def plain(table, **options):
    return found(leaderboard(table, **{**OPTIONS, **options}, permutations=1).rows, "log_strength")


def test_a_planted_first_place_is_found_and_strengths_are_unmoved():
    # Strengths of unbalanced presentations: the weaker one is first in nine of ten.
    table = judged(300, place=PLACE, weak_first=0.9)
    rows = controlled_strengths(table, terms=("first_position",), **OPTIONS)
    estimate, low, high = found(rows, "first_position_effect")["all"]
    assert 0.3 < low < PLACE < high < 1.1
    assert estimate == pytest.approx(PLACE, abs=0.2)
    held, moved = far(found(rows, "log_strength")), far(plain(table))
    assert max(held.values()) < 1.3
    assert moved["a"] > 3
    assert moved["d"] > 3
    assert "first_position held" in rows["method"].iloc[0]


def test_balanced_presentations_need_no_control_and_get_no_effect():
    table = judged(300)
    rows = controlled_strengths(table, **OPTIONS)
    for measure, slice_ in (("first_position_effect", "all"), ("covariate_effect", "covariate=length")):
        _, low, high = found(rows, measure)[slice_]
        assert low < 0 < high
    held, without = found(rows, "log_strength"), plain(table)
    assert max(far(held).values()) < 1.3
    assert all(abs(held[name][0] - without[name][0]) < 0.1 for name in LEVELS)


def test_a_planted_length_is_found_and_strengths_are_unmoved():
    table = judged(300, length=LENGTH, verbose=-1.0)  # the weak are the long
    rows = controlled_strengths(table, terms=("length",), **OPTIONS)
    _, low, high = found(rows, "covariate_effect")["covariate=length"]
    assert 0.6 < low < LENGTH < high < 1.2
    assert max(far(found(rows, "log_strength")).values()) < 1.3
    assert min(far(plain(table))[name] for name in ("a", "d")) > 3
    assert "first_position_effect" not in set(rows["measure"])


def test_both_at_once():
    table = judged(300, place=PLACE, length=LENGTH, weak_first=0.8, verbose=-0.7, seed=5)
    rows = controlled_strengths(table, **OPTIONS)
    for measure, slice_, true in (
        ("first_position_effect", "all", PLACE), ("covariate_effect", "covariate=length", LENGTH)
    ):  # fmt: skip
        _, low, high = found(rows, measure)[slice_]
        assert low < true < high
    assert max(far(found(rows, "log_strength")).values()) < 1.3


def test_both_presentations_of_all_pairs_balance_the_place_by_themselves():
    one, other = judged(200, place=PLACE, seed=2), judged(200, place=PLACE, seed=3)
    swapped = np.where(one["first"] == one["system_x"], one["system_y"], one["system_x"])
    odds = (one["system_x"].map(LEVELS) - one["system_y"].map(LEVELS)).to_numpy()
    odds = odds + PLACE * np.where(swapped == one["system_x"], 1, -1)
    won = odds + np.random.default_rng(4).logistic(size=len(one)) > 0
    other = one.assign(first=swapped, preference=one["system_x"].where(won, one["system_y"]))
    table = pd.concat([one, other], ignore_index=True)
    held = found(controlled_strengths(table, terms=("first_position",), **OPTIONS), "log_strength")
    without = plain(table)
    # an effect that is not held pulls all strengths to the mean a little, and changes no order
    assert all(abs(without[name][0]) < abs(held[name][0]) for name in "ad")
    assert max(far(held).values()) < 1.3
    assert sorted(held, key=lambda s: -held[s][0]) == sorted(without, key=lambda s: -without[s][0]) == list("abcd")


@pytest.mark.parametrize(
    ("unknown", "left"),
    [
        (["first"], {"covariate_effect"}),
        (["words_x"], {"first_position_effect"}),
        (["first", "words_x", "words_y"], set()),
    ],
)
@pytest.mark.parametrize("how", ["missing", "no column"])
def test_terms_that_no_match_knows_are_left_out(unknown, left, how):
    table = judged(20, place=PLACE)
    table = table.drop(columns=unknown) if how == "no column" else table.assign(**dict.fromkeys(unknown, np.nan))
    rows = controlled_strengths(table, **OPTIONS)
    assert {name for name in set(rows["measure"]) if name.endswith("_effect")} == left
    if not left:
        assert found(rows, "log_strength") == plain(table)


def test_some_matches_without_a_place_stay_in_and_without_a_length_do_not():
    table = judged(40, place=PLACE)
    rows = controlled_strengths(table.assign(first=table["first"].where(table["item_id"] < 30)), **OPTIONS)
    effect = rows[rows["measure"] == "first_position_effect"].iloc[0]
    assert (effect["n_used"], effect["n_excluded"]) == (240, 0)
    assert "60 of 240 matches without a known first do not enter its effect" in effect["note"]
    rows = controlled_strengths(table.assign(words_x=table["words_x"].where(table["item_id"] < 30)), **OPTIONS)
    effect = rows[rows["measure"] == "covariate_effect"].iloc[0]
    assert (effect["n_used"], effect["n_excluded"]) == (180, 60)
    assert "60 of 240 matches left out: 60 without length" in effect["note"]


def test_answers_of_one_length_say_nothing_of_length():
    rows = controlled_strengths(judged(20).assign(words_x=50, words_y=50), **OPTIONS)
    effect = rows[rows["measure"] == "covariate_effect"].iloc[0]
    assert np.isnan(effect["estimate"])
    assert effect["note"].startswith("undefined: length is 0 in every match")
    assert rows.loc[rows["measure"] == "strength_elo", "estimate"].notna().all()


def test_the_threshold_of_the_panel_does_not_matter_and_the_scale_does():
    table = judged(30, place=PLACE)
    rows = controlled_strengths(table, **OPTIONS)
    pd.testing.assert_frame_equal(rows, controlled_strengths(table, threshold=0.75, **OPTIONS))
    other = controlled_strengths(table, start=0, scale=np.log(10), judge="me", **OPTIONS)
    points, levels = found(other, "strength_elo"), found(other, "log_strength")
    assert {name: point[0] for name, point in points.items()} == pytest.approx({n: x[0] for n, x in levels.items()})
    assert set(other["judge"]) == {"me"}


def test_degenerate_tables():
    table = judged(3)
    assert len(controlled_strengths(table[:0], **OPTIONS)) == 0
    silent = controlled_strengths(table.assign(preference=None), **OPTIONS)
    assert silent["estimate"].isna().all()
    assert silent["note"].str.startswith("undefined: ").all()
    one = controlled_strengths(table[:1], **OPTIONS)
    assert one.loc[one["measure"] == "strength_elo", "estimate"].notna().all()
    assert one["note"].str.contains("no finite maximum", regex=False).all()
    named = controlled_strengths(table[:1], undefined="name", **OPTIONS)
    assert named["estimate"].isna().all()
    with pytest.raises(ValueError, match="no finite strengths"):
        controlled_strengths(table[:1], undefined="error", **OPTIONS)
    always_first = judged(10).assign(preference=lambda t: t["first"])
    rows = controlled_strengths(always_first, terms=("first_position",), **OPTIONS)
    assert rows["note"].str.contains("first_position", regex=False).all()


def test_other_terms_are_refused():
    with pytest.raises(ValueError, match="terms: 'style'; allowed are first_position, length"):
        controlled_strengths(judged(3), terms=("length", "style"), **OPTIONS)


def test_new_names_and_another_order_of_rows_change_nothing_else():
    table = judged(40, place=PLACE, length=LENGTH)
    new = dict(zip("abcd", ["w", "v", "u", "t"], strict=True))
    columns = ("system_x", "system_y", "first", "preference")
    renamed = table.assign(**{name: table[name].map(new) for name in columns})
    turned = renamed.rename(columns={"system_x": "system_y", "system_y": "system_x", "words_x": "words_y",
                                     "words_y": "words_x"}).sample(frac=1, random_state=1)  # fmt: skip
    rows, other = (controlled_strengths(each, **OPTIONS) for each in (table, turned))
    for measure in ("log_strength", "strength_share", "first_position_effect", "covariate_effect"):
        left = {new.get(name, name): numbers for name, numbers in found(rows, measure).items()}
        right = found(other, measure)
        assert {n: x[0] for n, x in left.items()} == pytest.approx({n: x[0] for n, x in right.items()}, rel=1e-7)
        assert all(np.allclose(left[name], right[name], atol=0.15) for name in left)
