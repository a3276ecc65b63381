"""Pages: the executed notebooks of a run as files that open offline, and a start page that links them.

Every page is one file: pictures and styles are in it, nothing is fetched, and no script runs. Equal inputs give
equal bytes: pages carry no time and no random id.
"""

from __future__ import annotations

import base64
import binascii
import html
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from nbconvert.exporters import TemplateExporter
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from traitlets.config import Config

from judgelab.errors import RunError
from judgelab.report.cleaning import clean_html, markdown_to_html
from judgelab.report.narrative import provenance_banner
from judgelab.report.normalise import FOLD
from judgelab.report.sentences import unbroken
from judgelab.study.tables import write_text

__all__ = ["folded", "publish"]

TEMPLATES = Path(__file__).parent / "templates"
FOOTER = "Made by judgelab from the executed notebooks of this run. The page is complete: it fetches nothing."

_GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Protocol and manifest",
        "What was fixed before judging, and the hashes of everything that went in and came out.",
        ("protocol.yaml", "manifest.json"),
    ),
    (
        "Evidence",
        "Items, human labels and every reply, as they were stored.",
        (
            "items.jsonl", "excluded_items.csv", "human_labels.csv", "direct_scores.jsonl", "pairwise_original.jsonl",
            "pairwise_swapped.jsonl", "invalid_outputs.jsonl", "position_sensitive.csv", "normalized_results/*.csv",
            "ledger.sqlite",
        ),
    ),
    ("Tables", "The numbers of this report, as the stages wrote them.", ("tables/*.csv",)),
    ("Figures", "", ("figures/*",)),
)  # fmt: skip


@dataclass(frozen=True)
class _Stage:
    """An executed notebook: its name, its question, and whether it stopped with an error."""

    name: str
    question: str
    stopped: bool
    notebook: NotebookNode


def publish(
    run_folder: str | Path,
    *,
    title: str,
    question: str = "",
    questions: Mapping[str, str] | None = None,
    provenance: str = "human",
    facts: Mapping[str, str] | None = None,
    headline: Sequence[str] = (),
    tables: Mapping[str, pd.DataFrame] | None = None,
    announced: Sequence[str] = (),
) -> Path:
    """Write ``report/<stage>.html`` for every notebook in ``notebooks/`` of a run, and ``report/index.html``.

    Parameters
    ----------
    run_folder
        ``outputs/<run>``.
    title, question
        Of the study. All text given here is shown as text, whatever stands in it.
    questions
        The question of each stage, by the notebook's name, in the order of the stages. A notebook that is not among
        them comes after them, with its first heading for a question.
    provenance
        Of the human labels: ``human``, ``simulated`` or ``none``.
    facts
        Name and value of what a reader should know first: the run, the number of items, the judges.
    headline
        The sentences of the decision, made from the data.
    tables
        Caption and table (shown with its index if that is named); values are shown as they are given.
    announced
        Files of the run that are written after the report and linked all the same.

    Returns
    -------
    Path
        The start page.

    Raises
    ------
    RunError
        If there is no executed notebook, one cannot be read, or the report cannot be written.
    """
    folder = Path(run_folder)
    stages = [_read_stage(path, questions or {}) for path in _notebooks(folder, questions or {})]
    if not stages:
        raise RunError(f"outputs/{folder.name}/notebooks holds no executed notebook: run the study first")
    banner = provenance_banner(provenance)._repr_html_()
    exporter, css = _exporter(), _css()
    names = [stage.name for stage in stages]
    for index, stage in enumerate(stages):
        page = {
            "title": f"{stage.name}: {title}", "stage": stage.name, "css": css, "banner": banner, "footer": FOOTER,
            "previous": names[index - 1] if index else "",
            "next": names[index + 1] if index + 1 < len(names) else "",
        }  # fmt: skip
        body, _ = exporter.from_notebook_node(folded(stage.notebook), resources={"page": page})
        write_text(_tidy(body), folder / "report" / f"{stage.name}.html")
    _remove_old_pages(folder / "report", {*names, "index"})
    start = _start_page(
        folder, stages, css=css, banner=banner, title=title, question=question, facts=list((facts or {}).items()),
        headline=[unbroken(str(sentence)) for sentence in headline], tables=_plain_tables(tables or {}),
        groups=_files(folder, announced),
    )  # fmt: skip
    write_text(_tidy(start), folder / "report" / "index.html")
    return folder / "report" / "index.html"


def _notebooks(folder: Path, questions: Mapping[str, str]) -> list[Path]:
    """Executed notebooks in the order of the stages, others by name after them."""
    order = {name: place for place, name in enumerate(questions)}
    found = (folder / "notebooks").glob("*.ipynb")
    return sorted(found, key=lambda path: (order.get(path.stem, len(order)), path.stem))


def _read_stage(path: Path, questions: Mapping[str, str]) -> _Stage:
    try:
        notebook = nbformat.read(path, as_version=4)
    except (ValueError, AttributeError, KeyError, OSError, nbformat.ValidationError) as error:
        raise RunError(f"notebooks/{path.name} cannot be read as a notebook: {str(error)[:120]}") from None
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    stopped = any(output.output_type == "error" for output in outputs)
    return _Stage(path.stem, questions.get(path.stem) or _heading(notebook), stopped, notebook)


def _heading(notebook: NotebookNode) -> str:
    """The first heading of a notebook."""
    lines = (line for cell in notebook.cells if cell.cell_type == "markdown" for line in cell.source.splitlines())
    return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")


def folded(notebook: NotebookNode) -> NotebookNode:
    """A copy in which each section whose heading is tagged ``fold`` says where its fold opens and where it closes.

    A section goes on to the next heading of the second level, or to the last cell, which leads to the next stage.
    """
    copy, is_open = deepcopy(notebook), False
    for place, cell in enumerate(copy.cells):
        starts = cell.cell_type == "markdown" and cell.source.startswith("## ")
        cell.metadata["closes_fold"] = is_open and (starts or place == len(copy.cells) - 1)
        is_open = is_open and not cell.metadata["closes_fold"]
        if starts and FOLD in cell.metadata.get("tags", []):
            title, _, rest = cell.source.partition("\n")
            cell.metadata["opens_fold"], cell.source, is_open = title.removeprefix("## ").strip(), rest.strip(), True
    return copy


def _exporter() -> TemplateExporter:
    """One exporter for all notebooks. It only fills our template: no preprocessor touches the notebook."""
    config = Config()
    config.TemplateExporter.preprocessors = []
    config.TemplateExporter.default_preprocessors = []
    config.NbConvertBase.display_data_priority = _PRIORITY
    exporter = TemplateExporter(
        config=config, template_name="report", extra_template_basedirs=[str(TEMPLATES)], file_extension=".html",
        log=_quiet(),
    )  # fmt: skip
    exporter.template_file = "index.html.j2"
    for name, function in _FILTERS.items():
        exporter.register_filter(name, function)
    return exporter


def _quiet() -> logging.Logger:
    """A logger without a voice: nbconvert has nothing to tell the reader of a report."""
    logger = logging.getLogger("judgelab.nbconvert")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


_PRIORITY = [
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "text/html",
    "text/markdown",
    "text/latex",
    "application/javascript",
    "application/vnd.jupyter.widget-view+json",
    "text/plain",
]
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FORMATTER = HtmlFormatter(style="default", nowrap=False, cssclass="highlight")
_PARAMETERS = {"parameters": "Parameters", "injected-parameters": "Parameters of this run"}


def _text(text: str) -> str:
    return html.escape(_ANSI.sub("", text))


def _python(source: str) -> str:
    return highlight(source, PythonLexer(stripnl=False), _FORMATTER)


def _markdown(source: str) -> str:
    """Markdown as HTML; a link to another stage's notebook leads to its page."""
    return re.sub(r'href="(\d\d_\w+)\.ipynb"', r'href="\1.html"', markdown_to_html(source))


def _code_name(cell: NotebookNode) -> str:
    tags = cell.metadata.get("tags", [])
    return next((name for tag, name in _PARAMETERS.items() if tag in tags), "Code")


def _alt(output: NotebookNode, mime: str) -> str:
    own = output.get("metadata", {}).get(mime, {})
    return str(own.get("alt") or "Figure without a description")


def _base64(data: str) -> str:
    """Base64 data without line breaks, or nothing if it is something else."""
    compact = "".join(str(data).split())
    try:
        base64.b64decode(compact, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return compact


_FILTERS = {
    "report_text": _text,
    "report_python": _python,
    "report_html": clean_html,
    "report_markdown": _markdown,
    "report_code_name": _code_name,
    "report_alt": _alt,
    "report_base64": _base64,
}


def _css() -> str:
    own = (TEMPLATES / "report" / "report.css").read_text(encoding="utf-8")
    return own + _FORMATTER.get_style_defs(".highlight")


def _start_page(folder: Path, stages: Iterable[_Stage], **values: Any) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES / "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("start.html.j2")
    return template.render(stages=list(stages), footer=FOOTER, **values)


def _files(folder: Path, announced: Sequence[str]) -> list[dict[str, Any]]:
    """The files of the run that exist, in groups, each by its path from the run's folder."""
    groups = []
    for title, words, patterns in _GROUPS:
        found = [path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]
        names = [path.relative_to(folder).as_posix() for path in found]
        names += [name for name in announced if name in patterns and name not in names]
        if names:
            groups.append({"title": title, "words": words, "files": names})
    return groups


def _plain_tables(tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, dict[str, Any]]]:
    """Tables as lists of text; an index with a name becomes the first column."""
    plain = []
    for caption, table in tables.items():
        flat = table.reset_index() if table.index.name is not None else table
        rows = [["" if pd.isna(value) else str(value) for value in row] for row in flat.itertuples(index=False)]
        plain.append((caption, {"columns": [str(name) for name in flat.columns], "rows": rows}))
    return plain


def _remove_old_pages(report: Path, names: set[str]) -> None:
    """Pages of notebooks that are gone: a report shows what the run holds."""
    for page in report.glob("*.html"):
        if page.stem not in names:
            page.unlink()


def _tidy(page: str) -> str:
    """No space at line ends (outside of preformatted text it says nothing), and one newline at the end."""
    return page.strip() + "\n"
