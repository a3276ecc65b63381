"""What the adapters of hosted judges share: the connection, the key, the failures, and the probe.

An adapter says where it posts (``_path``), with which header the key goes (``_key_header``), what it sends
(``_compose``) and what it reads from a good response (``_read``). All the rest is here, so that a failure means the
same in every dialect.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import quote

import httpx

from judgelab.errors import JudgeError
from judgelab.judging.judges.base import Call, JudgeClient, RateHint, RefusedError, Reply, TransientError
from judgelab.judging.judges.bodies import decoded, encoded, error_inside, merged
from judgelab.judging.judges.deliveries import Repeats, close_if_more_follows
from judgelab.judging.judges.failures import Failure, failure_of
from judgelab.judging.judges.lanes import Lanes
from judgelab.judging.judges.logprobs import deciding_tokens
from judgelab.judging.judges.rates import rate_hint, retry_after
from judgelab.judging.prompts import Prompt
from judgelab.judging.replies import contract_for
from judgelab.judging.wording import Wording
from judgelab.study.configuration import EmbeddedJudge, HostedJudge
from judgelab.study.protocol import Study
from judgelab.study.terms import Capabilities, ResponseFormat

__all__ = ["HttpClient", "Question", "UnsupportedError"]

SHORTEST_SECRET = 12  # shorter ones ("none", "EMPTY") are cut from messages, but not from replies
TINY = {
    "type": "object",
    "properties": {"winner": {"enum": ["A", "B"]}},
    "required": ["winner"],
    "additionalProperties": False,
}


class UnsupportedError(JudgeError):
    """The endpoint does not take requests in this form: a field, a value or a response format."""


class Question:
    """What is asked, free of any dialect: the two messages, the schema, a name for it, and which repeat it is."""

    __slots__ = ("name", "repeat", "schema", "system", "user")

    def __init__(self, system: str, user: str, schema: Mapping[str, Any], name: str, repeat: int = 0) -> None:
        self.system, self.user, self.schema, self.name, self.repeat = system, user, schema, name, repeat

    def seed(self, judge: Any) -> int | None:
        """The judge's seed; a repeat gets one of its own, unless the temperature is 0 and nothing is drawn."""
        seed: int | None = judge.seed
        return seed + self.repeat if seed is not None and judge.temperature != 0 else seed


class HttpClient(JudgeClient):
    """Asks one endpoint over HTTP, each call from a clean context.

    Parameters
    ----------
    judge, study
        The judge's configuration and the frozen protocol.
    transport
        For tests: what httpx sends requests through.
    """

    asks_a_model = True
    trust_env = True  # the proxies that the environment names
    what: ClassVar[str] = "completion"
    formats: ClassVar[tuple[ResponseFormat, ...]] = ("json_schema", "json_object", "none")  # what a probe tries

    def __init__(
        self, judge: HostedJudge | EmbeddedJudge, study: Study, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._judge = judge
        self._study = study
        self._transport = transport
        self._base_url: str = getattr(judge, "base_url", "")
        self._url = httpx.URL()
        self._http: Lanes | None = None
        self._secrets: tuple[str, ...] = ()
        self._schemas: dict[tuple[str, Wording], dict[str, Any]] = {}
        self._probing = asyncio.Lock()
        self._repeats = Repeats()
        self.concurrency = judge.limits.concurrency
        self.capabilities = judge.capabilities
        if judge.reply_format == "text":  # plain text is wanted: there is no format to ask for
            self.capabilities = judge.capabilities.model_copy(update={"response_format": "none"})
        self.timeout_seconds = judge.limits.read_timeout_seconds or study.timeout_seconds

    # --- what an adapter says

    def _path(self) -> str:
        """The path below ``base_url``."""
        raise NotImplementedError

    def _key_header(self, key: str) -> dict[str, str]:
        """The header that carries the key."""
        raise NotImplementedError

    def _compose(self, question: Question) -> dict[str, Any]:
        """The request's body."""
        raise NotImplementedError

    def _read(self, body: Any) -> Reply:
        """The parts of a good response that are kept. Any LookupError, TypeError or ValueError means it is none."""
        raise NotImplementedError

    def _deciding(self, strategy: str) -> tuple[str, ...]:
        """The keys of a reply whose tokens' probabilities are kept."""
        deciding = {"pairwise": ("winner",), "listwise": ("ranking",), "generation": ()}
        return deciding.get(strategy, tuple(self._study.direct_scale.weights))

    # --- the connection

    async def __aenter__(self) -> Self:
        headers = {**self._static_headers(), **self._secret_headers()}
        wait = self.timeout_seconds
        timeout = httpx.Timeout(wait, connect=min(self._judge.limits.connect_timeout_seconds, wait))
        try:
            self._url = httpx.URL(f"{self._base_url.rstrip('/')}/{self._path().lstrip('/')}")
            self._http = Lanes(
                self.concurrency,
                headers=headers,
                timeout=timeout,
                trust_env=self.trust_env,
                transport=self._transport,
                on_response=close_if_more_follows,
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

    def _static_headers(self) -> dict[str, str]:
        return {"Accept": "application/json", **getattr(self._judge, "headers", {})}

    def _secret_headers(self) -> dict[str, str]:
        """Headers from the environment. Their values are remembered only to be cut from what is shown."""
        variable = getattr(self._judge, "api_key_env", None)
        named: dict[str, str] = getattr(self._judge, "headers_env", {})
        headers = {header: self._from_environment(name) for header, name in named.items()}
        secrets = list(headers.values())
        if variable is not None and getattr(self._judge, "auth", None) != "none":
            key = self._from_environment(variable)
            secrets.append(key)
            headers |= self._key_header(key)
        self._secrets = tuple(sorted(secrets, key=len, reverse=True))
        return headers

    def _from_environment(self, variable: str) -> str:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise JudgeError(
                f"judge {self._judge.name}: the environment variable {variable} is not set; "
                "set it to the key of this endpoint"
            )
        if not (value.isascii() and value.isprintable()):
            raise JudgeError(
                f"judge {self._judge.name}: the environment variable {variable} holds more than a key "
                "(a line break or a character outside ASCII); set it again"
            )
        return value

    # --- asking

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """One request. HTTP and network errors become transient, refused or fatal."""
        if self.needs_probe:
            await self.probe()
        return self._decided(await self._send(self.compose(call, prompt)), call)

    def compose(self, call: Call, prompt: Prompt) -> dict[str, Any]:
        """The body that asks this call; also what a provider's batch holds for it."""
        form = (call.strategy, call.wording.shape)
        schema = self._schemas.get(form)
        if schema is None:
            schema = self._schemas[form] = contract_for(self._study, call.strategy, wording=form[1]).schema
        return self._body(Question(prompt.system, prompt.user, schema, f"{call.strategy}_verdict", call.repeat))

    def read(self, call: Call, status: int, body: Any) -> Reply:
        """The reply in a response that came another way, as from a batch. Raises what ``ask`` raises."""
        return self._decided(self._reply(status, body, json.dumps(body).encode(), httpx.Headers()), call)

    def _decided(self, reply: Reply, call: Call) -> Reply:
        """Of all tokens' probabilities, those of the tokens that decide."""
        if reply.logprobs is None:
            return reply
        return replace(reply, logprobs=deciding_tokens(reply.logprobs, self._deciding(call.strategy)))

    def _body(self, question: Question) -> dict[str, Any]:
        """The request's body, with the protocol's extra fields."""
        return merged(self._compose(question), getattr(self._judge, "extra_body", {}))

    async def _send(self, body: dict[str, Any]) -> Reply:
        assert self._http is not None, "use the client as an async context manager"
        try:
            # httpx waits for each piece of a response; a body that drips must end, too
            async with asyncio.timeout(self.timeout_seconds):
                response = await self._http.post(self._url, content=encoded(body), headers=_JSON)
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            wait = min(self._judge.limits.connect_timeout_seconds, self.timeout_seconds)
            raise TransientError("timeout", f"no connection within {wait:g} s") from None
        except (httpx.TimeoutException, TimeoutError):
            raise TransientError("timeout", f"no reply within {self.timeout_seconds:g} s") from None
        except httpx.RequestError as error:
            raise TransientError("transient_error", self._clean(f"{type(error).__name__}: {error}")) from None
        if 300 <= response.status_code < 400:
            target = self._clean(response.headers.get("location", "nowhere"))
            raise JudgeError(
                f"judge {self._judge.name}: the endpoint redirects to {target}; set base_url to its final address"
            )
        read = decoded(response.content)
        if await self._repeats.seen(response, read):
            raise TransientError("transient_error", "the response to another request, delivered twice")
        return self._reply(response.status_code, read, response.content, response.headers)

    def _reply(self, status: int, body: Any, content: bytes, headers: httpx.Headers) -> Reply:
        """The reply in a response, or the error that it is; an error inside a 200 is an error."""
        inside = error_inside(body) if status < 300 else status
        rate = rate_hint((name.lower(), value) for name, value in headers.raw)
        try:
            reply = self._rescued(body) if inside is not None else self._read(body)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            told = self._clean(_shown(content))[:200]
            raise TransientError("transient_error", f"not a {self.what}: {told}", status=status, rate=rate) from None
        if reply is None:
            assert inside is not None
            raise self._failed(inside, body, _shown(content), headers, rate)
        return self._without_secrets(replace(reply, rate=rate))

    def _rescued(self, body: Any) -> Reply | None:
        """The reply that an error holds, at endpoints that report a malformed reply as an error."""
        return None

    # --- failures

    def _failed(
        self, status: int, body: Any, text: str, headers: httpx.Headers, rate: RateHint | None
    ) -> TransientError | RefusedError | JudgeError:
        """The error for a failed response."""
        detail = self._clean(f"HTTP {status}: {text}")[:310]
        failure = failure_of(status, body, text)
        if failure.kind == "transient":
            wait = retry_after(headers)
            wait = failure.retry_after if wait is None else wait
            return TransientError(failure.why, detail, retry_after=wait, status=status, rate=rate)
        if failure.kind == "refused":
            return RefusedError(failure.why, detail)
        return self._fatal(failure, detail)

    def _fatal(self, failure: Failure, detail: str) -> JudgeError:
        name = self._judge.name
        if failure.kind == "unsupported":
            remedy = "check capabilities, temperature, seed, token_field and extra_body, or set response_format: probe"
            return UnsupportedError(f"judge {name}: {failure.why}; {remedy} ({detail})")
        variable = getattr(self._judge, "api_key_env", None)
        remedy = f"check {variable}, base_url and model" if variable else "check base_url, model and api_key_env"
        return JudgeError(f"judge {name}: {failure.why}; {remedy} ({detail})")

    def _clean(self, text: str) -> str:
        """A message without the keys, whatever the endpoint sent back: whole, escaped, or with its end masked."""
        for secret in self._secrets:
            for form in {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}:
                text = text.replace(form, "[key]")
            if len(secret) >= SHORTEST_SECRET:
                text = re.sub(rf"{re.escape(secret[:6])}[\w.*•…-]*", "[key]", text)
        return text

    def _without_secrets(self, reply: Reply) -> Reply:
        """A reply is kept in the ledger, so an endpoint that echoes the key must not bring it there."""
        held = (reply.text, reply.reasoning, reply.model, reply.fingerprint, reply.finish_reason)
        long = [secret for secret in self._secrets if len(secret) >= SHORTEST_SECRET]
        if not any(secret in text for secret in long for text in held if text):
            return reply
        text, reasoning, model, fingerprint, finish = (self._clean(part) if part else part for part in held)
        return replace(
            reply, text=text, reasoning=reasoning, model=model, fingerprint=fingerprint, finish_reason=finish
        )

    # --- the probe

    async def probe(self) -> Capabilities:
        """Ask a tiny question with a schema, then in JSON mode, then plainly; the first that works is kept.

        It works if the endpoint takes the request and its reply holds a JSON object, for some endpoints take a
        response format and ignore it.
        """
        async with self._probing:  # calls that start together probe once
            for tried in self.formats if self.needs_probe else ():
                self.capabilities = self._judge.capabilities.model_copy(update={"response_format": tried})
                if await self._probe_works(last=tried == self.formats[-1]):
                    break
                self.capabilities = self._judge.capabilities
        return self.capabilities

    async def _probe_works(self, *, last: bool) -> bool:
        question = Question(
            'Reply with one JSON object and nothing else, in this form: {"winner": "<A|B>"}',
            "Which letter comes first in the alphabet, A or B? Reply in JSON.",
            TINY,
            "probe",
        )
        try:
            reply = await self._send(self._body(question))
        except (RefusedError, UnsupportedError) as error:
            if not last:
                return False
            self.capabilities = self._judge.capabilities
            raise _answers_nothing(self._judge.name, error) from None
        except BaseException:
            self.capabilities = self._judge.capabilities  # nothing was found out: the next call probes again
            raise
        return last or re.search(r"\{[^{}]*\"winner\"[^{}]*\}", reply.text or "") is not None


def _answers_nothing(name: str, error: Exception) -> Exception:
    """An endpoint that refuses even a tiny plain question cannot be asked at all."""
    if isinstance(error, JudgeError):
        return error
    return JudgeError(f"judge {name}: the endpoint refuses even the probe's plain question ({error})")


def _shown(content: bytes) -> str:
    """A response as text for messages; the charset that its header names may be wrong, and its text then fails."""
    return content.decode("utf-8", "replace")


_JSON = {"Content-Type": "application/json"}
