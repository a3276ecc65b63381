"""Many requests at once through httpx without its pool's bookkeeping.

For every request httpx's pool looks at each of its connections, and its client merges cookies, redirects and hooks
that no judge needs. At 64 requests in flight that takes several milliseconds of this machine a call, far more than
all the rest. Here each request in flight has one connection of its own, and whichever is free takes the next
request; httpx's transport is asked directly.
"""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

__all__ = ["Lanes"]

Hook = Callable[[httpx.Response], Awaitable[None]]


class Lanes:
    """As many connections as requests may be in flight; the last one used is used next.

    Parameters
    ----------
    count
        Requests in flight at most; one more waits for its turn.
    headers
        Sent with every request.
    timeout
        Of each step of a request.
    trust_env
        Whether the proxies and certificates that the environment names are used.
    transport
        For tests: what every request is sent through.
    on_response
        Called with each response before its body is read.

    Raises
    ------
    httpx.InvalidURL, ValueError
        If a proxy of the environment is not an address.
    """

    def __init__(
        self,
        count: int,
        *,
        headers: Mapping[str, str],
        timeout: httpx.Timeout,
        trust_env: bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
        on_response: Hook | None = None,
    ) -> None:
        self._unused, self._given, self._trust_env, self._on_response = count, transport, trust_env, on_response
        self._idle: asyncio.LifoQueue[httpx.AsyncBaseTransport | httpx.AsyncClient] = asyncio.LifoQueue()
        self._all: list[httpx.AsyncBaseTransport | httpx.AsyncClient] = []
        self._headers = {"User-Agent": "judgelab", "Accept-Encoding": "gzip, deflate", **headers}
        self._timeout = timeout
        self._extensions = {"timeout": timeout.as_dict()}
        # made once: it reads every certificate of the machine
        self._verify: Any = None if transport else httpx.create_ssl_context(trust_env=trust_env)
        # a client knows which proxy serves which address; without one the transport is enough
        self._proxies = trust_env and transport is None and bool(urllib.request.getproxies())
        self._idle.put_nowait(self._lane())

    async def post(self, url: httpx.URL, *, content: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """Post, and read the whole response, on a connection that nobody else uses meanwhile."""
        request = httpx.Request(
            "POST", url, headers={**self._headers, **headers}, content=content, extensions=self._extensions
        )
        lane = await self._free()
        try:
            response = await self._sent(lane, request)
            try:
                response.request = request
                if self._on_response is not None:
                    await self._on_response(response)
                await response.aread()
            finally:
                await response.aclose()
            return response
        finally:
            self._idle.put_nowait(lane)

    async def aclose(self) -> None:
        """Close every connection."""
        for lane in self._all:
            await lane.aclose()

    async def _sent(self, lane: httpx.AsyncBaseTransport | httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        if isinstance(lane, httpx.AsyncClient):
            return await lane.send(request, stream=True)
        return await lane.handle_async_request(request)

    async def _free(self) -> httpx.AsyncBaseTransport | httpx.AsyncClient:
        if self._idle.empty() and self._unused > 0:
            return self._lane()
        return await self._idle.get()

    def _lane(self) -> httpx.AsyncBaseTransport | httpx.AsyncClient:
        """One more connection, not open yet."""
        self._unused -= 1
        one = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        lane: httpx.AsyncBaseTransport | httpx.AsyncClient
        if self._given is not None:
            lane = self._given
        elif self._proxies:
            lane = httpx.AsyncClient(verify=self._verify, trust_env=True, limits=one, timeout=self._timeout)
        else:
            lane = httpx.AsyncHTTPTransport(verify=self._verify, trust_env=self._trust_env, limits=one)
        self._all.append(lane)
        return lane
