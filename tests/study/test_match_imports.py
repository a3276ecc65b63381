"""Arena battles, MT-Bench judgments and AlpacaEval annotations become studies of matches, or are refused by line."""

from __future__ import annotations

import hashlib
import json

import pytest
import yaml

from judgelab.errors import DataError, ProtocolError
from judgelab.judging.match_files import read_matches
from judgelab.judging.ranking_data import open_ranking
from judgelab.study.match_study import parse_match_study
from judgelab.study.sources import IMPORTERS, import_alpaca_eval, import_arena, import_mt_bench
from judgelab.study.tables import read_csv

KEY = "sk-" + "abcdefghijklmnop"  # has the form of a provider's key


@pytest.fixture
def made(project):
    """Write a file, import it, and return the matches, the notes and the parameters."""

    def make(kind, content, name="input.jsonl", run="elsewhere"):
        path = project.root / "given" / name
        write(path, content)
        params, notes = IMPORTERS[kind](path, run)
        matches = read_matches(project.outputs / run / "source" / "matches.csv")
        assert matches.attrs["unused"] == ()
        return matches, notes, params

    return make


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        content = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def refused(kind, project, content, name="input.jsonl"):
    path = project.root / "given" / name
    write(path, content)
    with pytest.raises(DataError) as caught:
        IMPORTERS[kind](path, "refused")
    assert not (project.outputs / "refused").exists()
    assert not (project.root / "params" / "refused.yaml").exists()
    return str(caught.value)


def talk(*answers):
    return [
        part for text in answers for part in ({"role": "user", "content": "?"}, {"role": "assistant", "content": text})
    ]


def battle(winner="model_a", **changes):
    return {
        "question_id": "q1",
        "model_a": "oak",
        "model_b": "elm",
        "winner": winner,
        "judge": "user_1",
        "conversation_a": talk("one two three"),
        "conversation_b": talk("one"),
        "turn": 1,
        "anony": True,
        "language": "English",
        "tstamp": 1682351591.1322,
    } | changes


def judgment(g1="model_1", g2="model_1", **changes):
    return {
        "question_id": 81,
        "model_1": "oak",
        "model_2": "elm",
        "g1_winner": g1,
        "g2_winner": g2,
        "judge": ["warden", "pair-v2"],
        "g1_user_prompt": "...",
        "g1_judgment": "[[A]]",
        "g2_user_prompt": "...",
        "g2_judgment": "[[B]]",
        "turn": 1,
        "tstamp": 1687222875.3,
    } | changes


def single(**changes):
    line = {
        "question_id": 81,
        "model": "oak",
        "judge": ["warden", "single-v1"],
        "user_prompt": "...",
        "judgment": "[[9]]",
    }
    return line | {"score": 9, "turn": 1, "tstamp": 1687222875.4} | changes


def annotation(preference=1.0, **changes):
    return {
        "instruction": "Name a tree.",
        "output_1": "An oak tree",
        "generator_1": "oak",
        "dataset": "helpful_base",
        "output_2": "Elm",
        "generator_2": "elm",
        "annotator": "warden_v1",
        "preference": preference,
    } | changes


def test_every_format_makes_a_study_that_stage_09_opens(made):
    files = {
        "arena": [battle(), battle("tie", question_id="q2", model_b="ash"), battle("model_b", question_id="q3")],
        "mt-bench": [judgment(), judgment("tie", "error", model_2="ash")],
        "alpaca-eval": json.dumps(
            [annotation(), annotation(None, generator_2="ash"), annotation(2.0, instruction="x")]
        ),
    }
    for kind, content in files.items():
        matches, notes, params = made(kind, content, run=f"of-{kind}")
        document = yaml.safe_load(params.read_text())
        study = parse_match_study(document["study"])
        assert (document["run"], study.study_id) == (f"of-{kind}", f"of-{kind}")
        assert params.read_text().startswith(f"# Made by `judgelab import {kind} PATH --run of-{kind}`")
        assert len(open_ranking(f"of-{kind}", {}).matches) == len(matches)
        assert notes[-3] == f"written: matches.csv in outputs/of-{kind}/source"
        assert notes[-2].endswith("are not in these files: the stages that need them cannot run")
        assert notes[-1] == f"written: params/of-{kind}.yaml"
        assert "left out: nothing" in notes
        assert "of 3 systems on " in notes[0]


# arena


def test_battles(made):
    matches, notes, _ = made(
        "arena",
        [
            battle("model_a"),
            battle("model_b", question_id="q2", judge=None, judge_hash="f00d", language="العربية"),
            battle("tie", question_id="q3", model_a="elm", model_b="oak"),
            battle("tie (bothbad)", question_id="q4"),
            battle("tie(both bad)", question_id="q5", anony=False),
        ],
    )
    assert matches["judge"].tolist() == ["user_1", "f00d", "user_1", "user_1", "user_1"]
    assert matches["item_id"].tolist() == ["q1", "q2", "q3", "q4", "q5"]
    assert matches["preference"].tolist() == ["oak", "elm", "TIE", "TIE", "TIE"]
    assert matches["reason"].tolist() == ["", "", "", "bothbad", "bothbad"]
    assert matches["first"].tolist() == ["oak", "oak", "elm", "oak", "oak"]
    assert matches["category"].tolist() == ["English", "العربية", "English", "English", "English"]
    assert (matches["words_x"].unique().tolist(), matches["words_y"].unique().tolist()) == ([3.0], [1.0])
    assert notes[:4] == [
        "read: 5 matches of 2 systems on 5 items by 2 judges, from 1 file",
        "ties: 3 of 5 matches (2 bothbad)",
        "left out: nothing",
        "one order only: position bias cannot be measured",
    ]
    assert "not blind: in 1 of 5 battles the systems' names were shown" in notes


def test_battles_with_the_least_that_is_needed(made):
    bare = {"model_a": "oak", "model_b": "elm", "winner": "model_b"}
    matches, notes, _ = made("arena", [bare, "", bare, bare | {"judge": 7}], name="votes.jsonl")
    assert matches["item_id"].tolist() == ["votes-1", "votes-3", "votes-4"]  # the lines; equal votes are two
    assert matches["judge"].tolist() == ["", "", "7"]
    assert matches[["words_x", "words_y"]].isna().all(axis=None)
    assert "words of both answers: known for 0 of 3 matches" in notes
    _, notes, _ = made("arena", [bare], run="nobody")
    assert notes[0] == "read: 1 match of 2 systems on 1 item by judges that are not named, from 1 file"


def test_both_orders_of_battles_are_counted(made):
    turned = battle(model_a="elm", model_b="oak", tstamp=2.0)
    _, notes, _ = made("arena", [battle(), turned, battle(question_id="q2"), battle(question_id="q1", judge="user_2")])
    assert "both orders: there for 1 of 3 comparisons" in notes


def test_turns_of_one_question_are_items_of_their_own(made):
    both = {"conversation_a": talk("a b", "c d e"), "conversation_b": talk("a", "b")}
    matches, notes, _ = made("arena", [battle(**both), battle(**both, turn=2), battle(question_id="q2", turn=1)])
    assert matches["item_id"].tolist() == ["q1", "q1-turn2", "q2"]
    assert matches["words_x"].tolist() == [2.0, 5.0, 3.0]
    assert "1 of 2 questions were judged at several turns: later turns are items of their own" in notes
    matches, _, _ = made("arena", [battle(**both, turn=2)], run="one-turn")  # there, turn says how long the talk was
    assert matches["item_id"].tolist() == ["q1"]


def test_one_outcome_of_both_orders_has_no_first_place(made):
    machine = {"judge": ["warden", "pair-v2"]}
    matches, notes, _ = made(
        "arena", [battle(), battle("tie (inconsistent)", **machine), battle(question_id="q2", **machine)]
    )
    assert matches["judge"].tolist() == ["user_1", "warden", "warden"]
    assert matches["first"].isna().tolist() == [False, True, True]
    assert matches["reason"].tolist() == ["", "inconsistent", ""]
    assert "one outcome for both orders, so that neither is known: 2 matches of warden" in notes


def test_copies_and_a_system_against_itself_are_left_out(made):
    later = battle(tstamp=99.0)
    matches, notes, _ = made("arena", [battle(), battle(), later, battle(model_b="oak"), battle(model_b="oak", turn=2)])
    assert matches["repeat"].tolist() == [0, 1]
    assert "left out: 1 x the same entry again, to the time" in notes
    assert "left out: 2 x a system compared with itself" in notes
    assert "repeats: 1 of 2 matches are of a judge, item, pair and order that were there before" in notes


def test_many_judges_are_one_crowd(made):
    lines = [battle(judge=f"user_{number}", question_id=f"q{number % 30}", tstamp=number) for number in range(51)]
    matches, notes, _ = made("arena", lines)
    assert matches["judge"].unique().tolist() == ["crowd"]
    assert matches["repeat"].tolist() == [0] * 30 + [1] * 21  # two votes on one battle are two matches
    assert "51 judges are one judge, crowd: more than 50 are not ranked one by one" in notes
    matches, notes, _ = made("arena", lines[:50], run="fifty")
    assert matches["judge"].nunique() == 50
    assert not [note for note in notes if "crowd" in note]


def test_content_that_is_no_text_has_no_words(made):
    pictures = talk([{"type": "image"}])
    lines = [
        battle(conversation_a=pictures),
        battle(conversation_a=[], question_id=2),
        battle(conversation_a="x", turn=3),
    ]
    matches, _, _ = made("arena", lines)
    assert matches["words_x"].isna().all()
    assert matches["words_y"].tolist() == [1.0, 1.0, 1.0]


def test_a_list_of_battles_and_a_folder_of_files(made, project):
    folder = project.root / "battles"
    write(folder / "b.jsonl", [battle(question_id="q2")])
    write(folder / "a.jsonl", b"\xef\xbb\xbf" + json.dumps(battle()).encode() + b"\r\n\r\n")
    write(folder / "._a.jsonl", "not a file of ours")
    write(folder / "notes.json", "neither")
    params, notes = import_arena(folder, "folder")
    matches = read_matches(project.outputs / "folder" / "source" / "matches.csv")
    assert matches["item_id"].tolist() == ["q1", "q2"]
    assert notes[0].endswith("from 2 files")
    assert params == project.root / "params" / "folder.yaml"
    listed, _, _ = made(
        "arena", json.dumps([battle(), battle(question_id="q2")], indent=2), name="clean.json", run="list"
    )
    assert listed.equals(matches)


def test_bad_battles_are_told_with_count_and_the_first_five(project):
    lines = [
        battle(),
        battle("left"),
        "{not json",
        "[1, 2]",
        battle(model_a=""),
        battle(model_b="tie"),
        battle(model_b=" elm"),
        battle(turn="one"),
        battle(question_id=1.5),
    ]
    told = refused("arena", project, lines).split("\n  ")
    assert told[0] == "given/input.jsonl: 8 of 9 entries are not as the format has them; nothing was written"
    assert told[1] == (
        "given/input.jsonl line 2: winner is 'left'; allowed are model_a, model_b, tie, tie (bothbad), "
        "tie (inconsistent)"
    )
    assert told[2].startswith("given/input.jsonl line 3: not valid JSON: ")
    assert told[3] == "given/input.jsonl line 4: is no object"
    assert told[4] == "given/input.jsonl line 5: model_a is missing"
    assert told[5] == "given/input.jsonl line 6: model_b is 'tie'; no system can be called so"
    assert told[6:] == ["and 3 more"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"winner": None}, "winner is None; allowed are"),
        ({"winner": ["model_a"]}, "winner is ['model_a']; allowed are"),
        ({"model_a": 7}, "model_a is 7; a name is text"),
        ({"model_a": "o\nak"}, "model_a is 'o\\nak'; it must be one line"),
        ({"model_a": "oak\ud83d"}, "it must be one line without control characters"),
        ({"judge": {"name": "x"}}, "judge is {'name': 'x'}; allowed are text and whole numbers"),
        ({"judge": True}, "judge is True; allowed are"),
        ({"language": "a\tb"}, "language is 'a\\tb'"),
        ({"turn": True}, "turn is True; allowed are whole numbers from 0"),
        ({"turn": -1}, "turn is -1"),
    ],
)
def test_one_bad_field_of_a_battle(project, change, told):
    message = refused("arena", project, [battle(), battle(**change)])
    assert "1 of 2 entries" in message
    assert f"line 2: {told}" in message or told in message


def test_a_key_is_refused_and_not_shown(project):
    for change in ({"judge": KEY}, {"model_a": f"oak ({KEY})"}, {"question_id": KEY}):
        message = refused("arena", project, [battle(**change)])
        assert "looks like a key" in message
        assert KEY not in message


def test_files_that_are_none(project):
    assert "no such file or folder" in error_of(import_arena, project.root / "nowhere")
    (project.root / "empty").mkdir()
    assert "no file in it that fits *.jsonl or *.json" in error_of(import_arena, project.root / "empty")
    assert "the file is empty" in refused("arena", project, b"")
    assert "not UTF-8" in refused("arena", project, b'{"model_a": "\xe9"}')
    assert "0 matches in 0 entries" in refused("arena", project, "[]")
    assert "not valid JSON" in refused("arena", project, "[{}, ")
    with pytest.raises(ProtocolError, match="--run: run is"):
        import_arena(given(project, [battle()]), "../out")


def error_of(importer, path):
    with pytest.raises(DataError) as caught:
        importer(path, "refused")
    return str(caught.value)


def given(project, lines):
    path = project.root / "given.jsonl"
    write(path, lines)
    return path


# MT-Bench


def test_judgments_are_two_matches_a_line(made):
    matches, notes, _ = made(
        "mt-bench",
        [
            judgment("model_1", "model_2"),
            judgment("tie", "model_2", model_2="ash", turn=2),
            judgment("error", "error", question_id=82, g1_judgment="$ERROR$", g2_judgment="I cannot say."),
            judgment("error", "tie", question_id=83, judge="warden", g1_judgment=None),
        ],
    )
    assert matches["pass"].tolist() == ["original", "swapped"] * 4
    assert matches["first"].tolist() == ["oak", "elm", "oak", "ash", "oak", "elm", "oak", "elm"]
    assert matches["item_id"].tolist() == ["81", "81", "81-turn2", "81-turn2", "82", "82", "83", "83"]
    # g2_winner is mapped back already: it names the system and not the place
    assert matches["preference"].fillna("-").tolist() == ["oak", "elm", "TIE", "ash", "-", "-", "-", "TIE"]
    assert matches["reason"].tolist() == [*[""] * 4, "call failed", "no verdict in the reply", "error", ""]
    assert set(matches["judge"]) == {"warden"}
    assert notes == [
        "read: 8 matches of 3 systems on 4 items by 1 judge, from 1 file",
        "ties: 2 of 8 matches",
        "no preference: 3 of 8 matches (1 call failed, 1 no verdict in the reply, 1 error)",
        "left out: nothing",
        "both orders: there for 4 of 4 comparisons",
        "prompts of warden: pair-v2",
        "written: matches.csv in outputs/elsewhere/source",
        "answers as fields of their own, and people's labels, are not in these files: "
        "the stages that need them cannot run",
        "written: params/elsewhere.yaml",
    ]


def test_single_scores_are_told_and_left_out(made, project):
    paired = judgment(m1_score=9, m2_score=4)
    del paired["turn"]
    matches, notes, _ = made("mt-bench", [single(), judgment(), single(score=-1), paired])
    assert len(matches) == 2
    assert "left out: 2 x score of a single answer, which prefers nothing" in notes
    assert "left out: 1 x pair of single scores (m1_score, m2_score), which no judge compared" in notes
    told = refused("mt-bench", project, [single()])
    assert (
        told == "given/input.jsonl: 0 matches in 1 entry; left out: 1 x score of a single answer, which prefers nothing"
    )


def test_a_prompt_is_a_judge_of_its_own_only_where_it_must_be(made):
    other = {"judge": ["warden", "pair-v3"]}
    matches, notes, _ = made("mt-bench", [judgment(), judgment(question_id=101, judge=["warden", "pair-math-v1"])])
    assert set(matches["judge"]) == {"warden"}
    assert "prompts of warden: pair-math-v1, pair-v2" in notes
    matches, notes, _ = made("mt-bench", [judgment(), judgment(**other, model_1="elm", model_2="oak")], run="two")
    assert matches["judge"].tolist() == ["warden pair-v2"] * 2 + ["warden pair-v3"] * 2
    assert "prompts of warden: pair-v2, pair-v3; each is a judge of its own" in notes


def test_a_judgment_made_again_is_a_repeat(made):
    matches, notes, _ = made("mt-bench", [judgment(), judgment(tstamp=2.0), judgment(tstamp=2.0)])
    assert matches["repeat"].tolist() == [0, 0, 1, 1]
    assert "left out: 1 x the same entry again, to the time" in notes
    assert "repeats: 2 of 4 matches are of a judge, item, pair and order that were there before" in notes


def test_a_pair_the_other_way_round_is_no_repeat(made):
    matches, _, _ = made("mt-bench", [judgment(), judgment("tie", "tie", model_1="elm", model_2="oak")])
    assert matches["repeat"].tolist() == [0, 0, 0, 0]
    assert matches["first"].tolist() == ["oak", "elm", "elm", "oak"]


def test_the_folder_of_judgments(project):
    folder = project.root / "mt_bench"
    write(folder / "question.jsonl", [{"question_id": 81, "turns": ["?", "?"]}])
    write(folder / "model_judgment" / "warden_pair.jsonl", [judgment()])
    write(folder / "model_judgment" / "warden_single.jsonl", [single()])
    _, notes = import_mt_bench(folder, "folder")
    assert notes[0] == "read: 2 matches of 2 systems on 1 item by 1 judge, from 2 files"
    direct, _ = import_mt_bench(folder / "model_judgment", "direct")
    assert direct.is_file()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"g1_winner": "A"}, "g1_winner is 'A'; allowed are model_1, model_2, tie, error"),
        ({"g2_winner": None}, "g2_winner is None; allowed are"),
        ({"question_id": None}, "no question_id"),
        ({"model_2": None}, "model_2 is missing"),
        ({"turn": 0}, "turn is 0; allowed are whole numbers from 1"),
        ({"turn": "2"}, "turn is '2'"),
        ({"judge": ["warden", None]}, "judge is None; allowed are text and whole numbers"),
    ],
)
def test_one_bad_field_of_a_judgment(project, change, told):
    message = refused("mt-bench", project, [judgment(), judgment(**change)])
    assert f"given/input.jsonl line 2: {told}" in message


# AlpacaEval


def test_annotations(made):
    instructions = [f"Task {number}" for number in range(7)]
    values = [1.0, 2, 1.5, 1.2, 1.9999, None, 0]
    rows = [annotation(value, instruction=text) for value, text in zip(values, instructions, strict=True)]
    matches, notes, _ = made("alpaca-eval", json.dumps(rows, indent=4), name="annotations.json")
    assert matches["preference"].fillna("-").tolist() == ["oak", "elm", "TIE", "oak", "elm", "-", "TIE"]
    assert matches["item_id"].tolist() == [hashlib.sha256(text.encode()).hexdigest()[:12] for text in instructions]
    assert matches["first"].isna().all()
    assert matches["reason"].tolist() == [*[""] * 5, "no preference in the file", ""]
    assert matches[["judge", "category"]].drop_duplicates().values.tolist() == [["warden_v1", "helpful_base"]]
    assert (matches["words_x"].unique().tolist(), matches["words_y"].unique().tolist()) == ([3.0], [1.0])
    assert notes[:-3] == [
        "read: 7 matches of 2 systems on 7 items by 1 judge, from 1 file",
        "ties: 2 of 7 matches",
        "no preference: 1 of 7 matches (1 no preference in the file)",
        "left out: nothing",
        "the order in which answers were shown is not in these files: position bias cannot be measured",
        "weighted: 2 of 7 preferences lie between 1 and 2; each is the nearer system",
        "words of both answers: known for 7 of 7 matches",
    ]


def test_annotations_of_several_systems_and_of_the_reference_itself(project):
    folder = project.root / "results"
    write(folder / "elm" / "warden_v1" / "annotations.json", json.dumps([annotation()]))
    write(folder / "oak" / "warden_v1" / "annotations.json", json.dumps([annotation(1.5, generator_2="oak")]))
    write(folder / "ash" / "warden_v1" / "annotations.json", json.dumps([annotation(2.0, generator_2="ash")]))
    _, notes = import_alpaca_eval(folder, "board")
    assert notes[0] == "read: 2 matches of 3 systems on 1 item by 1 judge, from 3 files"
    assert "left out: 1 x a system compared with itself" in notes


def test_nan_is_no_preference_and_an_input_is_part_of_the_task(made):
    text = json.dumps(
        [annotation(float("nan")), annotation(input="of Kent", output_2=None), annotation(annotator=None)]
    )
    assert "NaN" in text
    matches, notes, _ = made("alpaca-eval", text)
    assert matches["preference"].isna().tolist() == [True, False, False]
    assert (matches["item_id"] == matches["item_id"][0]).tolist() == [True, False, True]
    assert matches["judge"].tolist() == ["warden_v1", "warden_v1", ""]
    assert matches["words_y"].isna().tolist() == [False, True, False]
    assert "words of both answers: known for 2 of 3 matches" in notes


@pytest.mark.parametrize("value", [0.5, 2.01, -1, True, "1", float("inf"), [1]])
def test_a_preference_that_is_none(project, value):
    message = refused("alpaca-eval", project, json.dumps([annotation(), annotation(value)]))
    assert "given/input.jsonl entry 2: preference is " in message
    assert "allowed are numbers from 1 to 2, 0 (an old draw) and null" in message


def test_annotations_without_what_is_needed(project):
    rows = [annotation() for _ in range(3)]
    del rows[0]["preference"], rows[1]["generator_1"], rows[2]["instruction"]
    told = refused("alpaca-eval", project, json.dumps(rows)).split("\n  ")
    assert [line.split(": ", 1)[1] for line in told[1:]] == [
        "no preference (null where there is none)",
        "generator_1 is missing",
        "instruction is None; allowed is text",
    ]


# what is written


def test_importing_again_leaves_the_parameters_alone(made, project):
    _, _, params = made("arena", [battle()])
    source = project.outputs / "elsewhere" / "source" / "matches.csv"
    before = source.read_bytes()
    params.write_text(params.read_text() + "# mine\n")
    _, notes, _ = made("arena", [battle()])
    assert params.read_text().endswith("# mine\n")
    assert notes[-1] == "params/elsewhere.yaml is there already and was left as it is"
    assert source.read_bytes() == before
    assert read_csv(source).columns == (
        *("judge", "item_id", "category", "pass", "repeat", "system_x", "system_y", "first", "preference", "reason"),
        *("words_x", "words_y"),
    )


def test_texts_that_a_table_might_break_on(made):
    odd = {"model_a": 'o"a,k 🌳', "judge": "=1+1", "question_id": "007", "language": "NA"}
    matches, _, _ = made("arena", [battle(**odd), battle(question_id="1e5", judge=";'")])
    assert matches["system_x"].tolist() == ['o"a,k 🌳', "oak"]
    assert matches["judge"].tolist() == ["=1+1", ";'"]
    assert matches["item_id"].tolist() == ["007", "1e5"]
    assert matches["category"].tolist() == ["NA", "English"]
