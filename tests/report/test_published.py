"""Published figures are compared as printed, and a difference must say why."""

import pytest

from judgelab.errors import DataError
from judgelab.report.published.figure import Figure, as_printed, figure_frame
from judgelab.report.published.pitfalls import pitfall_table
from judgelab.report.published.table import SOURCES, data_folder, figure_sentences, published_figures, source_table


@pytest.mark.parametrize(
    ("value", "published", "digits", "shown"),
    [
        (0.93549, "93.5%", None, "93.5%"),
        (0.6419, "64.17910447761194%", 1, "64.2%"),
        (-0.0158078, "-.015808", None, "-0.015808"),
        (0.556510049, "0.55651", 6, "0.556510"),
        (-0.0001, "0.00", None, "0.00"),
        (105, "422", None, "105"),
        (float("nan"), "0.5", None, "undefined"),
    ],
)
def test_a_number_is_shown_as_the_published_one_was_printed(value, published, digits, shown):
    assert as_printed(value, published, digits) == shown


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="no published number"):
        as_printed(0.5, "(1,2,3)")


@pytest.mark.parametrize(
    ("published", "ours", "digits", "equal"),
    [
        (".8075", 0.80748, None, True),
        (".8075", 0.80744, None, False),
        ("92 / 100", "92 / 100", None, True),
        ("0.55651", 0.5565104, 6, True),  # a trailing zero is not printed there: 0.556510
        ("0.55651", 0.5565106, 6, False),
        ("0.9389747762408462", 0.93897477624, 9, True),
    ],
)
def test_equal_means_equal_to_the_last_compared_digit(published, ours, digits, equal):
    assert Figure("source", "figure", published, ours, 10, digits, remark="why").equal is equal


def test_a_difference_without_a_reason_is_refused():
    with pytest.raises(ValueError, match=r"published 0\.50, ours 0\.60, and nothing says why"):
        figure_frame([Figure("source", "figure", "0.50", 0.6, 10)])
    assert figure_frame([Figure("source", "figure", "0.50", 0.6, 10, remark="rounded up")])["equal"].tolist() == ["no"]


@pytest.mark.data
def test_every_published_figure_comes_out_or_says_why(shared):
    figures = published_figures(shared / "data")
    assert set(figures["data"]) == set(SOURCES)
    differ = figures[figures["equal"] == "no"]
    # LLMBar's three recoded kappas and the swapped cell of PandaLM's README are traps that the data's README names.
    assert sorted(differ["figure"].str.split(":").str[0]) == [
        "kappa_False", "kappa_True", "kappa_average", "people"
    ]  # fmt: skip
    ranks = figures[figures["figure"].str.startswith("rank correlation")]
    assert ranks["published"].tolist() == ["0.730918", "0.716610", "0.717136"]
    assert ranks["equal"].tolist() == ["yes"] * 3
    assert differ["remark"].str.len().min() > 20
    counts = source_table(figures)
    assert counts["figures"].sum() == len(figures) == counts["equal"].sum() + counts["explained"].sum()
    assert f"{len(figures) - 4} of {len(figures)} published figures" in str(figure_sentences(figures)[0])


@pytest.mark.data
def test_the_kappas_that_are_no_target_are_those_of_recoded_labels(shared):
    """The trap is understood: the printed number comes out when the winner 2 is called 0 and the label 2 stays."""
    import json

    from sklearn.metrics import cohen_kappa_score

    folder = shared / "data/llmbar_natural/LLMBar/Natural/evaluators/GPT-4/Vanilla_NoRules"
    results = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    printed = json.loads((folder / "statistics.json").read_text(encoding="utf-8"))
    labels = [result["label"] for result in results]
    for swap in ("False", "True"):
        winners = [int(result["results"][-1][f"swap = {swap}"]["winner"]) for result in results]
        recoded = [0 if winner == 2 else winner for winner in winners]
        assert cohen_kappa_score(labels, recoded) == pytest.approx(printed[f"kappa_{swap}"], abs=1e-12)


def test_a_data_set_that_is_not_here_is_said(tmp_path, shared):
    (tmp_path / "position_bias_mtbench").symlink_to(shared / "data/position_bias_mtbench")
    figures = published_figures(tmp_path)
    assert set(figures["data"]) == {"position_bias_mtbench"}
    assert "judgelab fetch" in str(figure_sentences(figures)[-1])
    with pytest.raises(DataError, match="none of the data sets"):
        published_figures(tmp_path / "position_bias_mtbench")
    with pytest.raises(DataError, match="no such folder"):
        data_folder(str(tmp_path / "nothing"))


def test_pitfalls_are_answered_with_a_reason_or_a_count():
    table = pitfall_table().set_index("input")["judgelab"]
    assert len(table) >= 5
    for given, said in {
        "Human and judge give the same label to all 20 items": "undefined",
        "A reply that quotes a verdict from an answer and then gives another": "verdict B",
        "Two reviewers, two different labels": "unresolved",
        "After the swap one of four winners turns into a tie, one into the other winner": "2/4",
        "Two replies of four hold no verdict; people call both items ties": "2/2",
        "A system that won every match, and two systems": "undefeated",
    }.items():
        assert said in table[given], given
