"""What gives an answer's author away: names of systems, families and models, and tell-tale phrases.

The scan reports; it changes nothing. What is masked before judging is listed in the protocol
(``blindness.mask``), so that nobody's answer is rewritten in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from judgelab.study.protocol import Study

if TYPE_CHECKING:
    from judgelab.study.items import Item

__all__ = ["MODEL_NAMES", "PHRASES", "apply_masks", "scan_answers", "scan_text"]

CONTEXT = 30

# Regular expressions, matched as whole words whatever the case.
MODEL_NAMES: tuple[str, ...] = (
    r"Chat ?GPT(?:[- ]?\d(?:\.\d)?o?)?",
    r"Instruct ?GPT",
    r"GPT[- ]?\d(?:\.\d)?o?(?:[- ](?:turbo|mini|nano|pro))?",
    r"GPT[- ](?:J|NeoX?)",
    r"text-davinci-\d+",
    r"Open ?AI",
    r"Anthropic",
    r"Claude",
    r"Gemini",
    r"Gemma",
    r"Bard",
    r"PaLM[- ]?2?",
    r"(?:Google )?Deep ?Mind",
    r"(?:Code[- ]?)?Llama(?:[- ]?\d(?:\.\d)?)?",
    r"Vicuna",
    r"Alpaca",
    r"Mistral(?: AI)?",
    r"Mixtral",
    r"Falcon(?:[- ]?\d+B)?",
    r"Qwen(?:[- ]?\d(?:\.\d)?)?",
    r"Deep ?Seek",
    r"Grok",
    r"Copilot",
    r"Bing Chat",
    r"Command[- ]R\+?",
    r"Hugging ?Face",
    r"Smol ?LM ?\d?",
    r"(?:Chat)?GLM[- ]?\d",
    r"ERNIE Bot",
    r"Phi-\d",
    r"Kimi",
    r"Perplexity AI",
    r"Open ?Assistant",
)

# Also words, names of people or animals: seen as a model's name only when not written in small letters.
ORDINARY = frozenset(
    {"alpaca", "bard", "claude", "copilot", "falcon", "gemini", "gemma", "grok", "kimi", "llama", "meta"}
    | {"mistral", "palm", "vicuna"}
)

PHRASES: tuple[str, ...] = (
    r"as an? (?:AI|artificial intelligence)(?: language)?(?: model| assistant| chatbot)?",
    r"as a (?:large )?language model",
    r"I(?: am|'m|’m) (?:just |only )?an? (?:AI|artificial intelligence|(?:large )?language model)",
    r"I was (?:trained|developed|created|built|made) by",
    r"I(?: am|'m|’m) (?:trained|developed|created|built|made) by",
    r"my (?:knowledge|training)(?: data)? cut-?off",
    r"(?:as of|up to) my (?:last|latest) (?:knowledge |training )?update",
    r"my training data",
    r"I (?:do not|don't|don’t) have (?:personal )?(?:opinions|feelings|beliefs)",
)


@dataclass(frozen=True)
class _Term:
    kind: str
    pattern: re.Pattern[str]


def scan_text(text: str, study: Study) -> pd.DataFrame:
    """Everything in one text that could tell a judge who wrote it.

    Returns
    -------
    DataFrame
        One row a find: ``kind`` (system_name, family, model_name, phrase), ``term`` (as written in the text),
        ``start`` (character, from 0), ``excerpt`` (plain text; whoever shows it as HTML must escape it).
        Where terms overlap, the kind that stands first in this list is kept.
    """
    return pd.DataFrame(list(_found(text, study)), columns=["kind", "term", "start", "excerpt"])


def scan_answers(items: Iterable[Item], study: Study) -> pd.DataFrame:
    """:func:`scan_text` over every answer; the name of any system counts in every answer.

    Returns
    -------
    DataFrame
        ``item_id``, ``system`` (whose answer), then the columns of :func:`scan_text`.
    """
    rows = [
        {"item_id": item.item_id, "system": system, **found}
        for item in items
        for system, answer in item.answers.items()
        for found in _found(answer, study)
    ]
    return pd.DataFrame(rows, columns=["item_id", "system", "kind", "term", "start", "excerpt"])


def apply_masks(text: str, masks: Mapping[str, str]) -> tuple[str, dict[str, int]]:
    """Replace each word of the protocol's ``blindness.mask``; whole words, whatever the case.

    Returns
    -------
    tuple
        The masked text, and how often each word was replaced (words that were not found are left out).
    """
    counts: dict[str, int] = {}
    for word, replacement in masks.items():
        # a backslash in the replacement is text, not a group
        text, count = _word(re.escape(word)).subn(replacement.replace("\\", r"\\"), text)
        if count:
            counts[word] = count
    return text, counts


def _found(text: str, study: Study) -> Iterator[dict[str, Any]]:
    """Finds in the order of the text, no two of them overlapping."""
    finds: list[tuple[int, int, str]] = []
    for term in _terms(study):
        for match in term.pattern.finditer(text):
            overlaps = any(start < match.end() and match.start() < end for start, end, _ in finds)
            if match.end() > match.start() and not overlaps and not _is_ordinary(match.group(), term.kind):
                finds.append((match.start(), match.end(), term.kind))
    for start, end, kind in sorted(finds):
        yield {"kind": kind, "term": text[start:end], "start": start, "excerpt": _excerpt(text, start, end)}


def _is_ordinary(found: str, kind: str) -> bool:
    """A word such as `llama` in small letters is an animal; a system's own name always counts."""
    return kind in ("family", "model_name") and found in ORDINARY


def _excerpt(text: str, start: int, end: int) -> str:
    before, after = max(start - CONTEXT, 0), end + CONTEXT
    core = " ".join(text[before:after].split())
    return f"{'…' if before else ''}{core}{'…' if after < len(text) else ''}"


def _terms(study: Study) -> tuple[_Term, ...]:
    own = (*study.system_names, *(name for system in study.systems.values() for name in system.names))
    families = tuple(sorted({system.family for system in study.systems.values() if system.family}))
    return _compiled((*own, *study.blindness.names), families, study.blindness.phrases)


@lru_cache(maxsize=32)
def _compiled(names: tuple[str, ...], families: tuple[str, ...], phrases: tuple[str, ...]) -> tuple[_Term, ...]:
    """All patterns, the most telling kind first."""
    written = (("system_name", names), ("family", families))
    own = [_Term(kind, _word(re.escape(word))) for kind, words in written for word in words if word.strip()]
    models = [_Term("model_name", _word(pattern)) for pattern in MODEL_NAMES]
    told = [re.escape(phrase) for phrase in phrases if phrase.strip()]
    return (*own, *models, *(_Term("phrase", _word(pattern)) for pattern in (*told, *PHRASES)))


def _word(pattern: str) -> re.Pattern[str]:
    """The pattern as whole words: `GPT-4` is not in `GPT-40`, and a term may begin or end in punctuation."""
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)
