"""An executed notebook in the form in which it is committed: executing it again changes what the result changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from judgelab.errors import DataError
from judgelab.study.tables import write_text

__all__ = ["FOLD", "normalise", "normalise_file"]

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# Without the version of Python: the same notebook must not differ between machines.
LANGUAGE_INFO = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
FOLD = "fold"  # tag of a heading whose section is shown folded
WIDGET = "application/vnd.jupyter.widget-view+json"


def normalise(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook with fixed ids, counts and metadata and without what differs on every execution.

    Cells get the ids ``c000``, ``c001``, ...; code cells that were executed get the counts 1, 2, ... in order (one
    that was not keeps none, so that it cannot pass for an executed one). Of a cell's metadata only the tags stay,
    and what JupyterLab needs to open a section tagged ``fold`` folded.
    Widget views go, with the text that stands in for them; where HTML stands beside one, text and HTML stay.
    Neighbouring pieces of one output stream, which the kernel splits by chance, become one. Source and results are
    left as they are.

    Parameters
    ----------
    notebook
        A notebook of format 4.

    Returns
    -------
    NotebookNode
        A new notebook; normalising it again changes nothing.
    """
    cells, count = [], 0
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            cells.append(_cell(cell, index))
            continue
        executed = cell.get("execution_count") is not None
        count += executed
        outputs = _joined([_output(out, count) for out in map(_readable, cell.outputs) if out is not None])
        cells.append(_cell(cell, index, execution_count=count if executed else None, outputs=outputs))
    return nbformat.from_dict(
        {
            "cells": cells,
            "metadata": {"kernelspec": dict(KERNELSPEC), "language_info": dict(LANGUAGE_INFO)},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def normalise_file(path: str | Path) -> bool:
    """Normalise a notebook in its place. Says whether the file changed.

    The file is written with an indent of 1 and ends with a newline.

    Raises
    ------
    DataError
        If the file is missing or is not a notebook.
    """
    file = Path(path)
    try:
        before = file.read_text(encoding="utf-8")
        notebook = nbformat.reads(before, as_version=4)
    except FileNotFoundError:
        raise DataError(f"{file.name}: no such notebook") from None
    except (ValueError, AttributeError, KeyError, nbformat.ValidationError) as error:  # JSON of another kind
        raise DataError(f"{file.name}: not a notebook: {' '.join(str(error).split())[:200]}") from None
    after = nbformat.writes(normalise(notebook), version=nbformat.NO_CONVERT, indent=1).rstrip("\n") + "\n"
    if after != before:
        write_text(after, file)
    return after != before


def _cell(cell: NotebookNode, index: int, **more: Any) -> dict[str, Any]:
    tags = list(cell.metadata.get("tags", []))
    folds = {"jp-MarkdownHeadingCollapsed": True} if FOLD in tags else {}  # JupyterLab opens it folded
    kept = {
        "cell_type": cell.cell_type,
        "id": f"c{index:03d}",
        "metadata": folds | ({"tags": tags} if tags else {}),
        "source": cell.source,
    }
    if cell.get("attachments"):
        kept["attachments"] = cell.attachments
    return kept | more


def _output(output: NotebookNode, count: int) -> dict[str, Any]:
    """An output with its own count and, of its metadata, only what concerns its pictures (their alt text)."""
    kept = dict(output)
    if output.output_type == "execute_result":
        kept["execution_count"] = count
    if "metadata" in output:
        kept["metadata"] = {key: value for key, value in output.metadata.items() if key.startswith("image/")}
    return kept


def _readable(output: NotebookNode) -> NotebookNode | None:
    """An output without its widget; None if nothing is left that a report could show."""
    data = output.get("data", {})
    if WIDGET not in data:
        return output
    if "text/html" not in data:
        return None
    kept: NotebookNode = nbformat.from_dict({**output, "data": {key: data[key] for key in data if key != WIDGET}})
    return kept


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for output in outputs:
        last = joined[-1] if joined else None
        same = last is not None and output["output_type"] == last["output_type"] == "stream"
        if same and last is not None and output["name"] == last["name"]:
            last["text"] += output["text"]
        else:
            joined.append(output)
    return joined
