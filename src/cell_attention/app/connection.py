"""HTTP connections whose first bytes must arrive in time: uvicorn alone would wait for ever."""

import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SAID = json.dumps({"error": "the request did not arrive in time"}).encode()
LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%s" % (len(SAID), SAID)
)


def connection_class(patience: float) -> Any:
    """Return uvicorn's connection with a time limit for the headers of every request."""

    class Connection(H11Protocol):  # type: ignore[misc]
        """Closes when no whole header has arrived since the last look."""

        def connection_made(self, transport: Any) -> None:
            """Start to look."""
            super().connection_made(transport)
            self._seen: Any = None
            self._look = self.loop.call_later(patience, self._check)

        def connection_lost(self, error: Exception | None) -> None:
            """Stop to look."""
            self._look.cancel()
            super().connection_lost(error)

        def _check(self) -> None:
            if self.conn.their_state is h11.IDLE and self.cycle is self._seen:
                self.transport.write(LATE)
                self.transport.close()
                return
            self._seen = self.cycle
            self._look = self.loop.call_later(patience, self._check)

    return Connection
