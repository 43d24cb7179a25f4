"""Download of a TU set into the user's cache, bounded in time and size."""

import difflib
import os
import tempfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from cell_attention._files import replacing
from cell_attention.data.dataset import Progress
from cell_attention.errors import SourceNotFoundError, warn

SECONDS = 600.0
"""A download that takes longer is given up."""
SILENCE = 30.0
"""So is one that receives nothing for so long."""
LARGEST = 1 << 30
"""So is one of more bytes."""


def cache_folder() -> Path:
    """Where downloads are kept: $XDG_CACHE_HOME/cell-attention, by default under ~/.cache."""
    stated = os.environ.get("XDG_CACHE_HOME")
    try:
        base = Path(stated) if stated else Path.home() / ".cache"
    except RuntimeError:  # a user without a home folder, as in some containers
        base = Path(tempfile.gettempdir())
    return base / "cell-attention"


def download(name: str, known: Iterable[str], progress: Progress | None = None) -> Path:
    """Download a set into the cache, from the same address as PyG.

    known: names that need no download, for a hint.
    """
    import http.client
    import urllib.request

    from torch_geometric.datasets import TUDataset

    target, address = cache_folder() / f"{name}.zip", f"{TUDataset.url}/{name}.zip"
    warn(f"{name} is not on this machine: downloading {address}, at most {SECONDS:.0f} seconds")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as unfinished:
            with (
                urllib.request.urlopen(address, timeout=SILENCE) as answer,  # noqa: S310 - PyG's own https address
                unfinished.open("wb") as file,
            ):
                _copy(answer, file, progress)
            if not zipfile.is_zipfile(unfinished):
                raise OSError("the downloaded file is not a zip file")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise SourceNotFoundError(_advice(name, known, reason)) from None
    return target


def _copy(answer: IO[bytes], file: IO[bytes], progress: Progress | None) -> None:
    """Copy an answer piece by piece, as long as the limits allow."""
    began, size = time.monotonic(), 0
    stated = getattr(answer, "headers", None) or {}
    total = int(length) if (length := stated.get("Content-Length", "")).isdigit() else 0
    take = getattr(answer, "read1", answer.read)  # returns what has arrived
    while piece := take(1 << 16):
        size += len(piece)
        if time.monotonic() - began > SECONDS:
            raise TimeoutError(f"not complete after {SECONDS:.0f} seconds, at {size:,} bytes")
        if size > LARGEST:
            raise OSError(f"more than {LARGEST:,} bytes")
        file.write(piece)
        if progress is not None and total:
            progress(min(size, total), total)


def _advice(name: str, known: Iterable[str], reason: object) -> str:
    by_lower = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    hint = f" Did you mean {by_lower[close[0]]}?" if close else ""
    return (
        f"no data set {name!r}: not among {', '.join(sorted(known))}, no folder of that name, "
        f"and the download failed ({reason}).{hint} "
        f"Put its files into FOLDER/{name}/raw and pass data_dir=FOLDER"
    )
