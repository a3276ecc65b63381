"""Dollar signs are money: JupyterLab sets what stands between two of them as a formula, in every HTML output.

A text of a stranger would then be shown as something else than it is. HTML with such signs is put into an element that
JupyterLab's typesetter passes by; other HTML is left as it is.
"""

from __future__ import annotations

import re

import pandas as pd
from IPython.core.getipython import get_ipython

__all__ = ["tables_as_text", "without_formulas"]

_SIGNS = re.compile(r"\$|\\[(\[]|\\begin\b|\\ref\b|\\eqref\b")


def without_formulas(html: str) -> str:
    r"""HTML in which nothing is set as a formula.

    Parameters
    ----------
    html
        HTML whose text is no mathematics.

    Returns
    -------
    str
        The same HTML; in an element of the class ``mathjax_ignore`` if a formula might begin in it.

    Examples
    --------
    >>> without_formulas("<p>$5 or $6</p>")
    '<div class="mathjax_ignore"><p>$5 or $6</p></div>'
    >>> without_formulas("<p>5 or 6</p>")
    '<p>5 or 6</p>'
    """
    return f'<div class="mathjax_ignore">{html}</div>' if _SIGNS.search(html) else html


def tables_as_text() -> None:
    """Let the notebook's kernel show tables without formulas. Without a kernel it does nothing; twice is as once."""
    shell = get_ipython()
    if shell is None or shell.display_formatter is None:
        return
    shell.display_formatter.formatters["text/html"].for_type(pd.DataFrame, _table)


def _table(table: pd.DataFrame) -> str | None:
    shown: str | None = table._repr_html_()  # type: ignore[operator]
    return None if shown is None else without_formulas(shown)
