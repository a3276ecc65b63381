"""Paired comparisons without a finite maximum: named, penalised or refused, never silent."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from judgelab.measure.comparison_fit import Likelihood, fit_samples
from judgelab.measure.match_counts import MatchCounts
from judgelab.measure.paired_comparison import fit_strengths
from judgelab.measure.tie_rules import BINARY, DAVIDSON, RAO_KUPPER

OPTIONS = {"ci_level": 0.95, "resamples": 50, "seed": 1}
COLUMNS = ["system_x", "system_y", "preference"]
TIES = ("half", "dropped", "davidson", "rao_kupper")


def matches(*rows, columns=COLUMNS):
    return pd.DataFrame(list(rows), columns=columns)


def fit(table, **options):
    return fit_strengths(table, **{**OPTIONS, **options})


def test_undefeated_winless_disconnected_and_absent():
    table = matches(
        *[("a", "b", "a"), ("a", "b", "b"), ("c", "a", "c"), ("b", "d", "b")],
        *[("e", "f", "e"), ("e", "f", "f"), ("e", "f", "f"), ("a", "g", None), ("b", "a", "a")],
    )
    found = fit(table)
    assert found.penalised
    assert np.isfinite(found.level[:6]).all()
    assert np.isnan(found.level[6])
    assert found.reasons[2] == "undefeated in its 1 match: its strength has no upper bound"
    assert found.reasons[3] == "winless in its 1 match: its strength has no lower bound"
    assert found.reasons[6] == "no match"
    assert "no finite maximum" in found.notes[0]
    assert "c undefeated" in found.notes[0]
    assert "normal prior of mean 0 and sd 2 on the log strengths" in found.notes[0]
    # Two groups of two: neither is the largest.
    assert np.isnan(fit(table, undefined="name").level).all()
    more = pd.concat([table, matches(("c", "b", "b"))])
    found = fit(more, undefined="name")
    assert np.isfinite(found.level[:3]).all()
    assert np.isnan(found.level[3:]).all()
    assert not found.penalised
    assert found.reasons[4] == "no chain of matches joins it with f to the systems that have strengths"
    assert found.notes[0] == "strengths of 3 of 7 systems; undefined for d, e, f, g"
    with pytest.raises(ValueError, match=r"no finite strengths: d winless in its 1 match.*g no match"):
        fit(more, undefined="error")


def test_prior_by_hand():
    # a beat b twice: maximise 2 ln σ(2u) − u² / s²; its derivative 4 (1 − σ(2u)) − 2u / s² is 0.
    found = fit(matches(("a", "b", "a"), ("a", "b", "a")), prior_sd=1.5)
    u = found.level[0]
    assert 4 * (1 - expit(2 * u)) == pytest.approx(2 * u / 1.5**2, abs=1e-9)
    assert found.method.endswith("normal prior of sd 1.5 on the log strengths")
    # A prior is used only where there is no maximum.
    table = matches(("a", "b", "a"), ("a", "b", "b"), ("a", "b", "a"))
    assert (fit(table, prior_sd=0.1).level == fit(table).level).all()


def test_first_place_that_always_wins():
    columns = [*COLUMNS, "first"]
    table = matches(("a", "b", "a", "a"), ("a", "b", "b", "b"), ("b", "a", "a", "a"), columns=columns)
    found = fit(table, first_position=True)
    assert "first_position decides matches without error (separation)" in found.notes[0]
    assert found.notes[0].endswith("on all parameters")
    assert found.first_position.estimate > 0
    found = fit(table, first_position=True, undefined="name")
    assert np.isnan(found.first_position.estimate)
    assert np.isnan(found.level).all()
    assert found.first_position.note == "undefined: first_position decides matches without error (separation)"
    with pytest.raises(ValueError, match="first_position decides matches"):
        fit(table, first_position=True, undefined="error")


def test_place_or_covariate_that_is_the_system():
    table = matches(("a", "b", "a"), ("a", "b", "b"), ("a", "b", "b")).assign(first="a", style=[1, 1, 1])
    for terms, name in (({"first_position": True}, "first_position"), ({"covariates": ["style"]}, "style")):
        found = fit(table, undefined="name", **terms)
        assert np.isnan(found.level).all()
        assert found.reasons[0] == f"{name} cannot be told from the strengths (collinear)"
        assert f"{name} cannot be told" in fit(table, **terms).notes[0]


def test_terms_that_never_vary_are_left_out():
    table = matches(("a", "b", "a"), ("a", "b", "b"), ("a", "b", "a")).assign(first=None, words_x=9, words_y=9)
    found = fit(table, first_position=True, covariates=["length"])
    assert found.first_position.note == "undefined: no match has a known first"
    assert found.covariates["length"].note == "undefined: length is 0 in every match"
    assert found.level[0] == pytest.approx(np.log(2) / 2)
    missing = table.assign(words_x=[5, np.nan, 7])
    assert fit(missing, covariates=["length"]).notes[-1] == "1 of 3 matches left out: 1 without length"


def test_separated_ties():
    # b never wins and ties once: Davidson's chance of b can go to 0, which no finite strengths give.
    table = matches(("a", "b", "a"), ("a", "b", "TIE"))
    assert "ties decide" in fit(table, ties="davidson").notes[0]
    assert np.isfinite(fit(table).level).all()
    assert not fit(table).penalised
    only = matches(("a", "b", "TIE"), ("a", "b", "TIE"))
    assert fit(only).level.tolist() == [0.0, 0.0]
    assert fit(only, ties="davidson").level == pytest.approx([0, 0], abs=1e-12)
    assert fit(only, ties="davidson").penalised
    assert np.isnan(fit(only, ties="dropped").level).all()
    assert fit(only, ties="dropped").reasons == ("no match", "no match")


def test_resamples_without_a_maximum_are_counted():
    table = matches(("a", "b", "a"), ("a", "b", "b"), ("a", "b", "a"), ("a", "b", "a"))
    found = fit(table, resamples=500)
    # 4 matches drawn from 3 wins and 1 loss: all wins with chance 0.75^4, all losses with 0.25^4; together 0.320.
    count = int(found.notes[0].split()[0])
    assert count == pytest.approx(0.320 * 500, abs=4 * np.sqrt(500 * 0.32 * 0.68))
    assert found.notes[0] == f"{count} of 500 resamples have no finite maximum and got the prior"
    assert np.isfinite(found.draws).all()
    strict = fit(table, resamples=500, undefined="name")
    assert int(np.isnan(strict.draws[:, 0]).sum()) == count
    assert strict.notes[0] == f"{count} of 500 resamples have no finite maximum and are left out"


@pytest.mark.parametrize("ties", TIES)
def test_no_rows_and_all_missing(ties):
    empty = fit(matches(), ties=ties)
    assert empty.level.shape == (0,)
    missing = fit(matches(("a", "b", None)).assign(first="a"), ties=ties, first_position=True)
    assert np.isnan(missing.level).all()
    assert missing.reasons == ("no match", "no match")
    assert missing.first_position.note == "undefined: no match"
    assert missing.n_used == 0


def test_refusals():
    table = matches(("a", "b", "a"))
    for options, message in (
        ({"ties": "other"}, "ties is 'other'"),
        ({"undefined": "other"}, "undefined is 'other'"),
        ({"prior_sd": 0.0}, "prior_sd is 0.0"),
        ({"first_position": True}, "missing column first"),
        ({"covariates": ["length"]}, "missing column words_x"),
        ({"ci_level": 1.0}, "ci_level is 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(table, **options)
    with pytest.raises(ValueError, match="1 rows show a system first that is not in them"):
        fit(table.assign(first="c"), first_position=True)


@pytest.mark.parametrize("ties", TIES)
def test_a_maximum_is_found_where_linear_programming_says_there_is_one(ties):
    # Newton's method and the linear programme of Konis (2007) know nothing of each other.
    rng, rule = np.random.default_rng(11), {"davidson": DAVIDSON, "rao_kupper": RAO_KUPPER}.get(ties, BINARY)
    seen = []
    for _ in range(60):
        n = int(rng.integers(4, 16))
        names, x = np.array(list("abc"), dtype=object), rng.integers(0, 3, n)
        y = (x + rng.integers(1, 3, n)) % 3
        won = np.where(rng.random(n) < 0.5, names[x], names[y])
        table = pd.DataFrame({"system_x": names[x], "system_y": names[y]})
        table["preference"] = np.where(rng.random(n) < 0.3, "TIE", won)
        table["first"] = np.where(rng.random(n) < 0.7, names[x], names[y])
        counts = MatchCounts.of(table, ties=ties, first_position=True, covariates=())
        cells = counts.cells(counts.read.played > 0)
        totals = cells.items.totals.T.copy()
        if rule is not BINARY and not totals[2 * len(cells.x) :].any():
            continue
        likelihood = Likelihood(int((counts.read.played > 0).sum()), cells.x, cells.y, cells.terms, rule)
        start = np.where(np.arange(likelihood.size) < likelihood.linear, 0.0, 0.5)
        options = {"prior": np.zeros(likelihood.size), "inverse": None, "tolerance": 1e-11}
        found = fit_samples(likelihood, totals, start, **options)[1]
        full = np.linalg.matrix_rank(likelihood.design.toarray()) == likelihood.linear - 1
        seen.append((bool(found[0]), bool(full and likelihood.separating(totals) is None)))
    assert all(ours == theirs for ours, theirs in seen)
    assert 10 < sum(ours for ours, _ in seen) < len(seen) - 3
