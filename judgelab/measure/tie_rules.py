"""Three ways from the log odds of two answers to the chances of won, lost and tied."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import expit, log_expit

from judgelab.measure.resampling import Floats

__all__ = ["BINARY", "DAVIDSON", "RAO_KUPPER", "Parts", "Rule"]

Parts = list[Floats]  # counts of won, lost and, if the rule knows them, tied; each (C, b)


class Rule(Protocol):
    """How outcomes depend on η, the log odds of x against y, and a tie parameter t; arrays of shape (C, b)."""

    columns: int
    nothing: float

    def start(self, share: Floats) -> Floats:
        """The tie parameter if all are equal and this share of the matches are ties."""

    def value(self, eta: Floats, tie: Any, parts: Parts) -> Floats:
        """Log likelihood of the cells."""

    def slopes(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any]:
        """Its derivatives by η and t."""

    def bends(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any, Any]:
        """Minus its second derivatives by η η, η t and t t."""


class _Binary:
    """P(x) = σ(η): Bradley and Terry, 1952. Ties were made half a win each, or left out."""

    columns, nothing = 2, float("nan")

    def start(self, share: Floats) -> Floats:
        return share

    def value(self, eta: Floats, tie: Any, parts: Parts) -> Floats:
        return np.asarray(parts[0] * log_expit(eta) + parts[1] * log_expit(-eta))

    def slopes(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any]:
        small = np.exp(-np.abs(eta))  # as won P(y) − lost P(x), which stays exact where one is next to 1
        large = 1 / (1 + small)
        small *= large
        up = eta > 0
        return np.asarray(parts[0] * np.where(up, small, large) - parts[1] * np.where(up, large, small)), None

    def bends(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any, Any]:
        return np.asarray((parts[0] + parts[1]) * expit(eta) * expit(-eta)), None, None


class _Davidson:
    """P(x) ∝ e^(η/2), P(y) ∝ e^(−η/2), P(tie) ∝ ν, with t = ln ν: Davidson, 1970."""

    columns, nothing = 3, -np.inf

    def start(self, share: Floats) -> Floats:
        return np.asarray(np.log(2 * share / (1 - share)))

    def _chances(self, eta: Floats, tie: Any) -> tuple[Floats, Floats, Floats, Floats]:
        top = np.maximum(np.abs(eta) / 2, tie)
        x, y, both = np.exp(eta / 2 - top), np.exp(-eta / 2 - top), np.exp(tie - top)
        total = x + y + both
        return x / total, y / total, both / total, top + np.log(total)

    def value(self, eta: Floats, tie: Any, parts: Parts) -> Floats:
        won, lost, tied = parts
        return np.asarray((won - lost) * eta / 2 + tied * tie - (won + lost + tied) * self._chances(eta, tie)[3])

    def slopes(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any]:
        won, lost, tied = parts
        x, y, both, _ = self._chances(eta, tie)
        slope = won * (y + both / 2) - lost * (x + both / 2) - tied * (x - y) / 2
        return slope, tied * (x + y) - (won + lost) * both

    def bends(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any, Any]:
        x, y, both, _ = self._chances(eta, tie)
        n = parts[0] + parts[1] + parts[2]
        return n * ((x + y) * both / 4 + x * y), -n * (x - y) * both / 2, n * both * (x + y)


class _RaoKupper:
    """P(x) = σ(η − t), P(y) = σ(−η − t), else a tie, with t = ln θ > 0: Rao and Kupper, 1967."""

    columns, nothing = 3, 0.0

    def start(self, share: Floats) -> Floats:
        return np.asarray(np.log((1 + share) / (1 - share)))

    def value(self, eta: Floats, tie: Any, parts: Parts) -> Floats:
        won, lost, tied = parts
        room = np.where(tie > 0, tie, np.nan)
        open_ = 2 * room + np.log(-np.expm1(-2 * room))
        return np.asarray((won + tied) * log_expit(eta - tie) + (lost + tied) * log_expit(-eta - tie) + tied * open_)

    def slopes(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any]:
        won, lost, tied = parts
        up, down = (won + tied) * expit(tie - eta), (lost + tied) * expit(tie + eta)
        return up - down, tied * 2 / -np.expm1(-2 * tie) - up - down

    def bends(self, eta: Floats, tie: Any, parts: Parts) -> tuple[Floats, Any, Any]:
        won, lost, tied = parts
        up = (won + tied) * expit(eta - tie) * expit(tie - eta)
        down = (lost + tied) * expit(eta + tie) * expit(-eta - tie)
        return up + down, down - up, up + down + tied / np.sinh(np.minimum(tie, 300.0)) ** 2


BINARY: Rule = _Binary()
DAVIDSON: Rule = _Davidson()
RAO_KUPPER: Rule = _RaoKupper()
