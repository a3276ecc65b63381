"""What a failed response means: it may pass, this call is refused, or this judge cannot be asked at all.

Providers give the same failure different statuses (an unknown model is 404 at one, 400 at another; an invalid key is
400 at Google; an empty account is 429 at OpenAI), so the error's own words are looked at before its status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Failure", "error_of", "failure_of"]


@dataclass(frozen=True)
class Failure:
    """The class of a failure, its reason or remedy, and how long the body asks to wait."""

    kind: Literal["transient", "refused", "fatal", "unsupported"]
    why: str
    retry_after: float | None = None


KEY = "the endpoint does not accept the key"
CREDIT = "the account of this key has no credit left"
MODEL = "the endpoint or the model does not exist"
_FATAL = {
    401: KEY,
    402: CREDIT,
    403: "the key may not use this model",
    404: MODEL,
    405: "this address takes no such request",
    410: MODEL,
}
_TRANSIENT = {408, 409, 425, 429, 498}  # and all from 500; 498 is Groq's "over capacity"

# What errors call themselves in a field of their own. Anthropic's types, OpenAI's codes, Google's statuses.
_NAMED: dict[str, Failure] = {
    "overloaded_error": Failure("transient", "transient_error"),
    "rate_limit_error": Failure("transient", "transient_error"),
    "api_error": Failure("transient", "transient_error"),
    "timeout_error": Failure("transient", "transient_error"),
    "authentication_error": Failure("fatal", KEY),
    "invalid_api_key": Failure("fatal", KEY),
    "api_key_invalid": Failure("fatal", KEY),
    "permission_error": Failure("fatal", _FATAL[403]),
    "billing_error": Failure("fatal", CREDIT),
    "insufficient_quota": Failure("fatal", CREDIT),
    "not_found_error": Failure("fatal", MODEL),
    "model_not_found": Failure("fatal", MODEL),
    "deploymentnotfound": Failure("fatal", MODEL),
    "invalid_model": Failure("fatal", MODEL),
    "context_length_exceeded": Failure("refused", "context_too_long"),
    "exceed_context_size_error": Failure("refused", "context_too_long"),
    "request_too_large": Failure("refused", "context_too_long"),
    "content_filter": Failure("refused", "content_filter"),
    "content_policy_violation": Failure("refused", "content_filter"),
    "responsibleaipolicyviolation": Failure("refused", "content_filter"),
    "unsupported_parameter": Failure("unsupported", "the endpoint does not know a field of the request"),
    "unsupported_value": Failure("unsupported", "the endpoint does not take a value of the request"),
    "unknown_parameter": Failure("unsupported", "the endpoint does not know a field of the request"),
}

# What they say where no field names it. Looked at only in client errors, and in this order.
_WORDS: tuple[tuple[re.Pattern[str], Failure], ...] = (
    (
        re.compile(
            r"maximum context|context[ _](?:length|size|window)|exceed\w* (?:the )?(?:available )?context"
            r"|prompt is too long|input is too long|token count \S* ?exceeds|exceeds the maximum number of tokens"
            r"|too many (?:input )?tokens|reduce the length of the (?:messages|prompt)"
            r"|prompt[^.]{0,60}tokens?[^.]{0,60}too large",
            re.I,
        ),
        _NAMED["context_length_exceeded"],
    ),
    (
        re.compile(
            r"content[ _-]?filter|content management|content polic|usage polic|input was flagged|was flagged as"
            r"|blocked by .*(?:safety|policy)|flagged by .*moderation",
            re.I,
        ),
        _NAMED["content_filter"],
    ),
    (
        re.compile(r"api key (?:not valid|expired|is invalid)|invalid api key|incorrect api key", re.I),
        Failure("fatal", KEY),
    ),
    (
        re.compile(r"credit balance|insufficient (?:credits?|balance|funds)|billing (?:hard )?limit", re.I),
        Failure("fatal", CREDIT),
    ),
    (
        re.compile(
            r"not a valid model|invalid model|unknown model|no such model|model[^.]{0,120}(?:does not exist|not found)",
            re.I,
        ),
        Failure("fatal", MODEL),
    ),
    (
        re.compile(
            r"unsupported (?:parameter|value)|unrecognized request argument|extra inputs are not permitted|unknown name"
            r"|(?:response_format|json_schema|json_object|tool_choice|temperature|seed|logprobs|system role|thinking)"
            r"\W[^.]{0,80}(?:not supported|unsupported|not support|not allowed|deprecated|may only be set)"
            r"|(?:not support|unsupported)[^.]{0,80}(?:response_format|json_schema|json_object|json mode|tool"
            r"|temperature|seed|logprobs|system role|schema)",
            re.I,
        ),
        Failure("unsupported", "the endpoint does not take the request in this form"),
    ),
)


def failure_of(status: int, body: Any, text: str) -> Failure:
    """Classify a failed response.

    Parameters
    ----------
    status
        The HTTP status, or the status that an error inside a 200 names.
    body
        The decoded body, or None if it is no JSON.
    text
        The body as text, for what the fields do not say.
    """
    error = error_of(body)
    named = _named(error)
    message = _message(error) if error else text[:2000]
    if status in _TRANSIENT or status >= 500:
        # of these only what cannot pass: an empty account (429), a prompt that llama.cpp finds too long (500)
        if named is not None and named.kind in ("refused", "fatal") and named.why in (CREDIT, "context_too_long"):
            return named
        if status == 500 and _WORDS[0][0].search(message):
            return _WORDS[0][1]
        return Failure("transient", "transient_error", _retry_delay(error))
    if status == 413 and "per minute" in message:
        return Failure("transient", "transient_error")  # more than the account's tokens per minute (Groq)
    if named is not None:
        return named
    if status in (400, 403, 413, 422):
        for pattern, failure in _WORDS:
            if pattern.search(message):
                return failure
    if status == 413:
        return _NAMED["context_length_exceeded"]
    if status in _FATAL:
        return Failure("fatal", _FATAL[status])
    return Failure("refused", "refused_by_endpoint")


def error_of(body: Any) -> dict[str, Any]:
    """The error object of a body, whatever the dialect wraps it in."""
    if isinstance(body, list) and body:
        body = body[0]  # Google's answer to a streamed request
    if not isinstance(body, dict):
        return {}
    error = body.get("error", body.get("detail"))
    if isinstance(error, list) and error:  # FastAPI's list of problems
        error = error[0]
    if isinstance(error, dict):
        return error
    return {"message": error if isinstance(error, str) else body.get("message"), **_plain(body)}


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    """``type`` and ``code`` of bodies without an error object (Mistral)."""
    return {key: body[key] for key in ("type", "code") if key in body}


def _message(error: dict[str, Any]) -> str:
    """What the error says itself. Not the whole body: some endpoints echo the request, and with it the answers."""
    metadata = error.get("metadata")  # OpenRouter: what the provider behind it said
    parts = [error.get("message"), error.get("msg"), error.get("code"), error.get("type")]
    parts += [metadata.get("raw")] if isinstance(metadata, dict) else []
    return " ".join(part for part in parts if isinstance(part, str))[:2000]


def _named(error: dict[str, Any]) -> Failure | None:
    """The failure that a field of the error names."""
    inner = error.get("innererror")
    details = error.get("details")
    names = [error.get("code"), inner.get("code") if isinstance(inner, dict) else None, error.get("type")]
    names += [entry.get("reason") for entry in details if isinstance(entry, dict)] if isinstance(details, list) else []
    # a general type says less than the words beside it: "invalid_request_error" is not in the table
    return next((_NAMED[name.lower()] for name in names if isinstance(name, str) and name.lower() in _NAMED), None)


def _retry_delay(error: dict[str, Any]) -> float | None:
    """Google's RetryInfo, which stands in the body and not in a header."""
    details = error.get("details")
    for entry in details if isinstance(details, list) else ():
        delay = entry.get("retryDelay") if isinstance(entry, dict) else None
        if isinstance(delay, str) and re.fullmatch(r"\d+(?:\.\d+)?s", delay):
            return min(float(delay[:-1]), 600.0)
    return None
