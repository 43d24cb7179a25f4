"""HTTP connections that end when they stand still: uvicorn alone would wait for ever.

The headers of a request must arrive in time, and what is answered must be read. When there are as
many connections as the server takes, a new one ends the one that has been silent for longest.
"""

import json
import socket
import struct
from collections.abc import Iterable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SAID = json.dumps({"error": "the request did not arrive in time"}).encode()
LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%s" % (len(SAID), SAID)
)


def connection_class(patience: float, most: int) -> Any:
    """Return uvicorn's connection with a time limit for the headers of every request and for the
    reading of every answer.

    most: number of connections at a time.
    """

    class Connection(H11Protocol):  # type: ignore[misc]
        """Closes when no whole header has arrived since the last look, or no byte of an answer
        has left.
        """

        def connection_made(self, transport: Any) -> None:
            """Start to look."""
            if len(self.connections) >= most - 1:
                _end_oldest(self.connections)
            super().connection_made(transport)
            self.began = self.loop.time()
            self._seen: Any = None
            self._unread = 0
            self._look = self.loop.call_later(patience, self._check)

        def connection_lost(self, error: Exception | None) -> None:
            """Stop to look."""
            self._look.cancel()
            super().connection_lost(error)

        @property
        def silent(self) -> bool:
            """Whether no request has arrived that is not answered."""
            return bool(self.conn.their_state is h11.IDLE)

        def _check(self) -> None:
            unread = self.transport.get_write_buffer_size()
            if unread and unread == self._unread:
                _reset(self.transport)
                return
            if self.silent and not unread and self.cycle is self._seen:
                self.transport.write(LATE)
                self.transport.close()
                return
            self._seen, self._unread = self.cycle, unread
            self._look = self.loop.call_later(patience, self._check)

    return Connection


def _reset(transport: Any) -> None:
    """End a connection at once, without what the kernel still keeps for it."""
    at_once = struct.pack("ii", 1, 0)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    transport.abort()


def _end_oldest(connections: Iterable[Any]) -> None:
    """End the connection that has waited for a request for longest, if there is one."""
    silent = [one for one in connections if one.silent and not one.transport.is_closing()]
    if silent:
        min(silent, key=lambda one: one.began).transport.abort()
