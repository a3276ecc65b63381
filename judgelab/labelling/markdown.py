"""Markdown of a task, a context or an answer as HTML in which nothing runs, loads or leads anywhere.

The text is of a stranger. Its own HTML is escaped, and what the renderer makes of it is cleaned once more: a short list
of tags is allowed, and no attribute of any of them. A link or an image is therefore written out, with its address as
text: a reviewer sees all that a judge read.
"""

from __future__ import annotations

from html import escape

import mistune
import nh3

__all__ = ["LONGEST", "TAGS", "rendered"]

LONGEST = 50_000  # characters; longer texts are shown as they are
TAGS = frozenset(
    [
        *("blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
        *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
    ]
)


class _Plain(mistune.HTMLRenderer):
    """Links and images as text."""

    def link(self, text: str, url: str, title: str | None = None) -> str:
        address = escape(url)
        return text if address in text else f"{text} ({address})"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return f"[image: {text} ({escape(url)})]"


_render = mistune.create_markdown(renderer=_Plain(escape=True), plugins=["strikethrough", "table"])


def rendered(text: str) -> str | None:
    """Markdown as HTML that is safe to put into a page.

    Parameters
    ----------
    text : str
        Markdown with tables and strikethrough, of any origin.

    Returns
    -------
    str or None
        HTML of the tags :data:`TAGS` without attributes; an empty text gives an empty one. None where the text is to
        be shown as it is: it has more than :data:`LONGEST` characters, or the renderer gives up on it.
    """
    if len(text) > LONGEST:
        return None
    try:
        html = _render(text)
    except (RecursionError, ValueError):
        return None
    return nh3.clean(
        str(html), tags=set(TAGS), attributes={}, clean_content_tags=set(), url_schemes=set(), link_rel=None
    )
