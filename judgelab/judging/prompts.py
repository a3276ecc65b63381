"""Prompts: one template a strategy, rubric first and answers last, answers fenced as data.

A template has two blocks, ``system`` (the same for every item, so that endpoints can cache it) and ``user``.
Answers are put into the rendered text afterwards, so nothing in an answer is ever read as template code, and the
text around the answers (the *frame*) can be compared byte by byte between the two passes of a pair.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jinja2

from judgelab.errors import RunError
from judgelab.judging.wording import LETTERS, PLAIN, Example, Reasons, Wording
from judgelab.study.items import Item
from judgelab.study.protocol import Criterion, DirectScale, Study

__all__ = ["Prompt", "check_swap", "fence_word", "render"]

_NO_LETTER = re.compile(r"[\W_]+")
# Latin, Cyrillic, Greek and Armenian letters that pass for a hexadecimal digit
_ALIKE = {
    "0": "oоοօ",
    "1": "liіιӏ",
    "3": "зӡ",
    "5": "sѕ",
    "6": "б",
    "a": "аα",
    "b": "ьƅ",
    "c": "сϲ",
    "d": "ԁ",
    "e": "еҽє",
}
_LOOK_ALIKES = str.maketrans({other: digit for digit, others in _ALIKE.items() for other in others})
_ASCII = bytes(ord(chr(code).lower().translate(_LOOK_ALIKES)) if code < 128 else code for code in range(256))
_ASCII_NO_LETTER = bytes(code for code in range(128) if not chr(code).isalnum())


@dataclass(frozen=True)
class Prompt:
    """A rendered prompt: what the judge is sent, and its hashes."""

    system: str
    user: str
    frame: str
    answers: tuple[str, ...]
    slots: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Hash of the two messages: equal exactly if the judge sees the same bytes."""
        return hashlib.sha256(f"{self.system}\x00{self.user}".encode(errors="surrogatepass")).hexdigest()

    @property
    def frame_sha256(self) -> str:
        """Hash of everything but the answers."""
        return hashlib.sha256(f"{self.system}\x00{self.frame}".encode(errors="surrogatepass")).hexdigest()

    def messages(self, *, system_prompt: bool = True) -> list[dict[str, str]]:
        """The prompt in the OpenAI chat layout; without a system role where the model has none."""
        if system_prompt:
            return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]
        return [{"role": "user", "content": f"{self.system}\n\n{self.user}"}]


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("judgelab.judging"),
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        autoescape=False,  # plain text for a model, not HTML
        trim_blocks=True,
        keep_trailing_newline=False,
    )


def fence_word(item: Item, seed: int, examples: tuple[Example, ...] = ()) -> str:
    """A word that closes the fence and stands nowhere in the item: the same for all passes of the item.

    It is drawn by a hash over all of the item's texts, so that no text can hold it on purpose: a text that is changed
    to name the word changes the word. Texts are searched for what looks like it, too (see :func:`_skeleton`): a judge
    reads `ＤＥＡＤ beef` as the word.

    Raises
    ------
    RunError
        If every one of 1000 draws stands in a text.
    """
    shown = [text for each in examples for text in (each.task, each.reference_context, *each.answers)]
    texts = [_skeleton(text) for text in (item.task, item.reference_context, *item.answers.values(), *shown)]
    for attempt in range(1000):
        digest = hashlib.sha256(f"{seed}|{item.sha256}|{attempt}".encode()).hexdigest()[:8]
        skeleton = _skeleton(digest)
        if not any(skeleton in text for text in texts):
            return digest
    raise RunError(f"item {item.item_id}: no fence word is free of its texts after 1000 draws")


def _skeleton(text: str) -> str:
    """A text reduced to what it looks like: small letters and digits only, one for all that are taken for it.

    Full-width and other compatible forms, accents, upper case, letters of other alphabets that look like a hexadecimal
    digit, and whatever stands between two letters and is no letter (spaces, zero-width characters, dashes) are gone.
    """
    if text.isascii():  # the same, forty times as fast: every prompt is looked through
        return text.encode().translate(_ASCII, _ASCII_NO_LETTER).decode()
    return _NO_LETTER.sub("", unicodedata.normalize("NFKD", text).casefold().translate(_LOOK_ALIKES))


def render(study: Study, item: Item, strategy: str, presentation: tuple[str, ...], wording: Wording = PLAIN) -> Prompt:
    """Render the prompt for one call.

    Parameters
    ----------
    study, item
        The frozen protocol and one of its items.
    strategy
        ``"direct"``, ``"pairwise"``, ``"listwise"``, or ``"generation"`` (a system writes its answer).
    presentation
        The system (direct, generation), or the systems in the order in which they are shown. Names never
        reach the prompt.
    wording
        What differs from the protocol's plain wording.
    """
    if strategy == "generation":
        return _generation(study, item, presentation[0])
    wording = replace(wording, letters=LETTERS[: len(presentation)]) if strategy == "listwise" else wording
    version, scale, labels = study.judge_prompt_version, study.direct_scale, study.pairwise_labels
    form = _form(version, strategy, scale, labels, study.tie_meaning, wording.shape)
    word = fence_word(item, study.random_seed, wording.examples)
    slots = tuple(f"\x00{word}-{place}\x00" for place in range(len(presentation)))
    values = {
        "task": item.task,
        "reference_context": item.reference_context,
        "fence_open": f"<<<{word}",
        "fence_close": f"{word}>>>",
        "answers": slots,
        "examples": [(example, wording.named(example.label)) for example in wording.examples],
    }
    frame = _block(form.template, "user", form.values | values)
    answers = tuple(item.answers[name] for name in presentation)
    return Prompt(system=form.system, user=_filled(frame, slots, answers), frame=frame, answers=answers, slots=slots)


def _generation(study: Study, item: Item, system: str) -> Prompt:
    """The prompt with which a system writes its answer: what the protocol says, word for word."""
    made = study.systems[system].generated
    if made is None:
        raise RunError(f"system {system} has no model that writes its answers")
    asked = made.asked(item.task, item.reference_context)
    return Prompt(system=made.system_prompt, user=asked, frame=asked, answers=(), slots=())


@dataclass(frozen=True)
class _Form:
    """What is the same for every item: a template, the protocol's values for it, and the system message."""

    template: jinja2.Template
    values: dict[str, Any]
    system: str


@lru_cache(maxsize=64)
def _form(
    version: str, strategy: str, scale: DirectScale, labels: tuple[str, ...], tie_meaning: str, wording: Wording
) -> _Form:
    """The form of one strategy. A system block that asks for a value of the item is an error of the template."""
    template = _environment().get_template(f"{version}/{strategy}.j2")
    criteria = scale.criteria[::-1] if wording.reversed_criteria else scale.criteria
    labels = tuple(wording.named(label) for label in labels)
    values = {
        "criteria": "\n".join(_criterion_line(criterion) for criterion in criteria),
        "minimum": scale.minimum,
        "maximum": scale.maximum,
        "labels": labels,
        "letters": wording.letters,
        "levels": sorted(wording.levels),
        "reasons": wording.reasons,
        "tie_meaning": tie_meaning,
        "example": _example(strategy, [criterion.name for criterion in criteria], scale, labels, wording),
    }
    return _Form(template, values, _block(template, "system", values))


def _block(template: jinja2.Template, name: str, values: dict[str, Any]) -> str:
    """One block of a template, rendered. The engine's global functions are left out: copying them takes longest."""
    return "".join(template.blocks[name](template.new_context(values, shared=True))).strip()


def check_swap(original: Prompt, swapped: Prompt, item_id: str) -> None:
    """Assert that two prompts differ in nothing but the order of their answers.

    Raises
    ------
    RunError
        If the frames differ, or exchanging the answers of the one does not give the other byte for byte.
    """
    exchanged = _filled(original.frame, original.slots, original.answers[::-1])
    if original.system != swapped.system or original.frame != swapped.frame or exchanged != swapped.user:
        raise RunError(f"item {item_id}: the swapped prompt differs in more than the order of the two answers")


def _filled(frame: str, slots: tuple[str, ...], answers: tuple[str, ...]) -> str:
    """The frame with each slot replaced once; slots inside an answer stay text."""
    rest, parts = frame, []
    for slot, answer in zip(slots, answers, strict=True):
        before, found, rest = rest.partition(slot)
        if not found:
            raise RunError("a prompt template has no place for one of its answers")
        parts += [before, answer]
    return "".join([*parts, rest])


def _criterion_line(criterion: Criterion) -> str:
    return f"- {criterion.name}: {criterion.description}" if criterion.description else f"- {criterion.name}"


def _example(strategy: str, names: list[str], scale: DirectScale, labels: tuple[str, ...], wording: Wording) -> str:
    """The reply's form as one line of JSON. Values are placeholders, so that none is suggested."""
    reasons: Reasons = wording.reasons
    if strategy == "listwise":
        places = ["<best>", *["<next>"] * (len(wording.letters) - 2), "<worst>"]
        return json.dumps({"ranking": places})
    codes = {"reason_codes": ["<CODE>"]} if reasons == "codes" else {}
    if strategy == "direct":
        harm = {} if reasons == "none" else {"critical_error": "<true|false>"}
        text = json.dumps({**dict.fromkeys(names, f"<{scale.minimum}-{scale.maximum}>"), **harm, **codes})
        text = text.replace('"<', "<").replace('>"', ">")
    else:
        sure = {} if reasons == "none" else {"confidence": "<low|medium|high>"}
        text = json.dumps({"winner": f"<{'|'.join(labels)}>", **sure, **codes})
    return text.replace("{", '{"reasoning": "<your reasons in a few sentences>", ', 1) if reasons == "first" else text
