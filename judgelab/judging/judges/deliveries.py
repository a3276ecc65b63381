"""Responses that are delivered twice must not answer the next request on their connection.

HTTP/1.1 tells which response belongs to which request by order alone, so a second copy of a response, sent by a proxy
or a server gone wrong, is taken for the answer to the next request: a verdict of one item would be recorded for
another. A connection with bytes left behind a response is closed, and a response that equals an earlier one on its
connection, byte for byte and with the provider's own id in it, is no answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

import httpx

__all__ = ["Repeats", "close_if_more_follows"]

REMEMBERED = 1000  # responses of a connection; a copy comes within seconds of its original
# from httpx's stream down to what h11 has read of the connection; there is no public way
_TO_STATE = ("_httpcore_stream", "_stream", "_connection", "_h11_state")


async def close_if_more_follows(response: httpx.Response) -> None:
    """For httpx's response hook: close the connection after this response if bytes stand behind it."""
    response.stream = _Watched(response.stream)


class _Watched(httpx.AsyncByteStream):
    """A response's body; when it ends, nothing may stand behind it."""

    def __init__(self, stream: Any) -> None:
        self._inner = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            yield part
        state: Any = self._inner
        if not hasattr(state, _TO_STATE[0]):  # httpx's client has one more around its transport's
            state = getattr(state, "_stream", None)
        for name in _TO_STATE:
            state = getattr(state, name, None)
        if state is not None and state.trailing_data[0]:
            state.send_failed()  # a connection in an error state is closed and not used again

    async def aclose(self) -> None:
        await self._inner.aclose()


class Repeats:
    """The latest responses of each connection."""

    def __init__(self) -> None:
        self._latest: WeakKeyDictionary[Any, dict[bytes, None]] = WeakKeyDictionary()

    async def seen(self, response: httpx.Response, body: Any) -> bool:
        """Whether this response came on its connection before; the connection is closed then.

        Only responses with an id can be told from two equal answers.
        """
        connection = response.extensions.get("network_stream")
        if connection is None or not isinstance(body, dict) or not (body.get("id") or body.get("responseId")):
            return False
        latest = self._latest.setdefault(connection, {})
        digest = hashlib.blake2b(response.content, digest_size=16).digest()
        if digest in latest:
            await connection.aclose()  # what follows on it would answer the wrong request, too
            return True
        latest[digest] = None
        if len(latest) > REMEMBERED:
            del latest[next(iter(latest))]
        return False
