"""The repairs as passes: what each of them sends, to whom, and that nothing of the evaluation items tunes any."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
from collections import Counter
from pathlib import Path

import pytest

from judgelab.errors import JudgeError
from judgelab.judging import batch_polling
from judgelab.judging.batch_polling import Polling
from judgelab.judging.evidence import repair_verdicts, verdicts_of
from judgelab.judging.judges import client_for
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import config_sha256, planned_calls
from judgelab.judging.repairs import plain_logprobs, repair_plans, repaired_judges, repairs_left_out
from judgelab.judging.runner import run_passes
from judgelab.study.freeze import open_run

_found = importlib.util.spec_from_file_location("judging_batches", Path(__file__).with_name("batch_server.py"))
assert _found is not None
assert _found.loader is not None
batch_server = importlib.util.module_from_spec(_found)
_found.loader.exec_module(batch_server)

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
SIM = {"name": "sim", "kind": "simulated"}
CHAT = {"name": "chat", "kind": "chat", "model": "m", "base_url": "https://api.example/v1"}
CLAUDE = {"name": "claude", "kind": "anthropic", "model": "m"}
THREE = {"ALPHA": {}, "BETA": {}, "GAMMA": {}}
ALL = ("direct", "pairwise_original", "pairwise_swapped")
LEVELS = {"kind": "level_descriptions", "levels": {1: "nothing", 5: "all of it"}}
BOTH = {"kind": "few_shot", "strategies": ["pairwise", "direct"], "examples": 2}
TOPICS = (  # noqa: SIM905
    "bread ferry lichen harbour violin glacier monsoon parliament saffron comet tractor sonnet kelp volcano quartz "
    "piano beetle tundra chess marble"
).split()


@pytest.fixture
def repaired(make_run, raw_item, project):
    """Maker of a run with repairs; half of its items are for development, and all are labelled."""

    def make(run, judges=(SIM,), count=12, systems=2, repairs=None, labelled=True, share=0.5, **changes):
        names = list(THREE)[:systems]
        items = []
        for number, topic in enumerate(TOPICS[:count]):
            answers = {name: f"{topic} {name[0].lower()}{number} {topic}ness, said of {topic}s" for name in names}
            task = f"{topic.title()}, {topic}s and the {topic} trade: what matters beside {TOPICS[number + 1]}?"
            items.append(raw_item(number, answers=answers, task=task, reference_context="", category="all"))
        if labelled:
            lines = ["item_id,reviewer_id,system_x,system_y,score_x,score_y,preference,is_adjudicated\n"]
            pairs = [(x, y) for place, x in enumerate(names) for y in names[place + 1 :]]
            for n in range(count):
                for x, y in pairs:
                    human, one, two = ((x, 5, 2), (y, 1, 4), ("TIE", 3, 3))[n % 3]
                    lines.append(f"i{n:05d},r,{x},{y},{one},{two},{human},false\n")
            (project / "params" / "labels.csv").write_text("".join(lines))
            changes["human_labels"] = {"path": "params/labels.csv"}
        changes |= {"systems": dict(list(THREE.items())[:systems]), "split": {"development_share": share}}
        return make_run(list(judges), items=items, repairs={"run": run} | (repairs or {}), **changes)

    return make


def calls(run, plan):
    return [call for item in run.items() if item.split == plan.split for call in plan.calls(item)]


def by_pass(run):
    return {plan.pass_: calls(run, plan) for plan in repair_plans(run)}


def ids(run, split):
    return {item.item_id for item in run.items() if item.split == split}


def reasons(run):
    return {(row.judge, row.repair): row.reason for row in repairs_left_out(run).itertuples()}


# --- what is planned


def test_no_repair_is_planned_unless_the_protocol_names_one(repaired):
    run = repaired([])
    assert repair_plans(run) == []
    assert repairs_left_out(run).empty
    assert len(repair_verdicts_of_nothing(run)) == 0


def repair_verdicts_of_nothing(run):
    asyncio.run(run_passes(run, ["direct"]))
    return repair_verdicts(run)


@pytest.mark.parametrize("systems", [2, 3])
def test_each_kind_changes_its_passes(repaired, systems):
    kinds = [
        "verdict_only",
        "reasoning_first",
        LEVELS,
        BOTH,
        "retrieved_examples",
        "logprob_scores",
        "self_consistency",
    ]
    run = repaired([*kinds, "both_presentations", "recalibration", "tie_margin"], judges=[CHAT], systems=systems)
    pairs, singles = 6 * {2: 1, 3: 3}[systems], 6 * systems
    wanted = {"development/direct": singles}
    for name in ("verdict_only", "reasoning_first", "few_shot", "retrieved_examples"):
        wanted |= {f"{name}/original": pairs, f"{name}/swapped": pairs}
    wanted |= {f"self_consistency/{shown}": 5 * pairs for shown in ("original", "swapped")}
    wanted |= {"level_descriptions/direct": singles, "few_shot/direct": singles, "logprob_scores/direct": singles}
    found = by_pass(run)
    assert {name: len(made) for name, made in found.items()} == wanted
    assert all(call.pass_ == name and not call.probe for name, made in found.items() for call in made)
    assert repairs_left_out(run).empty


def test_only_the_development_pass_asks_about_development_items(repaired):
    run = repaired(["verdict_only", BOTH, "tie_margin"], judges=[CHAT])
    development, evaluation = ids(run, "development"), ids(run, "evaluation")
    assert (len(development), len(evaluation)) == (6, 6)
    for name, made in by_pass(run).items():
        asked = {call.item.item_id for call in made}
        assert asked == (development if name == "development/direct" else evaluation)


@pytest.mark.parametrize("kind", ["few_shot", "retrieved_examples"])
@pytest.mark.parametrize("systems", [2, 3])
def test_examples_are_labelled_development_items(repaired, kind, systems):
    run = repaired(
        [{"kind": kind, "examples": 3, "strategies": ["pairwise", "direct"]}], judges=[CHAT], systems=systems
    )
    development = ids(run, "development")
    texts = {item.item_id: item for item in run.items()}
    for name, made in by_pass(run).items():
        for call in made:
            shown = call.wording.examples
            assert len(shown) == len({each.item_id for each in shown}) == 3, name
            assert {each.item_id for each in shown} <= development
            assert call.item.item_id not in {each.item_id for each in shown}
            for each in shown:
                assert set(each.answers) <= set(texts[each.item_id].answers.values())
                assert len(each.answers) == (1 if call.strategy == "direct" else 2)
                assert (each.label in ("A", "B", "TIE")) == (call.strategy == "pairwise")
            assert call.wording.shape == next(p.shape for p in repair_plans(run) if p.pass_ == name)


def test_both_presentations_show_the_same_examples(repaired):
    run = repaired(["few_shot", "retrieved_examples"], judges=[CHAT])
    found = by_pass(run)
    for kind in ("few_shot", "retrieved_examples"):
        original, swapped = (
            {call.item.item_id: call.wording for call in found[f"{kind}/{shown}"]} for shown in ("original", "swapped")
        )
        assert original == swapped
    assert len({call.wording for call in found["few_shot/original"]}) == 1  # the same for all
    assert len({call.wording for call in found["retrieved_examples/original"]}) > 1


def test_the_text_of_no_evaluation_item_stands_in_another_items_prompt(repaired):
    run = repaired([BOTH, "retrieved_examples"], judges=[CHAT])
    evaluation = [item for item in run.items() if item.split == "evaluation"]
    for plan in repair_plans(run):
        for planned in planned_calls(run.study, plan.judge, calls(run, plan)):
            own = planned.call.item.item_id
            assert not any(item.task in planned.prompt.user for item in evaluation if item.item_id != own)


@pytest.mark.parametrize("labelled", [True, False])
def test_without_labelled_development_items_there_are_no_examples(repaired, labelled):
    run = repaired(["few_shot", "retrieved_examples"], judges=[CHAT], labelled=labelled, share=0.0 if labelled else 0.5)
    assert repair_plans(run) == []
    told = "no development item has a human label of the kind that the examples need"
    assert reasons(run) == {("chat", "few_shot"): told, ("chat", "retrieved_examples"): told}


def test_without_development_items_nothing_can_be_tuned(repaired):
    run = repaired(["tie_margin", "recalibration"], judges=[CHAT], share=0.0)
    told = "the study has no development items"
    assert reasons(run) == {("chat", "tie_margin"): told, ("chat", "recalibration"): told}
    assert repair_plans(run) == []


def test_the_sample_is_by_seed_and_stays(repaired):
    def asked(run):
        return {frozenset(call.item.item_id for call in made) for made in by_pass(run).values()}

    one = asked(repaired(["verdict_only", LEVELS], repairs={"items": 3}))
    assert {len(each) for each in one} == {3}
    assert len(one) == 1
    assert asked(repaired(["verdict_only"], name="again", repairs={"items": 3})) == one


# --- who is repaired


def test_controls_are_repaired_only_by_name(repaired):
    run = repaired(["verdict_only"], judges=[COIN, SIM])
    assert {plan.judge.name for plan in repair_plans(run)} == {"sim"}
    named = repaired(["verdict_only", "logprob_scores"], judges=[COIN, SIM], name="named", repairs={"judges": ["coin"]})
    assert [judge.name for judge in repaired_judges(named.study)] == ["coin"]
    assert {plan.pass_ for plan in repair_plans(named)} == {"verdict_only/original", "verdict_only/swapped"}
    assert reasons(named) == {("coin", "logprob_scores"): "it has no tokens"}


def test_who_gives_no_log_probabilities_is_left_out_with_the_reason(repaired):
    run = repaired(["logprob_scores"], judges=[CLAUDE, SIM, CHAT])
    assert {plan.judge.name for plan in repair_plans(run)} == {"chat"}
    assert reasons(run) == {
        ("claude", "logprob_scores"): "its endpoint gives no log-probabilities",
        ("sim", "logprob_scores"): "it has no tokens",
    }


def test_a_judge_without_the_pass_is_left_out_with_the_reason(repaired):
    pairs = CHAT | {"name": "pairs", "passes": ["pairwise_original"]}
    scores = CHAT | {"name": "scores", "passes": ["direct"]}
    panel = {"kind": "panel", "judges": ["pairs", "chat"]}
    kinds = [LEVELS, "logprob_scores", "tie_margin", "few_shot", "verdict_only", "both_presentations", panel]
    run = repaired(kinds, judges=[pairs, scores, CHAT])
    none = "the judge does not run the pass that the repair changes"
    told = reasons(run)
    assert {key for key in told if key[0] == "chat"} == set()
    assert {repair: told["pairs", repair] for repair in ("level_descriptions", "logprob_scores", "tie_margin")} == {
        "level_descriptions": none, "logprob_scores": none, "tie_margin": none,
    }  # fmt: skip
    assert (
        told["pairs", "both_presentations"] == told["scores", "both_presentations"] == "the judge has no swapped pass"
    )
    assert told["scores", "panel"] == "the judge is not on the panel"
    assert ("scores", "few_shot") in told
    asked = {(plan.judge.name, plan.pass_) for plan in repair_plans(run)}
    assert ("scores", "verdict_only/direct") in asked  # the pass that it has
    assert ("pairs", "verdict_only/original") in asked
    assert ("pairs", "verdict_only/swapped") not in asked


def test_other_decoding_is_another_configuration_of_the_same_judge(repaired):
    run = repaired(
        ["verdict_only", {"kind": "reasoning_first", "max_tokens": 900}, "self_consistency", "logprob_scores"],
        judges=[CHAT],
    )
    plain = run.study.judges[0]
    configs = {plan.pass_: config_sha256(plan.judge) for plan in repair_plans(run)}
    assert configs["verdict_only/original"] == config_sha256(plain)
    assert len(set(configs.values())) == 4
    assert {plan.judge.name for plan in repair_plans(run)} == {"chat"}
    assert all(plan.judge.limits == plain.limits and plan.judge.prices == plain.prices for plan in repair_plans(run))
    same = repaired(["reasoning_first"], judges=[CHAT], name="same")
    assert {config_sha256(plan.judge) for plan in repair_plans(same)} == {config_sha256(plain)}


# --- what is sent


def ask(run, passes=()):
    asyncio.run(run_passes(run, [*passes, *repair_plans(run)]))
    return repair_verdicts(run)


def test_samples_have_a_temperature_and_seeds_of_their_own(repaired, server):
    judge = server.judge(seed=5)
    run = repaired([{"kind": "self_consistency", "samples": 3, "temperature": 0.9}], judges=[judge], count=4)
    table = ask(run, ["pairwise_original"])
    plain = [body for body in server.bodies if body["temperature"] == 0]
    drawn = [body for body in server.bodies if body["temperature"] == 0.9]
    assert (len(plain), len(drawn)) == (2, 2 * 2 * 3)
    assert {body["seed"] for body in plain} == {5}
    assert Counter(body["seed"] for body in drawn) == {5: 4, 6: 4, 7: 4}
    assert len({json.dumps(body, sort_keys=True) for body in drawn}) == 12
    assert Counter(table["repeat"]) == {0: 4, 1: 4, 2: 4}
    assert set(table["status"]) == {"verdict"}


def test_samples_of_a_judge_without_a_seed_are_rows_of_their_own(repaired, server):
    run = repaired([{"kind": "self_consistency", "samples": 3}], judges=[server.judge()], count=2)
    table = ask(run)
    assert len(server.bodies) == len(table) == 6
    assert not any("seed" in body for body in server.bodies)
    assert len({json.dumps(body, sort_keys=True) for body in server.bodies}) == 2


def test_reasons_first_get_room_and_a_contract_of_their_own(repaired, server):
    reply = {"reasoning": "Because.", "winner": "B", "confidence": "low"}
    server.script = lambda body, number: server.completion(json.dumps(reply))
    judge = server.judge(response_format="json_schema")
    run = repaired([{"kind": "reasoning_first", "max_tokens": 900}], judges=[judge], count=4)
    table = ask(run)
    assert set(table["verdict"]) == {"B"}
    assert json.loads(table["reply"].iloc[0]) == reply  # the reasons stay in the reply
    assert {body["max_tokens"] for body in server.bodies} == {900}
    schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["reasoning", "winner", "confidence"]


def test_a_plain_reply_to_another_contract_is_unusable(repaired, server):
    run = repaired(["verdict_only", "reasoning_first"], judges=[server.judge()], count=2)
    table = ask(run).set_index("pass")
    assert table.loc["verdict_only/original", ["status", "reason"]].tolist() == ["unusable", "unknown_key"]
    assert table.loc["reasoning_first/original", "status"] == "unusable"


def scored(server, levels):
    """A completion with the tokens of a direct reply; ``levels`` are the alternatives by criterion."""
    tokens, top = ['{"'], {}
    for name, alternatives in levels.items():
        tokens += [name, '":', " "]
        top[len(tokens)] = [{"token": token, "logprob": math.log(p)} for token, p in alternatives.items()]
        tokens += [next(iter(alternatives)), ', "']
    tokens += ["critical_error", '": false, "reason_codes": []}']
    content = [{"token": token, "logprob": -0.1, "top_logprobs": top.get(n, [])} for n, token in enumerate(tokens)]
    message = {"role": "assistant", "content": "".join(tokens)}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": content}}
    return server.Answer({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})


WEIGHTED = {"criteria": [{"name": "correctness", "weight": 3}, {"name": "clarity", "weight": 1}]}
TOPS = {"correctness": {"4": 0.5, "5": 0.25, "x": 0.05}, "clarity": {"2": 0.5, " 3": 0.5}}
# correctness: (4 * 0.5 + 5 * 0.25) / 0.75 = 13/3, outside 0.25; clarity: 2.5, outside 0; weights 3 and 1
EXPECTED, OUTSIDE = (3 * 13 / 3 + 2.5) / 4, 0.125


def test_expected_scores_come_from_the_tokens_of_the_scale(repaired, server):
    server.script = lambda body, number: scored(server, TOPS) if body.get("logprobs") else server.good(body)
    repair = {"kind": "logprob_scores", "alternatives": 7}
    run = repaired([repair], judges=[server.judge()], count=4, direct_scale=WEIGHTED)
    table = ask(run, ["direct"])
    extra = [body for body in server.bodies if body.get("logprobs")]
    assert [body["top_logprobs"] for body in extra] == [7] * 4
    assert len(server.bodies) == 8
    assert set(table["pass"]) == {"logprob_scores/direct"}
    assert table["expected_total"].tolist() == pytest.approx([EXPECTED] * 4)
    assert table["outside_mass"].tolist() == pytest.approx([OUTSIDE] * 4)
    assert set(table["total"]) == {(3 * 4 + 2) / 4}  # the drawn tokens


def test_requests_that_an_endpoint_does_not_take_stop_nothing_else(repaired, server):
    def script(body, number):
        if body.get("logprobs"):
            error = {"message": "logprobs are not supported with this model", "type": "invalid_request_error"}
            return server.Answer({"error": {**error, "param": "logprobs"}}, status=400)
        return server.good(body)

    server.script = script
    run = repaired(["logprob_scores", "few_shot"], judges=[server.judge()], count=4)
    asyncio.run(run_passes(run, list(run.study.passes)))
    asked = asyncio.run(run_passes(run, repair_plans(run)))
    (told,) = asked.attrs["refused"]
    assert told.startswith("logprob_scores/direct: judge ")
    assert "logprobs are not supported with this model" in told
    by_pass = asked.set_index("pass")
    assert by_pass.loc["logprob_scores/direct", ["planned", "verdicts", "unusable"]].tolist() == [4, 0, 0]
    others = by_pass.loc[["few_shot/original", "few_shot/swapped"]]
    assert others["verdicts"].tolist() == others["planned"].tolist() == [2, 2]
    table = repair_verdicts(run)
    assert set(table.loc[table["pass"] == "logprob_scores/direct", "reason"]) == {"not_judged"}


def test_a_judge_that_gives_log_probabilities_is_not_asked_again(repaired, server):
    server.script = lambda body, number: scored(server, TOPS)
    judge = server.judge(capabilities={"logprobs": 5})
    run = repaired(["logprob_scores"], judges=[judge], count=4, direct_scale=WEIGHTED)
    assert repair_plans(run) == []
    assert repairs_left_out(run).empty
    assert [plan.pass_ for plan in plain_logprobs(run.study)["logprob_scores"]] == ["direct"]
    table = ask(run, ["direct"])
    assert len(server.bodies) == len(table) == 4
    assert set(table["pass"]) == {"logprob_scores/direct"}
    assert table["expected_total"].tolist() == pytest.approx([EXPECTED] * 4)


def test_what_an_endpoint_can_do_is_found_out_for_the_repaired_judge_too(repaired, server):
    def script(body, number):
        if body.get("logprobs") and "scale" not in str(body) and "ANSWER" in str(body):
            return scored(server, TOPS)
        return server.completion('{"winner": "A"}') if "alphabet" in str(body) else server.good(body)

    server.script = script
    judge = server.judge(response_format="probe")
    run = repaired(["logprob_scores"], judges=[judge], count=4, direct_scale=WEIGHTED)
    table = ask(run, ["direct"])
    assert table["expected_total"].tolist() == pytest.approx([EXPECTED] * 4)
    assert sum("alphabet" in str(body) for body in server.bodies) == 2  # once for each configuration
    assert {body["response_format"]["type"] for body in server.bodies} == {"json_schema"}


def test_a_reply_without_log_probabilities_has_no_expected_score(repaired, server):
    run = repaired(["logprob_scores"], judges=[server.judge()], count=2)
    table = ask(run)
    assert set(table["status"]) == {"verdict"}
    assert table["expected_total"].isna().all()


@pytest.mark.parametrize(
    ("judge", "place"),
    [
        (CHAT | {"seed": 5}, lambda body: (body["temperature"], body["seed"])),
        (
            {"name": "g", "kind": "gemini", "model": "m", "seed": 5},
            lambda body: (body["generationConfig"]["temperature"], body["generationConfig"]["seed"]),
        ),
        (CLAUDE, lambda body: (body["temperature"], None)),
    ],
    ids=["chat", "gemini", "anthropic"],
)
def test_every_dialect_draws_repeats_apart(repaired, judge, place):
    run = repaired([{"kind": "self_consistency", "samples": 3}], judges=[judge], count=2)
    plan = repair_plans(run)[0]
    client = client_for(plan.judge, run.study)
    sent = [
        place(client.compose(each.call, each.prompt)) for each in planned_calls(run.study, plan.judge, calls(run, plan))
    ]
    assert sent == [(0.7, seed) for seed in ((5, 6, 7) if judge.get("seed") else (None,) * 3)]


def test_repairs_are_asked_in_batches_too(repaired, server, monkeypatch):
    """Two configurations of one judge wait for each other, and share its cap."""
    monkeypatch.setattr(batch_polling, "POLLING", Polling(first=0.005, longest=0.02, patience=8))
    batches = batch_server.Batches(server, "chat")
    run = repaired([{"kind": "self_consistency", "samples": 2}, "few_shot"], judges=[server.judge(seed=5)], count=4)
    plans = ["pairwise_original", *repair_plans(run)]
    found = asyncio.run(run_passes(run, plans, True))
    assert found["verdicts"].tolist() == found["planned"].tolist() == [2, 4, 4, 2, 2]
    assert len(batches.made) == 5  # one a pass
    assert set(repair_verdicts(run)["status"]) == {"verdict"}
    capped = repaired(
        [{"kind": "self_consistency", "samples": 2}],
        judges=[server.judge(seed=5, limits={"max_calls": 5})],
        count=4,
        name="capped",
    )
    with pytest.raises(JudgeError, match="max_calls"):
        asyncio.run(run_passes(capped, ["pairwise_original", *repair_plans(capped)], True))
    with Ledger(capped.path("ledger.sqlite"), read_only=True) as ledger:
        assert len(ledger.attempts()) <= 5


def test_one_cap_counts_plain_and_repaired_calls(repaired, server):
    judge = server.judge(limits={"max_calls": 11, "concurrency": 2})
    kinds = [{"kind": "self_consistency", "samples": 2}, "logprob_scores"]
    run = repaired(kinds, judges=[judge], count=4)
    with pytest.raises(JudgeError, match="max_calls"):
        ask(run, ALL)
    assert len(server.bodies) == 11  # 8 plain ones, and 3 of 12 others
    with pytest.raises(JudgeError, match="max_calls"):
        ask(open_run(run.name))
    assert len(server.bodies) == 11


def test_a_repair_goes_on_where_it_was_killed(repaired, server):
    kinds = ["verdict_only", {"kind": "self_consistency", "samples": 3}, "few_shot"]
    run = repaired(kinds, judges=[server.judge(concurrency=1, seed=1)], count=6)

    def good(body, number):
        only = "confidence is low" not in body["messages"][0]["content"]
        return server.completion(json.dumps({"winner": "A"})) if only else server.good(body)

    server.script = lambda body, number: good(body, 0) if len(server.bodies) <= 8 else server.Answer({}, 401)
    with pytest.raises(JudgeError):
        ask(run)
    failed = len(server.bodies) - 8  # once for each configuration of the judge
    assert failed == 2
    server.script = good
    table = ask(open_run(run.name))
    assert set(table["status"]) == {"verdict"}
    assert len(server.bodies) - failed == len(table) == 3 * 2 * (1 + 3 + 1)
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        assert len(ledger.calls()) == len(table)
    assert len(verdicts_of(run, repair_plans(run))) == len(table)


def test_levels_and_examples_reach_the_judge(repaired, server):
    run = repaired([LEVELS, BOTH], judges=[server.judge()], count=4)
    ask(run)
    systems = [body["messages"][0]["content"] for body in server.bodies]
    users = [body["messages"][1]["content"] for body in server.bodies]
    assert sum("What the levels mean:\n1: nothing\n5: all of it\n" in text for text in systems) == 4
    assert sum("EXAMPLE 2: PEOPLE CHOSE" in text for text in users) == 4
    assert sum("EXAMPLE 2: PEOPLE SCORED IT" in text for text in users) == 4
