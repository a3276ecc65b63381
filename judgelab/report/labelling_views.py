"""What notebooks show where people label: a form in JupyterLab; a sentence wherever nobody is there to fill one in."""

from __future__ import annotations

import pandas as pd

from judgelab.labelling.adjudication import AdjudicationSession
from judgelab.labelling.form import LabellingForm
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.pair_session import PairSession
from judgelab.labelling.ranking_session import RankingSession
from judgelab.labelling.spot_check import SpotCheckSession, spot_check_labels
from judgelab.report.sentences import Sentences
from judgelab.report.words import plural
from judgelab.study.run import Run
from judgelab.study.run_folder import RunFolder

__all__ = ["adjudication_view", "labelling_view", "spot_check_view"]


def labelling_view(run: Run) -> LabellingForm | Sentences:
    """The form in which reviewers label; a sentence where labels come from a file, are closed, or are wanted by nobody.

    Wherever the notebook is executed without a person, the form stands as a sentence that says how many have labelled.
    """
    labelling = run.study.human_review.labelling
    if labelling is None:
        source = run.study.human_labels
        told = "This study has no human labels" if source is None else f"The labels come from {source.path}"
        return Sentences([f"{told}: nothing is labelled in this notebook."])
    if not run.labels_open:
        return Sentences(["The labels of this study were made here and are closed: nothing can be added to them."])
    begun = plural(gathered_labels(run).planned["reviewer_id"].nunique(), "reviewer")
    session = RankingSession(run) if labelling.mode == "ranking" else PairSession(run)
    return LabellingForm(session, fallback=f"People label here, in JupyterLab; so far {begun} began.")


def adjudication_view(run: Run) -> LabellingForm | Sentences:
    """The form for items on which initial labels differ, from which the labels are closed, too; else a sentence."""
    if run.study.human_review.labelling is None:
        return Sentences(["Nothing is adjudicated in this notebook: the labels are not made here."])
    if not run.labels_open:
        return Sentences(["The labels are closed: nothing is adjudicated any more."])
    left = len(gathered_labels(run).open_pairs)
    told = f"Somebody who is no reviewer decides here, in JupyterLab: {plural(left, 'comparison')} to go."
    return LabellingForm(AdjudicationSession(run), fallback=told)


def spot_check_view(run: RunFolder, sheet: pd.DataFrame) -> LabellingForm | Sentences:
    """The form in which a person judges the verdicts of a spot check again; a sentence where there is none.

    Parameters
    ----------
    run
        The run; one of matches that were judged elsewhere has no answers to show.
    sheet
        See :func:`judgelab.measure.spot_check.spot_check_sample`.
    """
    if not isinstance(run, Run) or sheet.empty:
        return Sentences(["There is no verdict here whose answers a person could look at."])
    done = len(spot_check_labels(run, sheet))
    told = (
        f"A person judges {plural(len(sheet), 'verdict')} again here, in JupyterLab: {done} of {len(sheet)} are done."
    )
    return LabellingForm(SpotCheckSession(run, sheet), fallback=told)
