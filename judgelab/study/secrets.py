"""What must not stand in a protocol: keys. A protocol is published, so it names the variable that holds a key.

No message here repeats the value that it refuses: messages end up in notebooks and logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

__all__ = ["check_address", "check_body", "check_headers", "check_path", "check_variable", "looks_like_a_key"]

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"authorization|cookie|api[-_]?key|[-_]key$|^key$|token$|secret|password|^sig$|-auth$", re.I)
_SECRET_VALUE = re.compile(
    r"\s*(?:(?:Bearer|Basic|Token)\s+\S"  # a whole Authorization value
    r"|(?:sk|pk|rk)[-_][\w-]{8,}|gsk_\w{8,}|hf_\w{8,}|xai-[\w-]{8,}"  # what providers begin their keys with
    r"|r8_\w{8,}|AIza[\w-]{8,}|gh[opsu]_\w{8,}"
    r"|eyJ[\w-]{8,}\.[\w-]+\.)",  # a JSON web token
)
_OURS = {"host", "content-type", "content-length", "transfer-encoding", "connection", "accept-encoding"}


def looks_like_a_key(value: str) -> bool:
    """Whether a text has the form of a key, by the prefixes that providers give theirs."""
    return _SECRET_VALUE.match(value) is not None


def check_variable(name: str) -> str:
    """The name of an environment variable; a key that was written in its place is refused."""
    if looks_like_a_key(name) or not _VARIABLE.fullmatch(name):
        raise ValueError(
            "not the name of an environment variable (letters, digits and _); "
            "put the key into a variable and name that variable here"
        )
    return name


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse static headers that hold a key, that httpx sets itself, or that are none.

    Raises
    ------
    ValueError
        Naming the header, never its value.
    """
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not (value.isascii() and (value.isprintable() or not value)):
            raise ValueError(f"headers: {name!r} is not a header (a name, and one line of printable ASCII)")
        if name.lower() in _OURS:
            raise ValueError(f"headers: {name} is set by judgelab")
        if _SECRET_NAME.search(name) or looks_like_a_key(value):
            raise ValueError(
                f"headers: {name} looks like a secret, and protocols are published; "
                "name the variable that holds it in api_key_env, or under headers_env"
            )


def check_address(address: str) -> str:
    """An http(s) address without a user, a password or a key in its query."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.netloc) and not re.search(r"\s", address)
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc or parts.fragment:
        raise ValueError("needed is an http:// or https:// address without user, password, blanks or #")
    _check_query(parts.query)
    if parts.query:
        raise ValueError("an address without a query is needed; kind chat takes the query in path")
    return address


def check_path(path: str) -> str:
    """The path below ``base_url``, which may carry a query such as ``?api-version=``."""
    parts = urlsplit(path)
    if parts.scheme or parts.netloc or parts.fragment or re.search(r"\s", path):
        raise ValueError("needed is a path below base_url, such as chat/completions?api-version=2024-10-21")
    _check_query(parts.query)
    return path


def check_body(value: Any, ours: set[str], place: str = "extra_body") -> None:
    """Refuse body fields that the protocol or the runner sets, and values that look like keys.

    Raises
    ------
    ValueError
        Naming the field.
    """
    if isinstance(value, Mapping):
        taken = sorted(ours & set(value)) if place == "extra_body" else []
        if taken:
            raise ValueError(f"extra_body: {', '.join(taken)} is set by judgelab from the protocol's own keys")
        for key, entry in value.items():
            check_body(entry, ours, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for entry in value:
            check_body(entry, ours, place)
    elif isinstance(value, str) and looks_like_a_key(value):
        raise ValueError(f"{place} looks like a secret, and protocols are published; use api_key_env")


def _check_query(query: str) -> None:
    for name, value in parse_qsl(query, keep_blank_values=True):
        if _SECRET_NAME.search(name) or looks_like_a_key(value):
            raise ValueError(
                f"the query field {name} looks like a secret, and protocols are published; use api_key_env"
            )
