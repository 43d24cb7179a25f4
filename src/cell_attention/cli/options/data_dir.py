"""The flag --data-dir, which verbs with and without a SOURCE share."""

from pathlib import Path
from typing import Annotated

import tyro

DataDir = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")]
