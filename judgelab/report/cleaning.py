"""What of a notebook's HTML may stand in a published page: tables, text and embedded pictures, and nothing that acts.

Outputs may carry text that a model or a file supplied. Scripts, styles, forms, frames and every address outside the
report's own folder are taken out; what remains is shown as it is.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from urllib.parse import unquote, urlparse

from bleach.sanitizer import Cleaner
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

__all__ = ["clean_html", "is_local_link", "markdown_to_html"]

_TAGS = frozenset(
    [
        "a", "abbr", "b", "blockquote", "br", "caption", "cite", "code", "col", "colgroup", "dd", "del", "details",
        "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins",
        "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup",
        "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var",
    ]
)  # fmt: skip
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]+\Z")
# Their content is code or a form, not text: it goes with the tag.
_DROPPED = re.compile(r"<(script|style|template|noscript|iframe|object|svg|math)\b.*?(</\1\s*>|\Z)", re.I | re.S)
# nbconvert's link of a heading to itself, which it closes as XML does and HTML does not
_HEADING_LINK = re.compile(r'<a class="anchor-link" href="[^"]*"\s*/>')
_ANCHOR = re.compile(r'<a\s[^>]*?href="([^"]*)"[^>]*>(.*?)</a>', re.I | re.S)


def is_local_link(address: str) -> bool:
    """Whether an address stays in the report: relative, or a place in the same page."""
    plain = unquote(html.unescape(address)).strip()
    if any(ord(char) < 33 for char in plain) or "\\" in plain:
        return False
    try:
        parts = urlparse(plain)
    except ValueError:
        return False
    return not parts.scheme and not parts.netloc and not plain.startswith("/") and ":" not in plain.split("/")[0]


def clean_html(text: str) -> str:
    """HTML with the harmless elements only. Links lead to relative addresses, pictures are embedded."""
    return str(_cleaner().clean(_DROPPED.sub("", _links_as_text(text))))


def markdown_to_html(text: str) -> str:
    """A markdown cell as clean HTML. HTML in it is cleaned as well; formulas stay as they were typed."""
    renderer = IPythonRenderer(escape=False, anchor_link_text="")
    return clean_html(_HEADING_LINK.sub("", MarkdownWithMath(renderer=renderer).render(text)))


def _links_as_text(text: str) -> str:
    """A link to somewhere else becomes its words with the address behind them, to be read and not followed."""

    def shown(match: re.Match[str]) -> str:
        address, words = match.group(1), match.group(2)
        if is_local_link(address):
            return match.group(0)
        return words if address in words or not address else f"{words} ({address})"

    return _ANCHOR.sub(shown, text)


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "a" and name == "href":
        return is_local_link(value)
    if tag == "img" and name == "src":
        return bool(_PICTURE.match(value))
    return name in _ATTRIBUTES.get(tag, ()) or name in ("class", "title", "lang", "dir", "role", "id")


_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "img": ("alt", "width", "height"),
    "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan", "scope"),
    "col": ("span",),
    "ol": ("start",),
    "details": ("open",),
}


@lru_cache(maxsize=1)
def _cleaner() -> Cleaner:
    # `http` is named so that relative addresses pass bleach's own test; ours has already refused anything else
    return Cleaner(tags=_TAGS, attributes=_allowed, protocols={"data", "http"}, strip=True, strip_comments=True)
