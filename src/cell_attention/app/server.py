"""The server: it listens on this machine alone unless told otherwise, until Ctrl-C."""

import asyncio
import ipaddress
import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cell_attention.app.limits import ServeLimits
from cell_attention.errors import DataError, InputError

HEADER_BYTES = 32_768
CONNECTIONS = 500
GRACE_SECONDS = 3


def serve(
    model: Path | None,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    workers: int = 1,
    hosts: Sequence[str] = (),
    limits: ServeLimits | None = None,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve a page and an API for one model until the process is interrupted.

    model: a MODEL_DIR; without one the page says how to make it. hosts: further names by which
        this machine is called. announce: called with the address as soon as it answers.
    """
    require_installed()
    if not 0 <= port < 2**16:
        raise InputError(f"port must lie in 0…65535, got {port}")
    if workers < 1:
        raise InputError(f"workers must be at least 1, got {workers}")
    from cell_attention.app.application import Served, application
    from cell_attention.app.guard import LOCAL, Guard
    from cell_attention.app.pool import Pool

    bounds = limits or ServeLimits()
    listening = listen(host, port)
    pool = None if model is None else Pool(model, bounds, workers)
    with listening:
        try:
            served = Served(bounds)
            if pool is not None:
                started = pool.start()
                about = json.loads(started.body)
                if "error" in about:
                    raise DataError(about["error"])
                served = Served(bounds, pool, about)
            names = {*LOCAL, *hosts, *(() if is_local(host) else (host, socket.gethostname()))}
            app = application(served)
            posts = (route.path for route in app.routes if "POST" in route.methods)
            guard = Guard(app, names, bounds, posts=posts)
            _run(guard, listening, pool, announce=lambda: announce(_url(host, listening)))
        finally:
            if pool is not None:
                pool.end()


def require_installed() -> None:
    """Refuse to go on without FastAPI and uvicorn."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(f"serve needs {error.name}: pip install 'cell-attention[serve]'") from None


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Open the port; 0 takes any free one."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind)
    except OSError as error:
        raise InputError(f"host {host!r} is not an address of this machine ({error})") from None
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise InputError(f"port {port} of {host} cannot be used: {error.strerror}") from None
    return opened


def _url(host: str, listening: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/"


def _run(guard: Any, listening: socket.socket, pool: Any, *, announce: Callable[[], None]) -> None:
    """Answer requests until the process is interrupted."""
    import uvicorn

    from cell_attention.app.connection import connection_class

    config = uvicorn.Config(
        guard, http=connection_class(guard.limits.patience, CONNECTIONS), loop="asyncio", ws="none",
        log_level="error", access_log=False, server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS, h11_max_incomplete_event_size=HEADER_BYTES,
        limit_concurrency=CONNECTIONS,
    )  # fmt: skip
    server = uvicorn.Server(config)
    leave, begin = server.handle_exit, server.startup

    def stop(number: int, frame: Any) -> None:
        """End the work, so that every request that is open is answered at once."""
        guard.stop()
        if pool is not None:
            pool.end()
        leave(number, frame)

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await begin(sockets=sockets)
        announce()

    server.handle_exit, server.startup = stop, startup
    asyncio.run(server.serve(sockets=[listening]))
