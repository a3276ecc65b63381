"""Judges of kind ``chat``: any OpenAI-compatible chat endpoint, asked through httpx."""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import Any, Self

import httpx

from judgelab.errors import JudgeError
from judgelab.judging.judges.base import Call, JudgeClient, RefusedError, Reply, TransientError
from judgelab.judging.prompts import Prompt
from judgelab.judging.replies import contract_for
from judgelab.study.configuration import ChatJudge, EmbeddedJudge
from judgelab.study.protocol import Study

__all__ = ["ChatClient"]

_TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_FATAL = {
    401: "the endpoint does not accept the key",
    402: "the account of this key has no credit left",
    403: "the key may not use this model",
    404: "the endpoint or the model does not exist",
    405: "this address takes no chat completions",
}


class ChatClient(JudgeClient):
    """Asks ``POST {base_url}/chat/completions``, each call from a clean context."""

    asks_a_model = True
    trust_env = True  # the proxies that the environment names

    def __init__(self, judge: ChatJudge | EmbeddedJudge, study: Study, *, base_url: str | None = None) -> None:
        self._judge = judge
        self._study = study
        self._base_url = base_url or getattr(judge, "base_url", None)
        self._http: httpx.AsyncClient | None = None
        self._secret = ""
        self.concurrency = judge.concurrency or 1

    async def __aenter__(self) -> Self:
        if self._base_url is None:
            raise JudgeError(f"judge {self._judge.name}: no base_url")
        variable = getattr(self._judge, "api_key_env", None)
        headers = {}
        if variable is not None:
            self._secret = os.environ.get(variable, "").strip()
            if not self._secret:
                raise JudgeError(
                    f"judge {self._judge.name}: the environment variable {variable} is not set; "
                    "set it to the key of this endpoint"
                )
            if not (self._secret.isascii() and self._secret.isprintable()):
                raise JudgeError(
                    f"judge {self._judge.name}: the environment variable {variable} holds more than a key "
                    "(a line break or a character outside ASCII); set it again"
                )
            headers["Authorization"] = f"Bearer {self._secret}"
        try:
            self._http = httpx.AsyncClient(
                base_url=self._base_url.rstrip("/") + "/",
                headers=headers,
                timeout=httpx.Timeout(self._study.timeout_seconds, connect=min(30.0, self._study.timeout_seconds)),
                limits=httpx.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency),
                trust_env=self.trust_env,
            )
        except (httpx.InvalidURL, ValueError) as error:  # ValueError: a proxy of the environment
            raise JudgeError(
                f"judge {self._judge.name}: base_url {self._base_url}, or a proxy of the environment, is not an "
                f"address: {self._clean(str(error))}"
            ) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """One request. HTTP and network errors become transient, refused or fatal."""
        assert self._http is not None, "use the client as an async context manager"
        try:
            response = await self._http.post("chat/completions", json=self._body(call, prompt))
        except httpx.TimeoutException as error:
            raise TransientError("timeout", f"no reply within {self._study.timeout_seconds:g} s") from error
        except httpx.RequestError as error:
            raise TransientError("transient_error", self._clean(f"{type(error).__name__}: {error}")) from error
        self._raise_for_status(response)
        return self._reply(response)

    def _body(self, call: Call, prompt: Prompt) -> dict[str, Any]:
        judge = self._judge
        body: dict[str, Any] = {
            "model": judge.model,
            "messages": prompt.messages(system_prompt=getattr(judge, "system_prompt", True)),
            "temperature": judge.temperature,
            "max_tokens": judge.max_tokens,
        }
        if judge.seed is not None:
            body["seed"] = judge.seed
        if judge.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif judge.response_format == "json_schema":
            schema = contract_for(self._study, call.strategy).schema
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": f"{call.strategy}_verdict", "schema": schema, "strict": True},
            }
        return body

    def _raise_for_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status < 300:
            return
        detail = self._clean(f"HTTP {status}: {response.text}")[:310]
        if status < 400:
            target = self._clean(response.headers.get("location", "nowhere"))
            raise JudgeError(
                f"judge {self._judge.name}: the endpoint redirects to {target}; set base_url to its final address"
            )
        if status in _TRANSIENT:
            raise TransientError("transient_error", detail, retry_after=_seconds(response.headers.get("retry-after")))
        if status in _FATAL:
            variable = getattr(self._judge, "api_key_env", None)
            remedy = f"check {variable}, base_url and model" if variable else "check base_url, model and api_key_env"
            raise JudgeError(f"judge {self._judge.name}: {_FATAL[status]}; {remedy} ({detail})")
        lowered = detail.lower()
        if "context" in lowered and ("length" in lowered or "size" in lowered or "exceed" in lowered):
            raise RefusedError("context_too_long", detail)
        if "content_filter" in lowered or "content management" in lowered:
            raise RefusedError("content_filter", detail)
        raise RefusedError("refused_by_endpoint", detail)

    def _reply(self, response: httpx.Response) -> Reply:
        """The parts of a completion that are kept."""
        try:
            body = response.json()
            choice = body["choices"][0]
            content = choice["message"].get("content")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            text = self._clean(response.text)[:200]
            raise TransientError("transient_error", f"not a chat completion: {text}") from None
        if choice.get("finish_reason") == "content_filter":
            raise RefusedError("content_filter", "the provider withheld the reply")
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Reply(
            text=content if isinstance(content, str) or content is None else json.dumps(content),
            model=self._model_name(body.get("model")),
            fingerprint=_text(body.get("system_fingerprint")),
            finish_reason=_text(choice.get("finish_reason")),
            tokens_in=_count(usage.get("prompt_tokens")),
            tokens_out=_count(usage.get("completion_tokens")),
        )

    def _model_name(self, reported: Any) -> str | None:
        """The model as the endpoint reports it."""
        return _text(reported)

    def _clean(self, text: str) -> str:
        """A message without the key, whatever the endpoint sent back."""
        return text.replace(self._secret, "[key]") if self._secret else text


def _text(value: Any) -> str | None:
    """A text as the endpoint reports it; anything else is nothing."""
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    """A count of tokens; anything else is nothing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _seconds(value: str | None) -> float | None:
    """``Retry-After`` in seconds; dates and nonsense are ignored."""
    try:
        return max(0.0, min(float(value), 600.0)) if value else None
    except ValueError:
        return None
