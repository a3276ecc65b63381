"""How much place, length and family move a judge beside people's preference: one logistic regression per judge."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import t as student
from statsmodels.discrete.discrete_model import Logit

from judgelab.measure.carriers import few_carriers
from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.estimates import Place
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags, JudgeCodes, each_judge

__all__ = ["choice_table"]

NAN = float("nan")
EFFECTS = ("human", "first_position", "length", "family")
HABITS = ("that people prefer", "shown first", "that is longer", "of its own family")
CHANGES = ("people prefer it or the other", "first or second", "twice as long or as long", "of its family or another's")
STEPS = (1.0, 1.0, float(np.log(2)), 1.0)  # a win change compares +step with -step; for length, step with 0
ITEMS_PER_COEFFICIENT = 10
SMALL = 1e-6  # of a column scaled to 1: less is rounding


def choice_table(
    normalized: pd.DataFrame,
    *,
    labels: Sequence[str],
    families: Mapping[str, str | None],
    judge_families: Mapping[str, str | None],
    ci_level: float,
) -> pd.DataFrame:
    """What moves every judge's pairwise choices, each effect with the others held: people, place, length, family.

    With σ(u) = 1 / (1 + e⁻ᵘ), over the judge's pairwise verdicts that are no ties::

        P(judge prefers x to y) = σ(b₁ human + b₂ first + b₃ length + b₄ family)

    ``human`` is 1 if people prefer x, −1 if y, 0 for a tie or no label; ``first`` is 1 if x is shown first, else −1;
    ``length`` is ln(words of x / words of y), an empty answer counted as one word; ``family`` is 1 if only x is of the
    judge's family, −1 if only y is, else 0. All change sign with x and y, and there is no intercept: which of the two
    is called x does not matter. A judge without tastes of its own has b₂ = b₃ = b₄ = 0.

    For each effect of human, first_position, length and family:

    ====================  ====================================================================================
    measure               what it is
    ====================  ====================================================================================
    <effect>_log_odds     b: change of the log odds of winning per unit of the covariate (an answer twice as
                          long gains b₃ ln 2; the answer shown first has b₂ more than in an even contest)
    <effect>_log_odds_p   two-sided p-value of b = 0
    <effect>_win_change   change of the chance to win by the model, mean over the judgments: people prefer it
                          against the other; shown first against second; twice as long against equally long
                          (mean of both answers); of the judge's family and the other not, against the reverse
    ====================  ====================================================================================

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    families, judge_families : mapping of str to str or None
        Family of each system and of each judge. Who is not named has none.
    ci_level : float
        Coverage of the intervals, above 0 and below 1.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, strategy ``pairwise``. Pass ``both``: both presentations of the
        pairs for which both were planned; if there are none, the one that was planned. No rows without either.

        Undefined (NaN, with the reason) are effects whose covariate is 0 throughout, or linear in others; the rest is
        estimated without. So are effects without a finite estimate: if weights of the covariates never err (a judge
        that always takes the first answer), the rest is fitted to the verdicts that such weights leave open, which is
        the limit of maximum likelihood. There is no interval and no p-value with no more items than coefficients, or
        if the verdicts of every item cancel out (no order of answers ever moves the judge).

    Raises
    ------
    ValueError
        If a column is missing, a preference is not one of ``labels``, or ``ci_level`` is not between 0 and 1.

    Notes
    -----
    Sources: Dubois et al., "Length-controlled AlpacaEval", 2024 (there: tanh of a length difference); clustering,
    Liang and Zeger, 1986, with the factor G/(G − 1) · (n − 1)/(n − k) for G items, n verdicts, k coefficients, as
    ``statsmodels``' ``Logit``; separation, Albert and Anderson, 1984, by the linear programme of Konis, 2007.

    Wald intervals with quantiles of Student's t, G − 1 degrees of freedom, since the covariance is estimated from G
    contributions: in 1,000 simulated studies of a judge without tastes they covered 95 to 98 % with 20 items, normal
    quantiles 93 to 97 %; from 100 items on the two agree. Win changes: delta method, judgments held fixed, cut at −1
    and 1. See ``benchmarks/planted_choice.py``.

    Effects are associations given people's preference *as labelled*: what labels leave out (how clear a preference
    is, people's errors) and goes with length or a family counts as an effect of these.
    """
    check_columns(normalized, ["words_x", "words_y"], "normalized")
    if not 0 < ci_level < 1:
        raise ValueError(f"ci_level is {ci_level}; allowed is above 0 and below 1")
    groups = (group for _, group in normalized.groupby("judge", sort=False))
    lines: list[dict[str, Any]] = []
    for codes, group in zip(each_judge(normalized, labels), groups, strict=True):
        if _passes(codes):
            sample = _sample(codes, group, list(labels), families, judge_families.get(codes.judge))
            lines += _rows(sample, ci_level)
    return frame(lines)


@dataclass(frozen=True)
class _Sample:
    """Verdicts: covariates of the preferred answer against the other (n, 4), items, preferred and other system."""

    place: Place
    covariates: Floats
    items: Ints
    pairs: Ints
    planned: int
    absent: dict[int, str]
    note: str


def _passes(codes: JudgeCodes) -> tuple[str, ...]:
    """The presentations that are used: both, the one that was planned, or none."""
    planned = tuple(name for name in ("original", "swapped") if codes.planned[name].any())
    return planned if codes.planned_both.any() else planned[:1]


def _sample(
    codes: JudgeCodes, group: pd.DataFrame, labels: list[str], families: Mapping[str, str | None], family: str | None
) -> _Sample:
    """The usable verdicts of one judge, the passes one below the other."""
    passes = _passes(codes)
    planned = codes.planned_both if len(passes) == 2 else codes.planned[passes[0]]
    firsts = {"original": codes.original_first, "swapped": codes.other}
    judged = np.concatenate([getattr(codes, name)[planned] for name in passes])
    first = np.concatenate([firsts[name][planned] for name in passes])
    systems = [encode(group["system_x"], labels, "normalized, column system_x"), codes.system_y]
    x, y, human, items = (np.tile(values[planned], len(passes)) for values in (*systems, codes.human, codes.items))
    words = (pd.to_numeric(group[f"words_{side}"]).to_numpy(dtype=np.float64)[planned] for side in "xy")
    length = np.tile(np.subtract(*(np.log(np.maximum(count, 1)) for count in words)), len(passes))
    measured = not np.isnan(length).all()  # without any length, length is left out and not the judgments
    members = [code for code, name in enumerate(labels) if family is not None and families.get(name) == family]
    of_family = np.isin(x, members).astype(np.float64) - np.isin(y, members)

    usable = (judged >= 0) & (first >= 0)
    tied = usable & (judged == (labels.index(TIE) if TIE in labels else len(labels)))
    used = usable & ~tied & (~np.isnan(length) | (not measured))
    lost = {"without_usable_verdict": ~usable, "ties": tied, "without_length": usable & ~tied & ~used}
    left_out = excluded_note(len(used), "judgments", **{why: int(which.sum()) for why, which in lost.items()})
    columns = [(human == x) * 1.0 - (human == y), np.where(first == x, 1.0, -1.0), length, of_family]
    covariates = np.nan_to_num(np.column_stack(columns))[used] * np.where(judged == x, 1, -1)[used, np.newaxis]
    pairs = np.column_stack([judged, np.where(judged == x, y, x)])[used]
    missing = int((human[used] < 0).sum())
    absent = {
        0: "no judgment has a human label" if missing == used.sum() else "people prefer neither answer in any judgment",
        2: "all pairs are equally long" if measured else "no answer has a known length",
        3: "the judge's family is not known" if family is None else f"no pair has one system of family {family}",
    }
    place = Place(codes.judge, "pairwise", "both" if len(passes) == 2 else passes[0])
    note = joined(left_out, f"{missing} without a label count as no preference" if missing else "")
    return _Sample(place, covariates, items[used], pairs, len(np.unique(items)), absent, note)


@dataclass(frozen=True)
class _Fit:
    """Coefficients of the fitted columns, and what each item adds to their error, from the verdicts that overlap.

    ``share`` is that of all verdicts; the chance to win of the others is 0 or 1 and moves with no finite effect.
    """

    columns: list[int]
    design: Floats
    coefficients: Floats
    influences: Floats
    share: float

    def log_odds(self, effect: int) -> tuple[float, Floats]:
        """A coefficient and its gradient."""
        place = self.columns.index(effect)
        return float(self.coefficients[place]), np.eye(len(self.columns))[place]

    def win_change(self, effect: int) -> tuple[float, Floats]:
        """Mean of σ(η + s b) − σ(η − s b), η being the part of the other effects, and its gradient.

        For length it is halved: the mean of x twice as long, σ(η + s b) − σ(η), and of y, σ(η) − σ(η − s b).
        """
        place, step = self.columns.index(effect), STEPS[effect]
        rest = self.design.copy()
        rest[:, place] = 0.0
        level, move = rest @ self.coefficients, step * self.coefficients[place]
        up, down = expit(level + move), expit(level - move)
        slopes = up * (1 - up), down * (1 - down)
        gradient = ((slopes[0] - slopes[1])[:, np.newaxis] * rest).mean(axis=0)
        gradient[place] = step * (slopes[0] + slopes[1]).mean()
        factor = self.share * (0.5 if EFFECTS[effect] == "length" else 1.0)
        return factor * float((up - down).mean()), factor * gradient

    def error(self, gradient: Floats) -> tuple[float, str]:
        """Standard error of what has this gradient, and why there is none or what to beware of."""
        (n, k), n_items = self.design.shape, len(self.influences)
        moved = self.influences @ gradient
        square = float((moved**2).sum())
        if n_items <= k:
            return NAN, f"{n_items} items for {k} coefficients"
        if square <= SMALL**3:
            return NAN, "the verdicts of every item cancel out"
        inflation = n_items / (n_items - 1) * (n - 1) / (n - k)
        return float(np.sqrt(inflation * square)), few_carriers(square**2 / float((moved**4).sum()))


def _null(design: Floats) -> Floats:
    """Projection onto the coefficients that change no prediction: the diagonal is 0 where one is estimable."""
    if len(design) == 0:
        return np.eye(design.shape[1])
    basis = null_space(np.linalg.qr(design, mode="r"), rcond=SMALL)
    return np.asarray(basis @ basis.T)


def _overlapping(preferred: Floats) -> Flags:
    """Verdicts that no weights of the covariates decide without erring elsewhere.

    Konis: maximise Σ zᵢ·b with all zᵢ·b ≥ 0 and b in a box; above 0, b separates. Repeated without the verdicts that b
    decides, since there may be other such weights.
    """
    kept = np.ones(len(preferred), dtype=bool)
    while kept.any():
        rows = preferred[kept]
        found = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1), method="highs")
        decided = rows @ found.x > SMALL if found.status == 0 else np.zeros(len(rows), dtype=bool)
        kept[np.flatnonzero(kept)[decided]] = False
        if not decided.any():
            break
    return kept


def _reasons(sample: _Sample, scaled: Floats, kept: Flags) -> dict[int, str]:
    """Why effects are undefined, by effect."""
    linear, lost = _null(scaled), np.diag(_null(scaled[kept])) > SMALL
    reasons, infinite, habits = {}, [], []
    for effect in np.flatnonzero(lost).tolist():
        partners = [EFFECTS[other] for other in np.flatnonzero(np.abs(linear[effect]) > SMALL) if other != effect]
        towards = np.sign(scaled[scaled[:, effect] != 0, effect])
        if len(towards) == 0:
            reasons[effect] = f"undefined: {sample.absent[effect]}"
        elif partners:
            reasons[effect] = f"undefined: collinear with {' and '.join(partners)}, no telling their effects apart"
        else:
            infinite.append(effect)
            if abs(towards.sum()) == len(towards):
                always = "always" if towards[0] > 0 else "never"
                habits.append(f"the judge {always} takes the answer {HABITS[effect]} ({len(towards)} verdicts)")
    names = " and ".join(EFFECTS[effect] for effect in infinite) if kept.any() else "the covariates"
    what = f"{int((~kept).sum())} of {len(kept)} verdicts follow from {names} without error (separation)"
    reason = joined(f"undefined: no finite estimate, {what}", *habits)
    return reasons | dict.fromkeys(infinite, reason)


def _fitted(sample: _Sample, scaled: Floats, kept: Flags) -> _Fit | None:
    """Maximum likelihood over a largest set of independent columns; None if it is not reached."""
    columns: list[int] = []
    for effect in range(len(EFFECTS)):
        columns += [effect] if not _null(scaled[kept][:, [*columns, effect]]).any() else []
    design = sample.covariates[kept][:, columns]
    model = Logit(np.ones(len(design)), design)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # separation is excluded, and convergence is looked at
        try:
            found = model.fit(method="newton", maxiter=100, disp=0)
            by_verdict = np.linalg.solve(-model.hessian(found.params), model.score_obs(found.params).T).T
        except np.linalg.LinAlgError:
            return None
    if not (found.mle_retvals["converged"] and np.isfinite(by_verdict).all()):
        return None
    items = np.unique(sample.items[kept], return_inverse=True)[1]
    influences = np.zeros((int(items.max()) + 1, len(columns)))
    np.add.at(influences, items, by_verdict)
    return _Fit(columns, design, np.asarray(found.params), influences, float(kept.mean()))


def _rows(sample: _Sample, ci_level: float) -> Iterator[dict[str, Any]]:
    """The rows of one judge."""
    reasons, fit, cautions = dict.fromkeys(range(len(EFFECTS)), "undefined: no verdict that is no tie"), None, {}
    if len(sample.items) > 0:
        scale = np.abs(sample.covariates).max(axis=0)
        scaled = sample.covariates / np.where(scale > 0, scale, 1.0)
        kept = _overlapping(scaled)
        reasons = _reasons(sample, scaled, kept)
        fit = _fitted(sample, scaled, kept) if len(reasons) < len(EFFECTS) else None
        cautions = _cautions(sample)
    n_items = len(np.unique(sample.items))
    common = {"n_used": n_items, "n_excluded": sample.planned - n_items}
    for effect, name in enumerate(EFFECTS):
        if fit is None or effect in reasons:
            note = joined(reasons.get(effect, "undefined: the fit did not converge"), sample.note)
            for measure in ("log_odds", "log_odds_p", "win_change"):
                level = NAN if measure.endswith("_p") else ci_level
                yield sample.place.row(f"{name}_{measure}", NAN, note=note, ci_level=level, **common)
        else:
            yield from _effect_rows(sample, fit, effect, cautions.get(effect, ""), ci_level)


def _cautions(sample: _Sample) -> dict[int, str]:
    """Effects whose covariate is a difference of something that each system has."""
    systems = np.zeros((len(sample.pairs), int(sample.pairs.max()) + 1))
    for side, sign in ((0, 1.0), (1, -1.0)):
        systems[np.arange(len(systems)), sample.pairs[:, side]] = sign
    weights = np.linalg.lstsq(systems, sample.covariates, rcond=None)[0]
    alike = np.abs(sample.covariates - systems @ weights).max(axis=0) <= SMALL
    general = "is the same whenever two systems meet: stands for everything that distinguishes them"
    text = {3: "stands for everything that distinguishes the family's systems"}
    return {effect: text.get(effect, general) for effect in np.flatnonzero(alike).tolist()}


def _effect_rows(sample: _Sample, fit: _Fit, effect: int, note: str, ci_level: float) -> Iterator[dict[str, Any]]:
    """Log odds, p-value and win change of an effect that was estimated."""
    (n, k), n_items = fit.design.shape, len(fit.influences)
    common = {"n_used": n_items, "n_excluded": sample.planned - n_items}
    few = f"few items: {n_items} for {k} coefficients, {ITEMS_PER_COEFFICIENT} each are advised"
    separated = f"fitted without {len(sample.items) - n} separated verdicts" if n < len(sample.items) else ""
    note = joined(note, few if n_items < ITEMS_PER_COEFFICIENT * k else "", separated, sample.note)
    names = ", ".join(EFFECTS[column] for column in fit.columns)
    how = f"logistic regression of {n} verdicts on {names}; covariance clustered by item; t with {n_items - 1} df"
    for measure, (value, gradient) in (("log_odds", fit.log_odds(effect)), ("win_change", fit.win_change(effect))):
        name, method = f"{EFFECTS[effect]}_{measure}", f"Wald; {how}"
        error, remark = fit.error(gradient)
        reach = error * float(student.ppf((1 + ci_level) / 2, n_items - 1))
        bounds = value - reach, value + reach
        if measure == "win_change":
            bounds = max(bounds[0], -1.0), min(bounds[1], 1.0)  # NaN stays NaN
            method = f"mean change, {CHANGES[effect]}; delta method; {how}"
        warned = joined(f"no interval: {remark}" if np.isnan(error) else remark, note)
        options = {"interval": bounds, "ci_level": ci_level, "method": method, "note": warned}
        yield sample.place.row(name, value, **common, **options)
        if measure == "log_odds":
            why = joined(f"undefined: {remark}" if np.isnan(error) else remark, note)
            p = 2 * float(student.sf(abs(value) / error, n_items - 1))
            yield sample.place.row(f"{name}_p", p, method=f"two-sided {method}", note=why, **common)
