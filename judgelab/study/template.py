"""A new study's files: a commented protocol, and templates of items and human labels that nobody can take for data."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import yaml

from judgelab.errors import ProtocolError, RunError
from judgelab.project import project_root
from judgelab.study.protocol import check_run_name, parse_study
from judgelab.study.tables import jsonl_text, write_text

__all__ = [
    "CRITERIA",
    "SYSTEMS",
    "JudgeKind",
    "is_placeholder",
    "items_template",
    "labels_template",
    "study_template",
    "write_study",
]

JudgeKind = Literal["embedded", "chat", "anthropic", "gemini", "recorded"]

SYSTEMS = ("ALPHA", "BETA")

# The criteria that a new study starts from, and what each means.
CRITERIA: Mapping[str, str] = {
    "correctness": "agrees with the task and the context",
    "relevance": "answers what was asked",
    "completeness": "has the needed steps and caveats",
    "safety": "nothing dangerous or unauthorised",
    "clarity": "easy to follow, no padding",
}

_PLACEHOLDER = re.compile(r"REPLACE[ -]with\b")

_HEAD = """\
# Written by `judgelab new`. What reads "REPLACE with ..." is yours to write, here and in the files that are named here.
# `judgelab check params/{file}.yaml` says what is still missing; before `judgelab run` nothing is sent to anybody.
# The first stage freezes all of this: to change it later, take another name for the run.
run: {name}  # the results go to outputs/{file}
study:
  study_id: {name}
  title: REPLACE with a title for the report
  question: REPLACE with the question that this study answers
  # How the items were chosen: every ticket of one week, a random draw of 100, hand-picked. The report quotes it.
  sampling_rule: REPLACE with how the items were chosen
  items:
    path: params/{file}/items.jsonl  # one item a line: item_id, category, task, reference_context, answers
    on_invalid: exclude  # a line that cannot be used is left out and told; refuse: it stops the run
  # What produced the answers. {{family: ...}}, the maker of its model, lets stage 07 see a judge that favours its own.
  systems:
{systems}
"""

_LABELS = """\
  human_labels:
    path: params/{file}/human_labels.csv  # one label a line: an item, a reviewer, and what the reviewer prefers
    provenance: human  # or simulated; every table says which
    reference_rule: [adjudicated, majority]  # the first of these that gives a label makes the reference
  human_review:
    reviewers_per_item: 2  # independent of each other; with 1, nobody knows how far people agree
    adjudicate_disagreement: true  # where they differ, one more label with is_adjudicated true
"""

_NO_LABELS = """\
  # Without human labels nothing says how far a judge agrees with people. To have them: put here, before the first run,
  #   human_labels: {{path: params/{file}/human_labels.csv}}
  human_labels: null
"""

_RUBRIC = """\
  rubric_version: {rubric}  # name it anew whenever the criteria change
  direct_scale:  # direct scoring: each answer alone, one whole number a criterion
    minimum: 1
    maximum: 5
    acceptance_threshold: 4  # the mean from which an answer could be used as it is
    criteria:  # what makes an answer good; people and judges get the same words (weight: 2 makes one count twice)
{criteria}
  direct_tie_margin: 0.25  # two answers whose means differ by no more are a tie
  pairwise_labels: [A, B, TIE]  # [A, B] forces a choice
  tie_meaning: neither answer is meaningfully better under the criteria
  random_seed: {seed}  # draws who stands first, the order of calls, samples and intervals
  split:
    development_share: 0.0  # items set aside to tune on; repairs with examples or recalibration need some, 0.2 say
  passes: [direct, pairwise_original, pairwise_swapped]  # swapped: each pair again, in the other order
  retries: {{malformed_output: 1, transient_error: 2}}  # how often a call is sent again
  timeout_seconds: 120
  judges:
"""

_EMBEDDED = """\
    # A very small LLM on this machine, without key or cost: to see how everything works, not to be trusted.
    - {kind: embedded, name: smollm2-135m, family: smollm, max_tokens: 160}
"""

_HOSTED = """\
    - kind: {kind}  # {what}
      name: my-judge
      model: REPLACE-with-the-name-of-the-model
{address}      api_key_env: {variable}  # the environment variable that holds the key; the key itself never stands here
      temperature: 0.0
      max_tokens: 400  # of one reply
      # From the provider's list, in USD; while both are 0, nobody can say what the study costs.
      prices: {{input_per_million: 0, output_per_million: 0}}
      limits: {{concurrency: 4}}  # calls at a time; max_cost: 20, once there are prices, stops before it is passed
"""

_RECORDED = """\
    - kind: recorded  # replies that were made elsewhere, one record a line, as `judgelab export` writes them
      name: my-judge
      path: params/{file}/records.jsonl
      provenance: REPLACE with the model, its version, and when it was asked
"""

_REST = """\
    # Judges without a model. One that cannot beat them has learnt nothing about the answers.
    - {kind: control, name: always-first, rule: first}
    - {kind: control, name: longest, rule: longest}
    - {kind: control, name: coin, rule: coin, seed: 1}
  blindness:
    names: []  # further words that tell who wrote an answer; systems and known models are looked for anyway
    mask: {}  # word: replacement, done in every answer before it is judged
  measures: {ci_level: 0.95, resamples: 10000}
  decision:  # what the evidence must show before a judge may be used; fixed before anything is judged
    intended_use: relative_ranking  # or absolute_scores, or both
    minimum_items: 50  # with fewer, stage 10 says that there is not enough data
    minimum_agreement: 0.7  # with the human reference
    minimum_kappa: 0.4  # the same beyond chance
    minimum_reviewer_agreement: 0.7  # of people with each other: a yardstick that bends measures nothing
    minimum_swap_consistency: 0.8  # verdicts that survive the other order
    maximum_first_position_deviation: 0.1  # how far the share of first places may be from one half
    maximum_unusable_rate: 0.05  # replies that break their contract
    minimum_coverage: 0.7  # items that are still decided where only verdicts that survive the other order count
    meaningful_difference: 0.05  # the smallest difference that would change what you do
"""

_HOSTS: Mapping[str, tuple[str, str, str]] = {
    "chat": (
        "any OpenAI-compatible endpoint",
        "      base_url: https://REPLACE-with-the-endpoint.example/v1\n",
        "JUDGE_API_KEY",
    ),
    "anthropic": ("Anthropic's Messages API", "", "ANTHROPIC_API_KEY"),
    "gemini": ("Google's Gemini API", "", "GEMINI_API_KEY"),
}


def study_template(
    name: str,
    *,
    seed: int,
    systems: Sequence[str] = SYSTEMS,
    judge: JudgeKind = "embedded",
    criteria: Sequence[str] = tuple(CRITERIA),
    labels: bool = True,
) -> str:
    """The text of ``params/<name>.yaml`` for a new study: every key that must be decided, each with a comment.

    Parameters
    ----------
    name
        The run's name.
    seed
        The protocol's ``random_seed``.
    systems
        Names of the systems whose answers are compared, two or more.
    judge
        The kind of the first judge; three judges without a model follow it.
    criteria
        Names of the rubric's criteria. Those of :data:`CRITERIA` get their description, others a placeholder.
    labels
        Whether the study has human labels.

    Returns
    -------
    str
        YAML that :func:`judgelab.study.protocol.parse_study` accepts. Texts that only its owner knows are placeholders
        (:func:`is_placeholder`).

    Raises
    ------
    ProtocolError
        If the name, a system, a criterion, the seed or the kind of judge is not allowed.
    """
    check_run_name(name, "the new study")
    if judge not in get_args(JudgeKind):
        raise ProtocolError(f"no judge of kind {judge!r}; allowed are {', '.join(get_args(JudgeKind))}")
    if len(systems) < 2:
        raise ProtocolError(f"a study compares two systems or more; named is {', '.join(systems) or 'none'}")
    if not criteria:
        raise ProtocolError("no criterion is named; a rubric has at least one")
    twice = sorted({system for system in systems if systems.count(system) > 1})
    if twice:
        raise ProtocolError(f"systems named more than once: {', '.join(twice)}")
    described = [(each, CRITERIA.get(each, f"REPLACE with what {each} means")) for each in criteria]
    lines = [f"      - {{name: {_plain(each)}, description: {json.dumps(text)}}}" for each, text in described]
    named = "\n".join(f"    {_plain(each)}: {{}}" for each in systems)
    text = _HEAD.format(name=_plain(name), file=name, systems=named)
    text += (_LABELS if labels else _NO_LABELS).format(file=name)
    text += _RUBRIC.format(rubric=_plain(f"{name}-rubric-v1"), criteria="\n".join(lines), seed=seed)
    text += _judge(judge, name) + _REST
    try:
        values = yaml.safe_load(text)["study"]
    except yaml.YAMLError:
        raise ProtocolError(
            f"the new study: {', '.join([*systems, *criteria])}: names are letters, digits, '_', '.', '-'"
        ) from None
    parse_study(values, where="the new study")
    return text


def items_template(systems: Sequence[str]) -> str:
    """Two lines of an items file that hold placeholders for every text; no system's name stands in an answer."""
    records = [
        {
            "item_id": f"item_{number:03d}",
            "category": "REPLACE with a kind of task, or leave it empty",
            "task": "REPLACE with what the systems were asked",
            "reference_context": "REPLACE with the facts that an answer must agree with, or leave it empty",
            "answers": dict.fromkeys(systems, "REPLACE with the answer of this system"),
        }
        for number in (1, 2)
    ]
    return jsonl_text(records)


def labels_template(systems: Sequence[str]) -> str:
    """The header of a file of human labels and one example, of a reviewer who is a placeholder.

    Two systems have one row an item and reviewer; more have one row an item, pair and reviewer. There are at least two.
    """
    first, second = systems[:2]
    if len(systems) == 2:
        columns = [f"{first.lower()}_score", f"{second.lower()}_score", "preference", "is_adjudicated"]
        row = ["4", "3", first, "false"]
    else:
        columns = ["system_x", "system_y", "preference", "score_x", "score_y", "is_adjudicated"]
        row = [first, second, first, "4", "3", "false"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item_id", "reviewer_id", *columns])
    writer.writerow(["item_001", "REPLACE with initials", *row])
    return text.getvalue()


def write_study(
    name: str,
    *,
    seed: int,
    systems: Sequence[str] = SYSTEMS,
    judge: JudgeKind = "embedded",
    criteria: Sequence[str] = tuple(CRITERIA),
    labels: bool = True,
) -> list[Path]:
    """Write ``params/<name>.yaml``, ``params/<name>/items.jsonl`` and, with labels, ``params/<name>/human_labels.csv``.

    Parameters
    ----------
    name, seed, systems, judge, criteria, labels
        See :func:`study_template`.

    Returns
    -------
    list of Path
        The files, the protocol first.

    Raises
    ------
    ProtocolError
        As :func:`study_template`. Nothing is written.
    RunError
        If one of the files is there already, naming all of them: nothing is written. If the disk is full.
    """
    text = study_template(name, seed=seed, systems=systems, judge=judge, criteria=criteria, labels=labels)
    folder = project_root() / "params"
    files = {folder / f"{name}.yaml": text, folder / name / "items.jsonl": items_template(systems)}
    if labels:
        files[folder / name / "human_labels.csv"] = labels_template(systems)
    # not by shown(), which follows links
    there = [f"params/{path.relative_to(folder).as_posix()}" for path in files if path.exists() or path.is_symlink()]
    if there:
        raise RunError(
            f"{', '.join(there)}: already there, and nothing is overwritten; take another name, or move "
            f"{'it' if len(there) == 1 else 'them'} away"
        )
    for path, content in files.items():
        write_text(content, path)
    return list(files)


def is_placeholder(text: str, *, anywhere: bool = False) -> bool:
    """Whether a text is one that the templates left for their owner to write.

    Parameters
    ----------
    text
        A value of the protocol, an item or a label.
    anywhere
        Whether the mark may stand inside the text, as in an address; else only at its start, since a real answer may
        speak of replacing.
    """
    return bool(_PLACEHOLDER.search(text) if anywhere else _PLACEHOLDER.match(text.lstrip()))


def _judge(kind: JudgeKind, name: str) -> str:
    if kind == "embedded":
        return _EMBEDDED
    if kind == "recorded":
        return _RECORDED.format(file=name)
    what, address, variable = _HOSTS[kind]
    return _HOSTED.format(kind=kind, what=what, address=address, variable=variable)


def _plain(text: str) -> str:
    """A name as YAML reads it back as text: quoted where it would be a number, a truth or a date, or has a colon."""
    try:
        same = yaml.safe_load(text) == text and ":" not in text
    except (yaml.YAMLError, ValueError):
        same = False
    return text if same else json.dumps(text)
