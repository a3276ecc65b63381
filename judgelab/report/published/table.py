"""Every published figure that the lab rests on, beside ours: one row each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

from judgelab.errors import DataError
from judgelab.project import outputs_folder, project_root, resolve
from judgelab.report.published.figure import Figure, figure_frame
from judgelab.report.published.llmbar import llmbar_figures
from judgelab.report.published.llmfao import evalica_figures, llmfao_figures
from judgelab.report.published.pandalm import pandalm_figures
from judgelab.report.published.position_bias import position_bias_figures
from judgelab.report.published.scores import judgebench_figures, prometheus_figures, unieval_figures
from judgelab.report.sentences import Sentences
from judgelab.report.words import listed, plural
from judgelab.study.tables import write_csv

__all__ = ["SOURCES", "data_folder", "figure_sentences", "published_figures", "save_figures", "source_table"]

SOURCES: Mapping[str, Callable[[Path], Iterable[Figure]]] = {
    "llmbar_natural": llmbar_figures,
    "llmbar_adversarial_gpt4": llmbar_figures,
    "pandalm": pandalm_figures,
    "evalica": evalica_figures,
    "llmfao": llmfao_figures,
    "position_bias_mtbench": position_bias_figures,
    "unieval": unieval_figures,
    "judgebench_illc_recipes": judgebench_figures,
    "judgebench_illc_newsroom": judgebench_figures,
    "prometheus_gpt4_repeats": prometheus_figures,
}


def data_folder(named: str = "") -> Path:
    """Where the public data sets are: the folder named, else ``JUDGELAB_DATA``, else where they are found.

    Looked for in that case: ``shared/data`` beside the project, then ``outputs/fetched``, where `judgelab fetch` puts
    them.

    Raises
    ------
    DataError
        If no folder is found.
    """
    given = named or os.environ.get("JUDGELAB_DATA", "")
    if given:
        folder = resolve(given)
        if not folder.is_dir():
            raise DataError(f"{given}: no such folder; `judgelab fetch all` makes outputs/fetched")
        return folder
    for folder in (project_root().parent / "shared" / "data", outputs_folder() / "fetched"):
        if folder.is_dir():
            return folder
    raise DataError("the public data sets are not here: `judgelab fetch all` downloads them to outputs/fetched")


def published_figures(folder: Path) -> pd.DataFrame:
    """Recompute every published figure from the data sets in ``folder``.

    Returns
    -------
    DataFrame
        data (the data set's name), source, figure, published (with the digits that are compared), ours, equal (yes,
        no), n, remark (the convention, or why the two differ). A data set that is not in the folder has no row.
    """
    tables = []
    for name, figures in SOURCES.items():
        if (folder / name).is_dir():
            table = figure_frame(figures(folder / name))
            table.insert(0, "data", name)
            tables.append(table)
    if not tables:
        raise DataError(f"{folder.name}: none of the data sets {', '.join(SOURCES)} is in it")
    return pd.concat(tables, ignore_index=True)


def save_figures(figures: pd.DataFrame) -> pd.DataFrame:
    """Write ``outputs/published_figures/figures.csv`` and hand the table on."""
    write_csv(figures, outputs_folder() / "published_figures" / "figures.csv")
    return figures


def source_table(figures: pd.DataFrame) -> pd.DataFrame:
    """By data set: how many figures, how many equal to the printed digit, how many differ and say why."""
    equal = figures["equal"] == "yes"
    counted = pd.DataFrame({"figures": 1, "equal": equal.astype(int), "explained": (~equal).astype(int)})
    return counted.groupby(figures["data"], sort=False).sum()


def figure_sentences(figures: pd.DataFrame) -> Sentences:
    """How many published figures come out, and which data sets were not here."""
    equal = int((figures["equal"] == "yes").sum())
    absent = [name for name in SOURCES if name not in set(figures["data"])]
    told = [
        f"{equal} of {plural(len(figures), 'published figure')} come out to the last printed digit "
        f"(n = {plural(figures['data'].nunique(), 'data set')}).",
    ]
    if equal < len(figures):
        rest = len(figures) - equal
        told.append(f"The other {rest} differ, and the remark of each says what is known of the difference.")
    if absent:
        told.append(f"Not here, and so not compared: {listed(absent)}. `judgelab fetch NAME` downloads them.")
    return Sentences(told)
