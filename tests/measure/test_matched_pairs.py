"""Matched pairs of the probes: every join by hand, a naive twin, invariances, degenerate input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from judgelab.measure.matched_pairs import COLUMNS, matched_pairs
from judgelab.measure.probes import probe_table

NAN = float("nan")
A, B, C, T = "ALPHA", "BETA", "GAMMA", "TIE"
LETTERS = st.sampled_from(["A", "B", T, None])


def call(pass_, first, second, verdict, *, judge="j", item="i", **more):
    """A pairwise call; None is a reply that could not be read."""
    usable = verdict is not None
    made = {"judge": judge, "strategy": "pairwise", "pass": pass_, "item_id": item, "category": "c", "system_x": A}
    made |= {"system_y": B, "first": first, "second": second, "verdict": verdict}
    return made | {"status": "verdict" if usable else "unusable", "reason": None if usable else "no_verdict"} | more


def probe(name, pass_, first, second, verdict, *, manipulated="", repeat=0, words_added=0, **more):
    options = {"probe": name.partition(":")[0], "manipulated": manipulated, "repeat": repeat}
    return call(f"{name}/{pass_}", first, second, verdict, words_added=words_added, **options, **more)


PLAIN = pd.DataFrame(
    [
        call("original", A, B, "A"),
        call("swapped", B, A, T),
        call("original", B, A, None, item="k"),
        call("swapped", A, B, "B", item="k"),
        call("direct", None, None, None, strategy="direct", system=A),
        call("direct", None, None, None, strategy="direct", system=B),
    ]
)


def of(*rows):
    return matched_pairs(PLAIN, pd.DataFrame(list(rows)))


def test_base_is_the_plain_verdict_in_the_same_presentation():
    found = of(
        probe("padding", "swapped", B, A, "A", manipulated=B, words_added=31),
        probe("padding", "original", A, B, "B", manipulated=B, words_added=31),
        probe("padding", "swapped", A, B, "A", item="k", manipulated=A),
        probe("padding", "original", B, A, "A", item="k", manipulated=A),
    )
    assert list(found.columns) == list(COLUMNS)
    assert found["pass"].tolist() == ["swapped", "original", "swapped", "original"]
    assert found["base"].tolist()[:3] == [T, "A", "B"]
    assert pd.isna(found["base"][3]), "the plain verdict could not be read"
    assert found["verdict"].tolist() == ["A", "B", "A", "A"]
    assert found["target"].tolist() == [B, B, A, A]
    assert found["words_added"].tolist() == [31, 31, 0, 0]
    assert (found["variant"] == "").all()
    assert found["again"].isna().all()
    assert (found["reason"] == "").all()


def test_a_plain_call_in_another_presentation_or_of_another_judge_is_no_base():
    found = of(
        probe("padding", "original", B, A, "A", manipulated=B),
        probe("padding", "original", A, B, "A", manipulated=B, judge="other"),
        probe("padding", "original", A, B, "A", manipulated=B, item="unknown"),
    )
    assert found["base"].isna().all()
    assert found["base"].dtype == object


def test_again_is_the_first_repetition():
    rows = [
        probe("repetition", "original", A, B, "B", repeat=2),
        probe("repetition", "original", A, B, T, repeat=1),
        probe("repetition", "swapped", B, A, None, repeat=1),
        probe("criterion_order", "original", A, B, "A"),
        probe("labels:1-2", "swapped", B, A, "B"),
        probe("labels:X-Y", "original", B, A, "B", item="k"),
    ]
    found = of(*rows)
    assert found["again"].tolist()[:2] == [T, T]
    assert found["again"][3] == T
    assert found["again"][[2, 4, 5]].isna().all(), "unreadable, unreadable, never repeated"
    assert found["variant"].tolist() == ["", "", "", "", "1/2", "X/Y"]
    assert found["repeat"].tolist() == [2, 1, 1, 0, 0, 0]
    assert found["reason"].tolist() == ["", "", "no_verdict", "", "", ""]


def test_typos_in_an_answer_favour_the_other_one():
    found = of(
        probe("surface_noise", "original", A, B, "B", manipulated=A),
        probe("surface_noise", "swapped", B, A, "B", manipulated=A),
        probe("surface_noise", "swapped", A, B, "B", item="k", manipulated=B),
        probe("padding", "original", A, B, "B", manipulated=A),
        probe("repetition", "original", A, B, "B", repeat=1),
    )
    assert found["target"].tolist() == [B, B, A, A, ""]


def test_one_answer_shown_twice_has_no_base():
    found = of(
        probe("identical", "original", A, A, "A"),
        probe("identical", "original", B, B, T),
        probe("repetition", "original", A, B, "B", repeat=1),
    )
    assert found["base"].isna().tolist() == [True, True, False]
    assert found["again"].isna().tolist() == [True, True, False]
    assert (found["target"] == "").all()


def test_only_calls_with_a_verdict_count():
    failed = probe("padding", "original", A, B, "A", manipulated=B) | {"status": "failed", "reason": "timeout"}
    found = of(failed, probe("padding", "swapped", B, A, None, manipulated=B))
    assert found["verdict"].isna().all()
    assert found["verdict"].dtype == object
    assert found["reason"].tolist() == ["timeout", "no_verdict"]
    assert found["base"].tolist() == ["A", T]


def test_twice_is_refused():
    more = pd.DataFrame([probe("padding", "original", A, B, "A", manipulated=B)])
    again = pd.concat([PLAIN, PLAIN[:1]], ignore_index=True)
    with pytest.raises(ValueError, match=r"^1 of 5 plain calls repeat a presentation; first judge j, item i, pass"):
        matched_pairs(again, more)
    twice = probe("repetition", "swapped", B, A, "B", repeat=1)
    with pytest.raises(ValueError, match=r"^1 of 2 first repetitions repeat a presentation; first judge j, item i"):
        of(twice, twice)
    with pytest.raises(ValueError, match=r"^plain: missing column verdict"):
        matched_pairs(PLAIN.drop(columns="verdict"), more)
    with pytest.raises(ValueError, match=r"^probed: missing column probe, manipulated"):
        matched_pairs(PLAIN, more.drop(columns=["probe", "manipulated"]))


def test_without_probe_calls_and_without_plain_ones():
    for none in (pd.DataFrame(), pd.DataFrame([probe("padding", "original", A, B, "A")])[:0]):
        found = matched_pairs(PLAIN, none)
        assert list(found.columns) == list(COLUMNS)
        assert found.empty
    found = matched_pairs(PLAIN[:0], pd.DataFrame([probe("padding", "original", A, B, "A", manipulated=B)]))
    assert found["base"].isna().all()
    assert found["verdict"].tolist() == ["A"]


@pytest.mark.parametrize("missing", [None, NAN])
def test_all_missing_columns_stay_columns_of_labels(missing):
    plain = PLAIN.assign(verdict=missing, status="missing")
    rows = [probe(name, "original", A, B, "A", manipulated=B) for name in ("padding", "authority")]
    probed = pd.DataFrame(rows).assign(verdict=missing, reason=missing, status="missing")
    found = matched_pairs(plain, probed)
    for column in ("verdict", "base", "again"):
        assert found[column].dtype == object
        assert found[column].isna().all()
    assert found["reason"].tolist() == ["", ""]
    options = {"ci_level": 0.95, "resamples": 20, "seed": 1}
    assert probe_table(found, **options)["estimate"].isna().all()


def test_untargeted_probes_may_have_missing_targets():
    rows = pd.DataFrame([probe("criterion_order", "original", A, B, "A")]).assign(manipulated=NAN)
    assert matched_pairs(PLAIN, rows)["target"].tolist() == [""]


def test_nothing_given_is_changed():
    plain, probed = PLAIN.copy(), pd.DataFrame([probe("padding", "original", A, B, "A", manipulated=B)])
    before = probed.copy()
    matched_pairs(plain, probed)
    pd.testing.assert_frame_equal(plain, PLAIN)
    pd.testing.assert_frame_equal(probed, before)


NAMES = ["repetition", "identical", "padding", "surface_noise", "criterion_order", "labels:1-2"]


@profile(max_examples=30, deadline=None)
@given(st.data())
def test_naive_twin_and_order_of_rows(data):
    """Looked up call by call; permuting the rows of both tables permutes the result."""
    shown = {"original": (A, B), "swapped": (B, A)}
    places = [(judge, item, pass_) for judge in "jk" for item in "il" for pass_ in shown]
    chosen = data.draw(st.lists(st.sampled_from(places), unique=True))
    plain = {place: data.draw(LETTERS) for place in chosen}
    probed, repeated = [], {}
    for name in data.draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
        for judge, item, pass_ in data.draw(st.lists(st.sampled_from(places), unique=True, min_size=1)):
            first, second = (A, A) if name == "identical" else shown[pass_]
            letter, repeat = data.draw(LETTERS), int(name == "repetition")
            changed = data.draw(st.sampled_from([A, B])) if name in ("padding", "surface_noise") else ""
            where = {"judge": judge, "item": item, "repeat": repeat, "manipulated": changed}
            probed.append(probe(name, pass_, first, second, letter, **where))
            if repeat:
                repeated[judge, item, pass_] = letter
    calls = [call(place[2], *shown[place[2]], letter, judge=place[0], item=place[1]) for place, letter in plain.items()]
    before, after = pd.DataFrame(calls, columns=list(PLAIN.columns)), pd.DataFrame(probed)
    found = matched_pairs(before, after)
    assert len(found) == len(probed)
    for row, given_ in zip(found.to_dict("records"), probed, strict=True):
        place = (given_["judge"], given_["item_id"], row["pass"])
        same = given_["probe"] != "identical"
        for column, known in (("base", plain), ("again", repeated)):
            expected = known.get(place) if same else None
            assert row[column] == expected or (expected is None and pd.isna(row[column]))
        other = {A: B, B: A, "": ""}[given_["manipulated"]]
        assert row["target"] == (other if given_["probe"] == "surface_noise" else given_["manipulated"])
    order = np.array(data.draw(st.permutations(range(len(probed)))))
    moved = matched_pairs(before[::-1], after.iloc[order])
    pd.testing.assert_frame_equal(moved, found.iloc[order].reset_index(drop=True))
