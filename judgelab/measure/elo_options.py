"""How Elo's ratings move: the four numbers that every Elo of this package takes, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log, tanh

__all__ = ["EloOptions"]


@dataclass(frozen=True)
class EloOptions:
    """How ratings move; see :func:`judgelab.measure.ranking.elo`.

    Raises
    ------
    ValueError
        If ``k``, ``scale`` or ``base`` − 1 is not a finite number above 0, or ``initial`` not a finite number.
    """

    initial: float = 1000.0
    k: float = 32.0
    base: float = 10.0
    scale: float = 400.0

    def __post_init__(self) -> None:
        for name, value in (("k", self.k), ("scale", self.scale), ("base - 1", self.base - 1)):
            if not (isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; allowed is above 0")
        if not isfinite(self.initial):
            raise ValueError(f"initial is {self.initial}; allowed is a finite number")

    @property
    def unit(self) -> float:
        """Points in one unit of half the natural log odds."""
        return 2 * self.scale / log(self.base)

    def win_probability(self, gap: float) -> float:
        """What a system expects to get against one whose rating is ``gap`` points lower."""
        return (1 + tanh(gap / self.unit)) / 2

    @property
    def method(self) -> str:
        """What a row's method says of it."""
        return f"start {self.initial:g}, K {self.k:g}, base {self.base:g}, scale {self.scale:g}"
