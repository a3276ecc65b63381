"""Judges of kind ``chat``: any OpenAI-compatible chat endpoint."""

from __future__ import annotations

from typing import Any, ClassVar

import httpx

from judgelab.judging.judges.base import RefusedError, Reply
from judgelab.judging.judges.bodies import count, text_or_none
from judgelab.judging.judges.failures import error_of
from judgelab.judging.judges.http import HttpClient, Question
from judgelab.study.configuration import ChatJudge, EmbeddedJudge
from judgelab.study.protocol import Study

__all__ = ["ChatClient"]


class ChatClient(HttpClient):
    """Asks ``POST {base_url}/chat/completions``, or the path that the protocol names."""

    what: ClassVar[str] = "chat completion"

    def __init__(
        self, judge: ChatJudge | EmbeddedJudge, study: Study, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(judge, study, transport=transport)
        self._chat = judge

    def _path(self) -> str:
        return getattr(self._chat, "path", "chat/completions")

    def _key_header(self, key: str) -> dict[str, str]:
        """Azure takes the key as ``api-key``, all others as a bearer token."""
        if getattr(self._chat, "auth", "bearer") == "api-key":
            return {"api-key": key}
        return {"Authorization": f"Bearer {key}"}

    def _compose(self, question: Question) -> dict[str, Any]:
        judge, able = self._chat, self.capabilities
        body: dict[str, Any] = {"model": judge.model, "messages": _messages(question, system=able.system_prompt)}
        if judge.temperature is not None and not able.reasoning:
            body["temperature"] = judge.temperature
        body[getattr(judge, "token_key", "max_tokens")] = judge.max_tokens
        if judge.seed is not None and able.seed:
            body["seed"] = question.seed(judge)
        if able.logprobs:
            body |= {"logprobs": True, "top_logprobs": able.logprobs}
        if able.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif able.response_format == "json_schema":
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": question.name, "schema": question.schema, "strict": True},
            }
        return body

    def _read(self, body: Any) -> Reply:
        choice = body["choices"][0]
        message = choice["message"]
        text, reasoning = _parts(message.get("content"))
        # vLLM, llama.cpp and DeepSeek say reasoning_content, OpenRouter and Groq reasoning
        told = message.get("reasoning_content") or message.get("reasoning")
        refusal = text_or_none(message.get("refusal"))
        reply = Reply(
            text=text if text or not refusal else refusal,
            model=self._model_name(body.get("model")),
            fingerprint=text_or_none(body.get("system_fingerprint")),
            finish_reason=text_or_none(choice.get("finish_reason")),
            reason="refusal" if refusal and not text else None,
            reasoning=text_or_none(told) or reasoning,
            logprobs=_logprobs(choice.get("logprobs")),
            **_usage(body.get("usage")),
        )
        if reply.finish_reason == "content_filter":
            raise RefusedError("content_filter", "the provider withheld the reply", reply=reply)
        return reply

    def _rescued(self, body: Any) -> Reply | None:
        """Groq sends a reply that is no JSON as an error; it is a reply like any other, and read as one."""
        error = error_of(body)
        text = error.get("failed_generation")
        if error.get("code") != "json_validate_failed" or not isinstance(text, str):
            return None
        return Reply(text=text, finish_reason="json_validate_failed")

    def _model_name(self, reported: Any) -> str | None:
        """The model as the endpoint reports it."""
        return text_or_none(reported)


def _messages(question: Question, *, system: bool) -> list[dict[str, str]]:
    """The two messages; one where the model has no system role."""
    if system:
        return [{"role": "system", "content": question.system}, {"role": "user", "content": question.user}]
    return [{"role": "user", "content": f"{question.system}\n\n{question.user}"}]


def _parts(content: Any) -> tuple[str | None, str | None]:
    """Text and reasoning of a message's content: a text, nothing, or a list of parts (Mistral's has both)."""
    if not isinstance(content, list):
        return text_or_none(content), None
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif part.get("type") == "thinking":
            inner = part.get("thinking")
            thoughts.append(inner if isinstance(inner, str) else _parts(inner)[0] or "")
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(texts) or None, "".join(thoughts) or None


def _usage(usage: Any) -> dict[str, Any]:
    """Tokens in, out, cached and of the reasoning."""
    if not isinstance(usage, dict):
        return {}
    sent, made = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    cached = count(_inside(usage, "prompt_tokens_details", "cached_tokens"))
    if cached is None:
        cached = count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek
    reasoning = count(_inside(usage, "completion_tokens_details", "reasoning_tokens"))
    # xAI leaves the reasoning out of completion_tokens, and charges for it; the total tells
    if reasoning and sent is not None and made is not None and usage.get("total_tokens") == sent + made + reasoning:
        made += reasoning
    return {"tokens_in": sent, "tokens_out": made, "tokens_cached": cached, "tokens_reasoning": reasoning}


def _inside(usage: dict[str, Any], group: str, key: str) -> Any:
    inner = usage.get(group)
    return inner.get(key) if isinstance(inner, dict) else None


def _logprobs(value: Any) -> list[dict[str, Any]] | None:
    """Token by token: the token, its log-probability, and the alternatives."""
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not content:
        return None
    return [
        {
            "token": str(entry["token"]),
            "logprob": entry["logprob"],
            "top": [
                {"token": str(other["token"]), "logprob": other["logprob"]} for other in entry.get("top_logprobs") or ()
            ],
        }
        for entry in content
    ]
