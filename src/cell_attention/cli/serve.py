"""`cell-attention serve`: a local page and an API for a trained model."""

import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from cell_attention.app.limits import ServeLimits
from cell_attention.cli import console


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Serve a local page that predicts molecules as you type them and shows what the predictions
    rest on, and an API for programs; until Ctrl-C.
    """

    model: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL_DIR")] = None
    """The folder of a trained model; without it the page says how to make one."""
    port: int = 8765
    """The port to listen on; 0 is any free one."""
    host: str = "127.0.0.1"
    """The address to listen on; by default only this machine can reach it."""
    allow_host: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Further names by which browsers may call this server, if `--host` is not local."""
    workers: int = 1
    """Number of processes that predict at the same time; each holds the model."""
    open: bool = False
    """Open the page in a browser."""
    limits: ServeLimits = field(default_factory=ServeLimits)
    """Limits of one request."""

    def run(self) -> None:
        """Serve until interrupted."""
        from cell_attention.app.server import is_local, require_installed, serve

        require_installed()
        if not is_local(self.host):
            console.note(
                f"--host {self.host} lets other machines use this server; it has no passwords and "
                "no encryption"
            )
        if self.model is not None:
            console.note(f"loading {self.model}")
        serve(
            self.model, host=self.host, port=self.port, workers=self.workers,
            hosts=self.allow_host, limits=self.limits, announce=self._announce,
        )  # fmt: skip

    def _announce(self, url: str) -> None:
        what = self.model or "a page without a model"
        print(f"Serving {what} at {url} (Ctrl-C ends it)", flush=True)
        if self.open:
            webbrowser.open(url)
