"""On what terms a judge is asked: its prices, its limits, and what its endpoint can do."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

__all__ = ["Capabilities", "Count", "Frozen", "Limits", "Prices", "ResponseFormat"]

ResponseFormat = Literal["json_schema", "json_object", "none", "probe"]
Count = Annotated[int, Field(ge=1)]


class Frozen(BaseModel):
    """Refuses unknown keys; leaves keys that were added later out of its dump while they hold their default."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())
    added: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _without_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        for name in self.added:
            if name in values and getattr(self, name) == type(self).model_fields[name].get_default(
                call_default_factory=True
            ):
                del values[name]
        return values


class Prices(Frozen):
    """What the provider charges, in units of ``currency`` for a million tokens.

    Tokens read from the provider's cache cost ``cached_input_per_million``; without it, as much as any other.
    """

    added: ClassVar[tuple[str, ...]] = ("cached_input_per_million",)

    input_per_million: Annotated[float, Field(ge=0)] = 0.0
    output_per_million: Annotated[float, Field(ge=0)] = 0.0
    currency: str = "USD"
    cached_input_per_million: Annotated[float, Field(ge=0)] | None = None

    def cost(self, tokens_in: int | None, tokens_cached: int | None, tokens_out: int | None) -> float:
        """Cost in ``currency``; tokens that the provider does not report count as none.

        Parameters
        ----------
        tokens_in
            All tokens of the prompt, those from the cache among them.
        tokens_cached
            The part of ``tokens_in`` that came from the cache.
        tokens_out
            All tokens that were generated, those of the reasoning among them.

        Examples
        --------
        >>> Prices(input_per_million=2, cached_input_per_million=0.5, output_per_million=8).cost(1000, 400, 50)
        0.0018
        """
        sent = tokens_in or 0
        cached = min(tokens_cached or 0, sent)
        cheap = self.input_per_million if self.cached_input_per_million is None else self.cached_input_per_million
        total = (sent - cached) * self.input_per_million + cached * cheap
        return (total + (tokens_out or 0) * self.output_per_million) / 1e6

    @property
    def known(self) -> bool:
        """Whether any price is above zero."""
        return self.input_per_million > 0 or self.output_per_million > 0


class Limits(Frozen):
    """How fast a judge is asked, how long it is waited for, and the caps at which it is stopped before they are passed.

    ``read_timeout_seconds`` is the study's ``timeout_seconds`` where it is not given. ``max_tokens`` counts tokens in
    and out; ``max_cost`` is in the currency of ``prices``.
    """

    concurrency: Annotated[int, Field(ge=1, le=1000)] = 8
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    connect_timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    read_timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    max_calls: Count | None = None
    max_tokens: Count | None = None
    max_cost: Annotated[float, Field(gt=0)] | None = None


class Capabilities(Frozen):
    """What an endpoint can do: stated here, or with ``response_format: probe`` asked for once and recorded.

    ``logprobs`` is the number of alternatives asked for at each token (0: none are asked for). ``seed`` says whether
    a seed may be sent, ``system_prompt`` whether the model has a system role, ``reasoning`` whether it thinks first
    (such models take no temperature).
    """

    response_format: ResponseFormat = "json_schema"
    logprobs: Annotated[int, Field(ge=0, le=20)] = 0
    seed: bool = True
    system_prompt: bool = True
    reasoning: bool = False
