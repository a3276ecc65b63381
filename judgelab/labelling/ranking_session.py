"""Labelling by ranks: all answers of an item are put in order at once, training first, with repeats among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgelab.errors import LabelError
from judgelab.labelling.closing import closed_by, thanks
from judgelab.labelling.journal_file import read_journal
from judgelab.labelling.messages import text_of
from judgelab.labelling.rank_records import RankJournal, RankRecord, RankRules
from judgelab.labelling.rank_tasks import RankTask, ranking_order
from judgelab.labelling.ranks import implied
from judgelab.labelling.session import CANNOT_JUDGE, LETTERS, LookedAt, Session
from judgelab.study.items import Pair
from judgelab.study.protocol import TIE
from judgelab.study.run import Run
from judgelab.study.training_key import Expected, read_training_key

__all__ = ["RankingSession"]


class RankingSession(Session[RankTask]):
    """One reviewer's session of ranking; see :class:`judgelab.labelling.session.Session`.

    The message ``decide`` holds ``ranks``, a rank for each answer in the sequence in which they are shown (1 is best,
    equal ranks are ties), and no choice, or the choice ``cannot_judge`` with a reason.

    Parameters
    ----------
    run : Run
        A frozen run whose reviewers rank (``human_review.labelling``, mode ranking).

    Raises
    ------
    LabelError
        If the labels of the run are not made in it, or its reviewers label pairs.
    DataError
        If the key to the training items cannot be used.
    """

    mode = "ranking"
    title = "Ranking"

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        labelling = self.study.human_review.labelling
        if labelling is None or labelling.mode != "ranking":
            what = "are not made in the study" if labelling is None else "are of pairs"
            raise LabelError(
                f"the labels of run {run.name} {what}; answers are ranked with human_review.labelling, mode ranking"
            )
        self._labelling = labelling
        self._items = {item.item_id: item for item in run.items()}
        self._key: dict[str, dict[Pair, Expected]] = {}
        for (item_id, pair), expected in read_training_key(self.study, run.items()).items():
            self._key.setdefault(item_id, {})[pair] = expected

    @property
    def folder(self) -> Path:
        """``outputs/<run>/labelling/ranks``."""
        return self.run.path("labelling") / "ranks"

    def open_journal(self, reviewer: str) -> RankJournal:
        """Open a person's journal; LabelError where it cannot be."""
        return RankJournal.open(self.folder, reviewer, self.token, study=self.study, known=self._items)

    def order(self, reviewer: str) -> Sequence[RankTask]:
        """Training, items and repeats, drawn for this reviewer."""
        wanted, items = self._labelling, list(self._items.values())
        return ranking_order(self.study, items, reviewer, training=wanted.training, repeats_share=wanted.repeats_share)

    def look(self, reviewer: str) -> LookedAt:
        """What a person's journal holds, read without a lock."""
        rules = RankRules.of(self.study, self._items)
        standing = read_journal(self.folder / f"{reviewer}.jsonl", reviewer, rules).standing
        order = self.order(reviewer)
        decided = sum(standing.is_decided(task.key) for task in order)
        return LookedAt(decided, len(order), standing.last.at[:10] if standing.last else "")

    def texts(self, task: RankTask) -> tuple[str, str, Sequence[str]]:
        """The task, its context, and all answers."""
        item = self._items[task.item_id]
        return item.task, item.reference_context, [item.answers[name] for name in task.shown]

    def choices(self) -> list[dict[str, str]]:
        """Cannot judge: everything else is said by ranks."""
        return [dict(CANNOT_JUDGE)]

    def record(self, task: RankTask, message: Mapping[str, Any], seconds: float) -> None:
        """Record the ranks of a message, or that the item cannot be judged.

        Raises
        ------
        LabelError
            If ranks are missing (which, by the letters that are shown), one is no whole number from 1 to the number of
            answers, two are equal in a study without ties (``pairwise_labels``), there are scores, or there is no
            reason for ``cannot_judge``. Nothing is recorded.
        """
        if not isinstance(self.journal, RankJournal):
            raise LabelError("No session is open: say who you are, and start.")
        choice, reason, note = (text_of(message, name) for name in ("choice", "reason", "note"))
        if choice not in ("", "ranked", "cannot_judge"):
            raise LabelError(f"choice is {choice[:40]!r}; allowed are ranks without a choice, and cannot_judge")
        if message.get("scores"):
            raise LabelError("Scores are not asked for here.")
        if choice == "cannot_judge":
            if not reason.strip():
                raise LabelError("Say in the reason why it cannot be judged.")
            self.journal.decide(task, choice, seconds=seconds, reason=reason, note=note)
            return
        ranks = self._ranks(message.get("ranks"), len(task.shown))
        self.journal.decide(task, "ranked", seconds=seconds, ranks=ranks, note=note)

    def decision(self, record: RankRecord) -> dict[str, Any]:
        """A recorded decision as the form shows it: without a choice where there are ranks."""
        choice = "" if record.choice == "ranked" else record.choice
        given = {"reason": record.reason, "note": record.note, "ranks": list(record.ranks)}
        return {"choice": choice, "scores": {}, **given}

    def progress_text(self, place: int) -> str:
        """Training is counted apart; a repeat is one more item."""
        training = sum(task.kind == "training" for task in self.tasks)
        if place < training:
            return f"Training {place + 1} of {training}"
        return f"Item {place + 1 - training} of {len(self.tasks) - training}"

    def feedback(self, task: RankTask) -> dict[str, Any] | None:
        """What the key expects of a training task: each pair of answers that it names, in the letters that were shown.

        It agrees where the ranks imply what is expected of every one of them.
        """
        expected = self._key.get(task.item_id, {}) if task.kind == "training" else {}
        if not expected:
            return None
        decided = self.decided(task) or {}
        rank_of = dict(zip(task.shown, decided.get("ranks") or (), strict=False))
        told = [_in_letters(pair, each.preference, task.shown) for pair, each in expected.items()]
        explanations = dict.fromkeys(each.explanation for each in expected.values() if each.explanation)
        return {
            "agrees": bool(rank_of)
            and all(implied(rank_of, pair) == each.preference for pair, each in expected.items()),
            "expected": "; ".join(sorted(told)),
            "explanation": "\n".join(explanations),
        }

    def may_close(self) -> bool:
        """Whether this reviewer has decided everything and nobody adjudicates; else the adjudicator closes."""
        return self.screen == "done" and not self.study.human_review.adjudicate_disagreement

    def thanks(self) -> str:
        """What is said when everything is decided."""
        return thanks(self.study)

    def close_labels(self, confirmed: bool) -> str:
        """Close the labels of the run with what all reviewers and adjudicators decided."""
        return closed_by(self.run, confirmed=confirmed)

    def _ranks(self, given: Any, n: int) -> list[int]:
        """The ranks of a message, one an answer."""
        ranks = list(given) if isinstance(given, list | tuple) else []
        if len(ranks) > n:
            raise LabelError(f"There are {len(ranks)} ranks; {n} are needed, one for each answer.")
        letters = LETTERS[:n]
        missing = [
            letter
            for letter, rank in zip(letters, ranks + [None] * (n - len(ranks)), strict=True)
            if rank in (None, "")
        ]
        if missing:
            raise LabelError(f"{len(missing)} of {n} answers have no rank yet: {', '.join(missing)}.")
        for letter, rank in zip(letters, ranks, strict=True):
            if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= n:
                raise LabelError(f"The rank of {letter} is {str(rank)[:40]}; allowed are whole numbers from 1 to {n}.")
        tied = [letter for letter, rank in zip(letters, ranks, strict=True) if ranks.count(rank) > 1]
        if tied and TIE not in self.study.pairwise_labels:
            raise LabelError(
                f"{', '.join(tied)} share a rank, and this study has no ties: give each a rank of its own."
            )
        return ranks


def _in_letters(pair: Pair, preference: str, shown: Sequence[str]) -> str:
    """What is expected of a pair, such as ``A before C`` or ``A equal to B``."""
    if preference == TIE:
        one, other = sorted(pair, key=shown.index)
        return f"{LETTERS[shown.index(one)]} equal to {LETTERS[shown.index(other)]}"
    other = pair[1] if preference == pair[0] else pair[0]
    return f"{LETTERS[shown.index(preference)]} before {LETTERS[shown.index(other)]}"
