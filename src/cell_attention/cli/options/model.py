"""The flag for a model of the registry, including models of your own."""

from typing import Annotated

import tyro

from cell_attention.models.registry import MODELS


def _known(default: str) -> str:
    return f"(default: {default}; known: {', '.join(MODELS)})"


ModelName = Annotated[str, tyro.conf.arg(metavar="NAME", help_behavior_hint=_known)]
