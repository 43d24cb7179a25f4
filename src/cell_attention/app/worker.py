"""The process that holds the model: some jobs come at a time as JSON, an answer goes for each."""

import json
import logging
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cell_attention.app.limits import ServeLimits
from cell_attention.errors import CellAttentionError

STATUS = 3
"""Digits of the status before an answer."""
FINE, LARGE, BAD_INPUT, FAILED = 200, 413, 422, 500


def work(
    connection: Connection,
    *,
    folder: str,
    limits: ServeLimits,
    plugins: Sequence[tuple[str, str]],
) -> None:
    """Load the model, say what it is, and do jobs until the connection closes."""
    # Ctrl-C reaches all processes of the group; only the server handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("cell_attention").setLevel(logging.ERROR)
    try:
        status, said, model = _started(folder, plugins)
        connection.send_bytes(_packed(status, said))
        while model is not None:
            for status, said in _answers(model, json.loads(connection.recv_bytes()), limits):
                answer = _packed(status, said)
                if len(answer) > limits.answer:
                    answer = _packed(LARGE, {"error": "the answer is too large; send fewer rows"})
                connection.send_bytes(answer)
    except (EOFError, OSError):
        return  # the server has ended


def _started(folder: str, plugins: Sequence[tuple[str, str]]) -> tuple[int, Any, Any]:
    """Return the status, the description of the model, and the model; None if there is none."""
    from cell_attention.app.jobs import describe
    from cell_attention.inference.model_folder import load_model
    from cell_attention.plugins import load_same
    from cell_attention.training.threads import settle_process

    settle_process()
    try:
        load_same(plugins, ())
        model = load_model(folder)
        return FINE, describe(model, Path(folder).absolute().name), model
    except (CellAttentionError, OSError) as error:
        return BAD_INPUT, _fault(error), None


def _answers(model: Any, jobs: list[dict[str, Any]], limits: ServeLimits) -> list[tuple[int, Any]]:
    """Do some jobs: together if there are several, or alone if that fails."""
    from cell_attention.app.jobs import perform_together

    if len(jobs) > 1:
        # A fault of one must not reach the others: then each is done by itself.
        with suppress(Exception):
            return [*perform_together(model, jobs, limits)]
    return [_done(model, job, limits) for job in jobs]


def _done(model: Any, job: dict[str, Any], limits: ServeLimits) -> tuple[int, Any]:
    from cell_attention.app.jobs import perform

    try:
        return perform(model, job, limits)
    except CellAttentionError as error:
        return BAD_INPUT, _fault(error)
    except MemoryError:
        return FAILED, {"error": "out of memory; send fewer or smaller molecules"}
    except Exception as error:  # a fault of this program: the client learns its kind, not the code
        return FAILED, {"error": f"this request failed ({type(error).__name__})"}


def _fault(error: Exception) -> dict[str, str]:
    return {"error": " ".join(str(error).split())}


def _packed(status: int, answer: Any) -> bytes:
    """Return an answer as bytes that the server passes on unread: its status, then ASCII JSON."""
    text = json.dumps(answer, separators=(",", ":"), allow_nan=False)
    return f"{status}{text}".encode("ascii")
