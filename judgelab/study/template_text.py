"""The texts of a new study's protocol, part by part, each key with a comment; see :mod:`judgelab.study.template`."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EMBEDDED", "HEAD", "HOSTED", "HOSTS", "LABELS", "MADE_HERE", "NO_LABELS", "RECORDED", "REST", "RUBRIC"]

HEAD = """\
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

MADE_HERE = """\
  # People label in notebook 02, blind, once stage 01 has frozen this; or in sheets: `judgelab labels export {file}`.
  human_labels:
    provenance: human
    reference_rule: [adjudicated, majority]  # the first of these that gives a label makes the reference
  human_review:
    reviewers_per_item: 2  # independent of each other; with 1, nobody knows how far people agree
    adjudicate_disagreement: true  # where they differ, somebody decides by the rule below, in the same notebook
    labelling:  # how people label; without it, human_labels.path names a file
      mode: pairs  # or ranking: all answers of an item are put in order at once
      training: 3  # items of the development split to practise on; they are no part of the evaluation
      repeats_share: 0.1  # of the tasks come twice, to see whether a reviewer repeats himself
      criterion_scores: false  # true: a score for each answer and criterion, too
      label_development: false  # true: development items get labels, too; repairs with examples need them
      # training_key: params/{file}/training_key.csv  # item_id, preference, explanation: told after a training item
      # Who adjudicates reads this rule beside the labels that differ.
      adjudication_rule: Read everything again and decide by the criteria alone, not by how many said what.
"""

LABELS = """\
  human_labels:
    path: params/{file}/human_labels.csv  # one label a line: an item, a reviewer, and what the reviewer prefers
    provenance: human  # or simulated; every table says which
    reference_rule: [adjudicated, majority]  # the first of these that gives a label makes the reference
  human_review:
    reviewers_per_item: 2  # independent of each other; with 1, nobody knows how far people agree
    adjudicate_disagreement: true  # where they differ, one more label with is_adjudicated true
"""

NO_LABELS = """\
  # Without human labels nothing says how far a judge agrees with people. To have them: put here, before the first run,
  #   human_labels: {{path: params/{file}/human_labels.csv}}
  human_labels: null
"""

RUBRIC = """\
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
    development_share: {share}  # items set aside to train and tune on; repairs with examples need some, 0.2 say
  passes: [direct, pairwise_original, pairwise_swapped]  # swapped: each pair again, in the other order
  retries: {{malformed_output: 1, transient_error: 2}}  # how often a call is sent again
  timeout_seconds: 120
  judges:
"""

EMBEDDED = """\
    # A very small LLM on this machine, without key or cost: to see how everything works, not to be trusted.
    - {kind: embedded, name: smollm2-135m, family: smollm, max_tokens: 160}
"""

HOSTED = """\
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

RECORDED = """\
    - kind: recorded  # replies that were made elsewhere, one record a line, as `judgelab export` writes them
      name: my-judge
      path: params/{file}/records.jsonl
      provenance: REPLACE with the model, its version, and when it was asked
"""

REST = """\
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

HOSTS: Mapping[str, tuple[str, str, str]] = {
    "chat": (
        "any OpenAI-compatible endpoint",
        "      base_url: https://REPLACE-with-the-endpoint.example/v1\n",
        "JUDGE_API_KEY",
    ),
    "anthropic": ("Anthropic's Messages API", "", "ANTHROPIC_API_KEY"),
    "gemini": ("Google's Gemini API", "", "GEMINI_API_KEY"),
}
