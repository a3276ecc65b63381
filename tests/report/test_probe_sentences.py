"""Sentences on the battery: what stands, what does not show, what has no value, and what was not asked."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from judgelab.measure.rows import frame, row
from judgelab.report.probe_sentences import battery_sentences

NAN = math.nan
WHERE = {"judge": "j", "strategy": "pairwise", "pass_": "both"}


def rate(measure, probe, k, of, low, high, n=40):
    made = {"interval": (low, high), "ci_level": 0.95, "numerator": k, "denominator": of, "n_used": n}
    return row(measure, k / of if of else NAN, slice_=f"probe={probe}", note="" if of else "undefined: no judgment to "
               "count", **made, **WHERE)  # fmt: skip


def probe(name, effect, p, *, towards=None, n=40, measure="net_flip_rate", interval=None, note=""):
    """The rows of a probe: its effect with an interval of 0.1 on each side, p-values, and counts of 80 judgments."""
    low, high = interval or (effect - 0.1, effect + 0.1)
    undefined = note or "undefined: no judgment to count"
    where = {"slice_": f"probe={name}", "n_used": n, **WHERE}
    notes = {"note": note if math.isfinite(effect) else undefined}
    rows = [row(measure, effect, interval=(low, high), ci_level=0.95, denominator=80, **notes, **where)]
    for kind in ("probe_p", "probe_p_holm"):
        rows.append(row(kind, p, note="" if math.isfinite(p) else undefined, **where))
    if towards is not None:
        for kind, k in (("towards", towards[0]), ("away", towards[1])):
            rows.append(rate(f"flip_{kind}_rate", name, k, 80, 0, 0.5, n))
    return rows


def repetition(floor=0.05):
    note = "" if math.isfinite(floor) else "undefined: no first repetition to count"
    return [
        rate("flip_rate", "repetition", 6, 160, 0.01, 0.08),
        row("noise_floor", floor, denominator=80, n_used=40, slice_="probe=repetition", note=note, **WHERE),
    ]


def said(*rows, minimum=10, left_out=None):
    table = frame([line for part in rows for line in part])
    return battery_sentences(table, judge="j", ci_level=0.95, minimum_items=minimum, left_out=left_out)


def test_what_stands_is_named_worst_first_with_everything_it_rests_on():
    made = said(
        repetition(),
        probe("format", 0.2, 0.01, towards=(20, 4)),
        probe("padding", -0.4, 0.0004, towards=(2, 34)),
        probe("authority", 0.05, 0.3, towards=(10, 6)),
    )
    assert made[0] == (
        "j: the effects of these probes stand, worst first (Holm p below 0.050 and above the noise floor of 0.050): "
        "padding, longer without content, away from the answer that it favours -0.400 (95 % interval [-0.500, -0.300], "
        "n = 40 items, 2 towards and 34 away of 80 judgments, Holm p < 0.001); "
        "format, headings and bullets, towards the answer that it favours +0.200 (95 % interval [0.100, 0.300], "
        "n = 40 items, 20 towards and 4 away of 80 judgments, Holm p = 0.010)."
    )
    assert made[1].startswith("j: no effect shows of authority, invented sources cited, towards")
    assert made[1].endswith("no proof that there is none: effects of up to 0.150 (authority) remain compatible.")
    assert made[2] == (
        "j: asked the same again, it changes its preference in 6/160 = 0.037 (95 % interval [0.010, 0.080], n = 40 "
        "items); repetition alone makes an effect of at most 0.050 in 95 % of such studies (the noise floor)."
    )
    assert len(made) == 3


@pytest.mark.parametrize(
    ("effect", "p", "floor", "stands"),
    [
        (0.2, 0.049, 0.05, True),
        (0.2, 0.05, 0.05, False),
        (0.2, 0.01, 0.2, False),  # not above the floor
        (0.2, 0.01, NAN, True),  # without a floor the test decides
        (0.0, 0.01, 0.0, False),
        (-0.2, 0.01, 0.05, True),
    ],
)
def test_the_rule(effect, p, floor, stands):
    made = said(repetition(floor), probe("padding", effect, p))
    told = "the effect of this probe stands" if stands else "no probe's effect stands"
    assert told in made[0]
    assert ("no effect shows of padding" in made[1]) != stands
    assert ("there is no noise floor" in made[0]) == math.isnan(floor)
    assert ("within the noise floor of 0.200" in made[1]) == (floor == 0.2)


def test_without_repetition():
    made = said(probe("padding", 0.2, 0.01))
    assert "stands (Holm p below 0.050; there is no noise floor)" in made[0]
    assert "nothing was asked again (n = 0 items)" in made[1]
    undefined = said(repetition(NAN), probe("padding", 0.2, 0.01))
    assert "the noise floor is undefined (no first repetition to count)" in undefined[1]


def test_only_more_changes_than_by_repetition_stand():
    more = said(repetition(), probe("labels", 0.2, 0.01, measure="excess_flip_rate"))
    assert "labels, other names for A and B, more changes than by repetition +0.200" in more[0]
    fewer = said(repetition(), probe("labels", -0.2, 0.01, measure="excess_flip_rate"))
    assert "no probe's effect stands" in fewer[0]
    assert "within the noise floor" not in fewer[1]


def test_variants_and_other_judges_are_not_read():
    rows = frame(probe("labels:1/2", 0.2, 0.01) + probe("padding", 0.0, 1.0))
    other = frame(probe("format", 0.5, 0.001)).assign(judge="k")
    made = battery_sentences(pd.concat([rows, other]), judge="j", ci_level=0.95)
    assert "1/2" not in repr(made)
    assert "headings" not in repr(made)


def test_too_few_items_and_no_value_conclude_nothing():
    made = said(
        repetition(),
        probe("format", 0.5, 0.001, n=9),
        probe("injection", NAN, NAN, n=0, note="undefined: no judgment to count; 80 of 80 judgments left out"),
        probe("padding", 0.1, NAN),
    )
    assert made[0] == "j: no probe was tested on enough items: too little data."
    assert "with fewer than the 10 items that the protocol requires, nothing is concluded" in made[1]
    assert "the largest effects are of format" in made[1]
    assert "n = 9 items" in made[1]
    assert "injection, asks for the verdict, (n = 0 items: no judgment to count; 80 of 80" in made[2]
    assert "padding, longer without content, (n = 40 items: no judgment to count)" in made[2]
    assert not any("no effect shows" in sentence for sentence in made)


def test_without_an_interval_no_size_is_ruled_out():
    made = said(repetition(), probe("padding", 0.0, 1.0, interval=(NAN, NAN)))
    assert "without an interval no size can be ruled out" in made[1]
    mixed = said(repetition(), probe("padding", 0.0, 1.0, interval=(NAN, NAN)), probe("format", 0.0, 1.0))
    assert "up to 0.100 (format)" in mixed[1]


@pytest.mark.parametrize(
    ("effect", "decided", "n", "says"),
    [
        (0.4, (35, 80), 40, "it prefers one of the two in 35/80 = 0.438"),
        (0.4, (35, 80), 40, "where neither is better"),
        (0.0, (0, 80), 40, "it never did, a rate of up to 0.500 remains compatible"),
        (0.4, (5, 9), 9, "fewer than the 10 items that the protocol requires: too little data"),
        (NAN, (0, 0), 0, "undefined (n = 0 items: no judgment to count): too little data"),
    ],
)
def test_identical_answers(effect, decided, n, says):
    bounds = (0.3, 0.5) if decided[1] else (NAN, NAN)
    rows = [rate("decisive_rate", "identical", *decided, *bounds, n=n)]
    p = 0.01 if math.isfinite(effect) else NAN
    made = said(repetition(), probe("identical", effect, p, n=n), rows)
    assert says in made[-1]


@pytest.mark.parametrize(("effect", "place"), [(0.4, "first"), (-0.4, "second")])
def test_identical_answers_show_the_place(effect, place):
    made = said(repetition(), probe("identical", effect, 0.001))
    assert f"identical, one answer shown twice, towards the {place} place" in made[0]


def test_what_was_not_asked_has_its_reason():
    left_out = pd.DataFrame(
        {"judge": ["j", "j", "j", "k"], "probe": ["identity", "padding", "format", "labels"],
         "reason": ["the judge has no family", "the record holds no such call", "the record holds no such call", "z"]}
    )  # fmt: skip
    made = said(repetition(), left_out=left_out)
    assert made[-1] == (
        "j: not asked, so that nothing is known of them (n = 0 items): identity (the judge has no family); "
        "padding and format (the record holds no such call)."
    )
    nothing = said([], left_out=left_out)
    assert nothing[0] == "j: no probe was asked (n = 0 items): too little data."
    assert len(nothing) == 2
    assert len(said([], left_out=left_out.iloc[:0])) == 1


def test_names_are_text():
    made = said(repetition(), probe("<script>", 0.4, 0.001))
    assert "<script>" not in made._repr_html_()
