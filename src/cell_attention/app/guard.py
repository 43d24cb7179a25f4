"""What every request must pass: the Host, the origin, the kind, the size and the speed of its body.

An ASGI application around another one; it also adds the headers that keep the page to itself.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from cell_attention.app.limits import ServeLimits
from cell_attention.app.pool import Answer, fault

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
LOCAL = ("127.0.0.1", "localhost", "::1")
DRAINED = 100_000_000
"""Bytes of a body that is too large which are still read, so that the client hears the answer."""
DRAIN_SECONDS = 2.0


class Guard:
    """Refuses what is not meant for this server, and reads the whole body before anything else."""

    def __init__(
        self, app: Application, hosts: Iterable[str], limits: ServeLimits, *, posts: Iterable[str]
    ) -> None:
        """posts: the addresses that read a body; the application refuses a body at others."""
        self.app, self.limits, self.posts = app, limits, frozenset(posts)
        self.hosts = frozenset(host.lower() for host in hosts)
        self.any_address = not self.hosts <= set(LOCAL)
        self._reading: set[asyncio.Timeout] = set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}  # fmt: skip # noqa: E501
        refusal = self._refusal(scope, headers)
        body = b""
        if scope["method"] == "POST":
            read = await self._body(headers, receive)
            if read is None:
                return  # the client has gone
            refusal, body = (refusal or read, b"") if isinstance(read, Answer) else (refusal, read)
        if refusal is not None:
            await _answer(refusal, send)
            return
        first = True

        async def replay() -> Message:
            nonlocal first
            if first:
                first = False
                return {"type": "http.request", "body": body, "more_body": False}
            return await receive()

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        await self.app(scope, replay, guarded)

    def stop(self) -> None:
        """Stop waiting for bodies."""
        now = asyncio.get_running_loop().time()
        for timeout in list(self._reading):
            timeout.reschedule(now)

    def _refusal(self, scope: Message, headers: dict[str, str]) -> Answer | None:
        """Return why a request is not taken, by its headers alone."""
        host = headers.get("host", "")
        if not self._is_known(host):
            return fault(421, f"this server does not answer for the host {host[:100]!r}")
        if scope["method"] != "POST":
            return None
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return fault(403, f"requests from the page {origin[:100]!r} are not taken")
        if scope["path"] not in self.posts:
            return None  # 404 or 405, whatever the kind of the body
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" or headers.get("content-encoding", "identity") != "identity":
            return fault(415, "the body must be JSON, with Content-Type: application/json")
        return None

    def _is_known(self, host: str) -> bool:
        """Whether a Host names this server; an address cannot be rebound, a foreign name can."""
        name = _without_port(host.strip().lower())
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.any_address

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes | Answer | None:
        """Read the whole body; return None if the client goes away before its end."""
        most = self.limits.body
        large = fault(413, f"the body must have at most {most:,} bytes")
        stated = headers.get("content-length", "0")
        parts: list[bytes] = []
        size, excess = 0, stated.isdecimal() and int(stated) > most
        try:
            async with asyncio.timeout(self.limits.patience) as timeout:
                self._reading.add(timeout)
                try:
                    while True:
                        message = await receive()
                        if message["type"] == "http.disconnect":
                            return None
                        part = message.get("body", b"")
                        size += len(part)
                        if size > most and not excess:
                            excess, parts = True, []
                        if excess:
                            _hurry(timeout)
                        else:
                            parts.append(part)
                        if not message.get("more_body", False) or size > DRAINED:
                            return large if excess else b"".join(parts)
                finally:
                    self._reading.discard(timeout)
        except TimeoutError:
            if excess:
                return large
            return fault(408, f"the body did not arrive within {self.limits.patience:g} s")


def _hurry(timeout: asyncio.Timeout) -> None:
    """Leave little time for a body that is refused anyway."""
    end = asyncio.get_running_loop().time() + DRAIN_SECONDS
    if (before := timeout.when()) is not None and end < before:
        timeout.reschedule(end)


def _without_port(host: str) -> str:
    """Return the name in a Host header: `[::1]:80` is ::1."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


async def _answer(answer: Answer, send: Send) -> None:
    """Send an answer and close the connection, whose body may not have been read."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer.body)).encode()),
        (b"connection", b"close"),
        *HEADERS,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
