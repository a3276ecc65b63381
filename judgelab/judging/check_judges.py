"""Whether everybody whom a study asks can be asked: keys, models, packages and records. Nothing is sent."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import urlsplit

from judgelab.errors import DataError, JudgeError
from judgelab.judging.findings import Finding, findings_of
from judgelab.judging.generation import generation_plans
from judgelab.judging.judges.embedded import model_file
from judgelab.judging.judges.recorded import records_of
from judgelab.project import resolve, shown
from judgelab.study.battery import RetrievedExamples
from judgelab.study.configuration import asks_a_model
from judgelab.study.protocol import Study

__all__ = ["judge_findings"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
SETUP = "run `make setup`, or take a judge of another kind"


def judge_findings(study: Study, items: Collection[str] | None) -> Iterator[Finding]:
    """What stands in the way of asking, in the order of the protocol: the models that write answers come first.

    Names of environment variables are told, their values never.

    Parameters
    ----------
    study
        The protocol.
    items
        Ids of the items that are judged, to be looked for in records; None where they are not known.
    """
    for plan in generation_plans(study):
        yield from _asked(plan.judge, f"the model of {plan.judge.name.replace(':', ' ', 1)}")
    for judge in study.judges:
        who = f"judge {judge.name}"
        if asks_a_model(judge):
            yield from _asked(judge, who)
        elif judge.kind == "recorded":
            yield from _recorded(judge, who, items)
        elif judge.kind == "simulated" and judge.quality_path and not resolve(judge.quality_path).is_file():
            gone = shown(resolve(judge.quality_path))
            yield Finding("missing", f"{who}: {gone}: no such file", "write item_id, system, quality as CSV")
    yield from _endpoints(study)
    if all(judge.kind == "control" for judge in study.judges):
        yield Finding(
            "advice",
            "every judge is a control without a model",
            "name the judge that is on trial under judges; params/demo.yaml and README show how",
        )


def _asked(judge: Any, who: str) -> Iterator[Finding]:
    """A judge that asks a model: hosted or embedded."""
    if judge.kind == "embedded":
        yield from _embedded(judge, who)
        return
    named = {} if getattr(judge, "auth", None) == "none" or judge.api_key_env is None else {judge.api_key_env: "key"}
    named |= dict.fromkeys(judge.headers_env.values(), "header")
    told = [finding for variable, what in named.items() for finding in _variable(variable, what, who)]
    yield from told
    if not told:
        keys = f"the variable{'s' * (len(named) > 1)} {', '.join(named)} {'are' if len(named) > 1 else 'is'} set"
        yield Finding("ok", f"{who}: {judge.kind}, {judge.model}; {keys if named else 'no key is asked for'}")
    if not judge.prices.known and urlsplit(judge.base_url).hostname not in LOOPBACK:
        yield Finding(
            "advice",
            f"{who}: no price is known, so neither plan nor report can say what it costs",
            "write prices from the provider's list, and limits: {max_cost: ...}, a cap that is never passed",
        )


def _variable(name: str, what: str, who: str) -> Iterator[Finding]:
    """An environment variable: set, and one line of printable ASCII. Its value is not told."""
    value = os.environ.get(name, "").strip()
    if not value:
        mend = f"put the {what} into it where judgelab is started: export {name}=..."
        yield Finding("missing", f"{who}: the environment variable {name} is not set", mend)
    elif not (value.isascii() and value.isprintable()):
        yield Finding(
            "wrong",
            f"{who}: the environment variable {name} holds more than a {what} (a line break, or no ASCII)",
            "set it again",
        )


def _embedded(judge: Any, who: str) -> Iterator[Finding]:
    if importlib.util.find_spec("xllamacpp") is None:
        yield Finding("missing", f"{who}: xllamacpp (llama.cpp) is not installed", SETUP)
    try:
        file = model_file(judge)
    except JudgeError as error:
        said = str(error).partition(": ")[2].partition(";")[0]
        wrong = " has SHA-256 " in said
        mend = "correct model_sha256, or put the file back" if wrong else SETUP
        yield Finding("wrong" if wrong else "missing", f"{who}: {said}", mend)
        return
    yield Finding("ok", f"{who}: embedded, {file.name}")


def _recorded(judge: Any, who: str, items: Collection[str] | None) -> Iterator[Finding]:
    path = resolve(judge.path)
    try:
        records = records_of(judge)
    except DataError as error:
        yield from findings_of(
            error,
            who=who,
            path=path,
            absent="put the file there; `judgelab export` writes the replies of another run as records",
            mend="correct the file; `judgelab export` writes the replies of another run as records",
        )
        return
    told = f"{who}: {len(records)} records in {shown(path)}"
    if items is None:
        yield Finding("ok", told)
        return
    having = len({key[0] for key in records} & set(items))
    if having == len(items):
        yield Finding("ok", f"{told}, of every item")
        return
    yield Finding(
        "advice" if having else "wrong",
        f"{told}, of {having} of {len(items)} items; a call that is not recorded is unusable",
        "take the records that were made of these items" if not having else "add the records of the other items",
    )


def _endpoints(study: Study) -> Iterator[Finding]:
    """The keys of endpoints for embeddings, which find examples."""
    for repair in study.repairs.run:
        endpoint = repair.embeddings if isinstance(repair, RetrievedExamples) else None
        if endpoint is not None and endpoint.api_key_env is not None:
            yield from _variable(endpoint.api_key_env, "key", f"repair {repair.name}")
