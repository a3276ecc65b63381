"""Judges of kind ``simulated``: planted position, length, family and leniency effects and error rates.

The truth is known, so these judges test the instrument: what is planted must be found, and nothing else.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from judgelab.errors import DataError
from judgelab.judging.judges.base import Call, JudgeClient, Reply
from judgelab.judging.judges.control import direct_reply, listwise_reply, pairwise_reply, uniform
from judgelab.judging.prompts import Prompt
from judgelab.project import resolve
from judgelab.study.configuration import SimulatedJudge
from judgelab.study.protocol import Study
from judgelab.study.tables import read_csv

__all__ = ["SimulatedClient"]


class SimulatedClient(JudgeClient):
    """Prefers by latent quality plus planted effects plus noise.

    Pairwise, with q the latent quality, w the word counts and f = 1 if an answer is of the judge's family::

        d = q_A - q_B + first_position_effect + length_effect * ln(w_A / w_B) + family_effect * (f_A - f_B) + noise * z

    where a probe manipulated an answer, with that answer's ``probe_effects`` added.

    Direct: level = Phi(q + leniency + family_effect * f + length_effect * ln(w / 50) + noise * z), mapped to the scale.
    """

    def __init__(self, judge: SimulatedJudge, study: Study) -> None:
        self._judge = judge
        self._study = study
        self._qualities = _qualities(judge.quality_path)
        self._probe_effects: dict[str, float] = dict(judge.probe_effects.items())

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """The simulated verdict as JSON, or a malformed reply at the planted rate."""
        judge, key = (
            self._judge,
            (call.item.item_id, call.strategy, call.pass_, *call.presentation, call.repeat),
        )
        model = "simulated"
        if uniform(judge.seed, "error", *key) < judge.error_rate:
            return Reply(text="I would rather not say.", model=model)
        noise = judge.noise * self._noise("noise", *key)
        if call.strategy == "direct":
            latent = self._latent(call, 0) + judge.leniency + noise
            return Reply(text=direct_reply(self._study, NormalDist().cdf(latent), call), model=model)
        if call.strategy == "listwise":
            return Reply(text=listwise_reply(self._places(call, key)), model=model)
        difference = self._latent(call, 0) - self._latent(call, 1) + judge.first_position_effect + noise
        return Reply(text=pairwise_reply(self._study, difference, call, tie_width=judge.tie_width), model=model)

    def _places(self, call: Call, key: tuple[object, ...]) -> list[float]:
        """What the judge holds for each answer of a listwise call; differences have the noise of a comparison."""
        noise, effect = self._judge.noise / math.sqrt(2), self._judge.first_position_effect
        return [
            self._latent(call, place) + effect * (place == 0) + noise * self._noise("noise", *key, place)
            for place in range(len(call.presentation))
        ]

    def _latent(self, call: Call, place: int) -> float:
        """Quality plus the effects that belong to one answer."""
        judge, system = self._judge, call.presentation[place]
        words = max(len(call.item.answers[system].split()), 1)
        same_family = judge.family is not None and self._study.systems[system].family == judge.family
        return (
            self._quality(call.item.item_id, system)
            + judge.length_effect * math.log(words / 50)
            + judge.family_effect * same_family
            + self._probe_effects.get(call.probe, 0.0) * (call.manipulated == system)
        )

    def _quality(self, item_id: str, system: str) -> float:
        if self._qualities is None:
            return NormalDist().inv_cdf(min(max(uniform("quality", item_id, system), 1e-12), 1 - 1e-12))
        try:
            return self._qualities[item_id, system]
        except KeyError:
            raise DataError(f"{self._judge.quality_path}: no quality for item {item_id} and system {system}") from None

    def _noise(self, *key: object) -> float:
        """A draw of the noise's distribution, of scale 1, that depends on the key alone."""
        share = min(max(uniform(self._judge.seed, *key), 1e-12), 1 - 1e-12)
        if self._judge.noise_distribution == "logistic":
            return math.log(share / (1 - share))
        return NormalDist().inv_cdf(share)


def _qualities(path: str | None) -> dict[tuple[str, str], float] | None:
    """Latent quality by item and system."""
    if path is None:
        return None
    table = read_csv(resolve(path))
    missing = [name for name in ("item_id", "system", "quality") if name not in table.columns]
    if missing:
        raise DataError(f"{path}: no column {', '.join(missing)}; needed are item_id, system, quality")
    qualities = {}
    for line, row in table.rows:
        try:
            quality = float(row["quality"])
        except ValueError:
            quality = math.nan
        if not math.isfinite(quality):
            raise DataError(f"{path}: line {line}: quality {row['quality']!r} is not a number")
        qualities[row["item_id"], row["system"]] = quality
    return qualities
