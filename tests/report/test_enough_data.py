"""What a study is told about its size before anything is judged."""

import pytest

from judgelab.report.enough_data import enough_sentences, labels_to_buy, plan_for_people, plan_of
from judgelab.study.freeze import freeze, load_study


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGELAB_OUTPUTS", str(tmp_path))
    return freeze("demo", load_study("demo", {}))


def test_the_demo_is_told_what_it_cannot_see(demo):
    plan, purchases = plan_of(demo), labels_to_buy(demo)
    said = list(enough_sentences(demo, plan, purchases))
    assert "n = 26 labelled items" in said[0]
    # Wilson's half width at 0.8 and n = 26 is 0.149; 245 items give 0.05 (statsmodels: proportion_confint, wilson).
    assert "± 0.149" in said[0]
    assert "245" in said[0]
    assert "larger than the meaningful one (0.05)" in said[1]
    # 1 / (1 + n / z²) <= 0.05 at n = 73
    assert any("unusable rate of 0.05" in one and "73 calls" in one for one in said)
    assert "Buying labels" in said[-1]


def test_every_number_has_its_assumption(demo):
    table = plan_for_people(plan_of(demo))
    assert (table["assumption"].str.len() > 5).all()
    assert (table["value"].str.len() > 0).all()


def test_a_study_without_labels_is_told_so(demo, tmp_path):
    study = load_study("demo", {})
    bare = study.model_copy(update={"human_labels": None, "study_id": "bare"})
    run = freeze("bare", bare)
    said = list(enough_sentences(run, plan_of(run), labels_to_buy(run)))
    assert "No item has a reference (n = 0 items)" in said[0]
    assert "no difference between direct scoring and pairwise comparison is found" in said[1]
