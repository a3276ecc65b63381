"""Judges of kind ``control``: no model, one simple rule. An LLM judge that does not beat them measures nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from judgelab.judging.judges.base import Call, JudgeClient, Reply
from judgelab.judging.prompts import Prompt
from judgelab.judging.wording import LETTERS
from judgelab.study.configuration import ControlJudge
from judgelab.study.items import Item
from judgelab.study.protocol import Study

__all__ = ["ControlClient", "direct_reply", "listwise_reply", "pairwise_reply", "uniform"]

FULL_LENGTH_WORDS = 100  # an answer of this many words has the top score of the rule `longest`


class ControlClient(JudgeClient):
    """Answers by rule, in the same form as any judge, and is read by the same contract."""

    def __init__(self, judge: ControlJudge, study: Study) -> None:
        self._judge = judge
        self._study = study

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """The rule's verdict as JSON."""
        if call.strategy == "direct":
            text = direct_reply(self._study, self._level(call), call)
        elif call.strategy == "listwise":
            text = listwise_reply([self._strength(call, place) for place in range(len(call.presentation))])
        else:
            first, second = (self._strength(call, place) for place in (0, 1))
            text = pairwise_reply(self._study, first - second, call)
        return Reply(text=text, model=f"control:{self._judge.rule}")

    def _strength(self, call: Call, place: int) -> float:
        """What the rule holds for one of the answers shown."""
        rule = self._judge.rule
        if rule == "first":
            return float(-place)
        if rule == "last":
            return float(place)
        return self._merit(call.item, call.presentation[place], call)

    def _merit(self, item: Item, system: str, call: Call) -> float:
        rule = self._judge.rule
        if rule in ("longest", "shortest"):
            words = len(item.answers[system].split())
            return float(words if rule == "longest" else -words)
        if rule == "overlap":
            return _overlap(item.answers[system], item.reference_context or item.task)
        again = (call.repeat,) if call.repeat else ()
        return uniform(self._judge.seed, item.item_id, call.strategy, call.pass_, system, *again)

    def _level(self, call: Call) -> float:
        """The rule's score for a single answer, from 0 to 1. A rule about places has nothing to go by: 1/2."""
        rule = self._judge.rule
        if rule in ("first", "last"):
            return 0.5
        merit = self._merit(call.item, call.presentation[0], call)
        if rule == "longest":
            return min(merit / FULL_LENGTH_WORDS, 1.0)
        if rule == "shortest":
            return 1.0 - min(-merit / FULL_LENGTH_WORDS, 1.0)
        return merit


def direct_reply(study: Study, level: float, call: Call, *, critical_error: bool = False) -> str:
    """A reply to a direct call whose criterion scores average to ``level`` (0 to 1) as nearly as integers can."""
    scale = study.direct_scale
    names = list(scale.weights)
    points = round(min(max(level, 0.0), 1.0) * (scale.maximum - scale.minimum) * len(names))
    each, extra = divmod(points, len(names))
    scores: dict[str, Any] = {name: scale.minimum + each + (place < extra) for place, name in enumerate(names)}
    harm = {} if call.wording.reasons == "none" else {"critical_error": critical_error}
    return json.dumps({**_before(call), **scores, **harm, **_after(call)})


def pairwise_reply(study: Study, difference: float, call: Call, *, tie_width: float = 0.0) -> str:
    """A reply to a pairwise call: A above ``tie_width``, B below minus that, else a tie where ties are offered."""
    if abs(difference) > tie_width:
        winner = "A" if difference > 0 else "B"
    elif "TIE" in study.pairwise_labels:
        winner = "TIE"
    else:
        winner = "A" if uniform(study.random_seed, call.item.item_id, call.pass_, "no tie") < 0.5 else "B"
    sure = {} if call.wording.reasons == "none" else {"confidence": "medium"}
    return json.dumps({**_before(call), "winner": call.wording.named(winner), **sure, **_after(call)})


def listwise_reply(strengths: Sequence[float]) -> str:
    """A reply to a listwise call: the letters of the places, strongest first, equal ones as they were shown."""
    order = sorted(range(len(strengths)), key=lambda place: -strengths[place])
    return json.dumps({"ranking": [LETTERS[place] for place in order]})


def _before(call: Call) -> dict[str, str]:
    """What a reply holds before its verdict."""
    return {"reasoning": "by rule"} if call.wording.reasons == "first" else {}


def _after(call: Call) -> dict[str, list[str]]:
    """What a reply holds after its verdict."""
    return {"reason_codes": []} if call.wording.reasons == "codes" else {}


def uniform(*parts: Any) -> float:
    """A number in [0, 1) that depends on nothing but its arguments."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _overlap(answer: str, reference: str) -> float:
    """F1 of the sets of words of the two texts: what is missing costs as much as what is too much."""
    wanted = set(re.findall(r"\w+", reference.lower()))
    found = set(re.findall(r"\w+", answer.lower()))
    return 2 * len(wanted & found) / (len(wanted) + len(found)) if wanted or found else 0.5
