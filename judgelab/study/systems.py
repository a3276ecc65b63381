"""The systems of a study: what produced each answer, and how stage 00 makes the answers that no file brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from judgelab.study.configuration import AnthropicJudge, ChatJudge, EmbeddedJudge, GeminiJudge
from judgelab.study.terms import Count, Frozen

__all__ = ["Degradation", "Edit", "Generation", "System", "check_systems", "expanded"]

Edit = Literal["drop_step", "add_error", "blur", "off_topic", "scramble", "truncate"]
Model = Annotated[ChatJudge | AnthropicJudge | GeminiJudge | EmbeddedJudge, Field(discriminator="kind")]
PROMPT = "{task}\n\n{reference_context}"
PLACEHOLDERS = ("{task}", "{reference_context}")


class Generation(Frozen):
    """How a model writes the answers of a system: the model as an endpoint or embedded, its prompt and its draws.

    ``model`` takes the keys of a judge that asks a model (kind, model, address, key variable, temperature, limits,
    prices); its replies are plain text. ``prompt`` holds ``{task}`` and, if wanted, ``{reference_context}``. With
    several ``completions`` the system becomes so many systems, ``name.1``, ``name.2``, ...; where the model
    has a ``seed``, each is sent one of its own, counted up from it.
    """

    model: Model
    prompt: str = PROMPT
    system_prompt: Annotated[str, Field(min_length=1)] = "Answer the task."
    completions: Annotated[int, Field(ge=1, le=50)] = 1

    @field_validator("model", mode="before")
    @classmethod
    def _plain_text(cls, given: Any) -> Any:
        """A model needs no name of its own here, and is not asked for JSON."""
        if not isinstance(given, Mapping):
            return given
        return {"name": "generator", **given, "reply_format": "text"}

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if "{task}" not in self.prompt:
            raise ValueError("prompt: the placeholder {task} is missing; allowed are {task} and {reference_context}")
        if self.completions > 1 and self.model.temperature == 0:
            raise ValueError(f"completions: {self.completions} of them at temperature 0 would be the same answer")
        return self

    def asked(self, task: str, reference_context: str) -> str:
        """The prompt with its placeholders filled, each text once and as it is: braces inside a text stay text."""
        parts = [self.prompt]
        for placeholder in PLACEHOLDERS:
            parts = [
                piece for part in parts for piece in (_cut(part, placeholder) if part not in PLACEHOLDERS else [part])
            ]
        texts = dict(zip(PLACEHOLDERS, (task, reference_context), strict=True))
        return "".join(texts.get(part, part) for part in parts).strip()


def _cut(text: str, placeholder: str) -> list[str]:
    """A text split at a placeholder, the placeholders kept."""
    first, *rest = text.split(placeholder)
    return [first, *(piece for part in rest for piece in (placeholder, part))]


class Degradation(Frozen):
    """A version of another system's answers made worse by recorded, deterministic edits, so that the order is known."""

    of: str
    edits: Annotated[tuple[Edit, ...], Field(min_length=1)]


class System(Frozen):
    """What produced an answer. ``names`` are further words that give it away (for the blindness scan).

    Its answers stand in the file of items, unless they are ``generated`` by a model or ``degraded`` from another
    system's. ``completion`` is which of several draws of one model this system is.
    """

    added: ClassVar[tuple[str, ...]] = ("generated", "degraded", "completion")

    family: str | None = None
    names: tuple[str, ...] = ()
    generated: Generation | None = None
    degraded: Degradation | None = None
    completion: Count | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.generated is not None and self.degraded is not None:
            raise ValueError("a system is generated or degraded, not both")
        if self.completion is not None and (self.generated is None or self.completion > self.generated.completions):
            raise ValueError("completion numbers the draws of a generated system, from 1 to completions")
        return self

    @property
    def made(self) -> bool:
        """Whether stage 00 makes its answers."""
        return self.generated is not None or self.degraded is not None


def expanded(given: Any) -> Any:
    """Systems as a protocol gives them, one with several completions as so many systems: ``name.1``, ``name.2``, ...

    Raises
    ------
    ValueError
        If one of these names is that of another system.
    """
    if not isinstance(given, Mapping):
        return given
    systems: dict[Any, Any] = {}
    for name, entry in given.items():
        made = entry.get("generated") if isinstance(entry, Mapping) else None
        draws = made.get("completions", 1) if isinstance(made, Mapping) else 1
        if type(draws) is int and 1 < draws <= 50 and entry.get("completion") is None:
            numbered = {f"{name}.{draw}": {**entry, "completion": draw} for draw in range(1, draws + 1)}
            twice = sorted(numbered.keys() & {*given, *systems})
            if twice:
                raise ValueError(f"{twice[0]} is a system of its own and one of the {draws} completions of {name}")
            systems |= numbered
        else:
            systems[name] = entry
    return systems


def check_systems(systems: Mapping[str, System]) -> None:
    """Refuse degraded systems that form no ladder, and completions that are not those of one model.

    A ladder goes down from a system of the study, in no circle, one system below each.

    Raises
    ------
    ValueError
        Naming the system.
    """
    below: dict[str, str] = {}
    drawn: dict[str, Generation] = {}
    for name, system in systems.items():
        base, _, number = name.rpartition(".")
        if system.generated is not None and system.completion is not None:
            if not base or number != str(system.completion):
                raise ValueError(f"systems: {name} has completion {system.completion}; leave completion to judgelab")
            if drawn.setdefault(base, system.generated) != system.generated:
                raise ValueError(f"systems: the completions of {base} are not generated in one way")
        if system.degraded is not None and below.setdefault(system.degraded.of, name) != name:
            origin = system.degraded.of
            raise ValueError(
                f"systems: {below[origin]} and {name} are both degraded from {origin}; make a ladder of them"
            )
        seen, at = [name], system
        while at.degraded is not None:
            origin = at.degraded.of
            if origin not in systems:
                raise ValueError(f"systems: {seen[-1]} is degraded from {origin}, which is no system of the study")
            if origin in seen:
                raise ValueError(f"systems: {' from '.join([*seen, origin])}: degraded in a circle")
            seen.append(origin)
            at = systems[origin]
