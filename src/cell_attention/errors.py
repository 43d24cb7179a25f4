"""Errors and warnings of this package; messages name the argument, the rule and the value."""

import sys
import warnings


class CellAttentionError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(CellAttentionError, ValueError):
    """An argument or a graph that breaks a stated rule."""


class EdgeError(InputError):
    """An entry of an edge list that breaks a rule."""

    def __init__(self, message: str, entry: int) -> None:
        super().__init__(message)
        self.entry = entry
        """Position of the entry in the list."""


class SelectionError(CellAttentionError, IndexError):
    """A complex, cell or rank that does not exist."""


class LimitError(CellAttentionError, RuntimeError):
    """A graph whose complex would be larger than the limits allow."""


class DataError(CellAttentionError, ValueError):
    """A file or data whose content is not valid."""


class SourceNotFoundError(CellAttentionError, FileNotFoundError):
    """A file, folder or data set that does not exist."""


class WorkError(CellAttentionError, RuntimeError):
    """Work that was requested correctly but could not be finished."""


class CellAttentionWarning(UserWarning):
    """Something was repaired or assumed, and the message says what."""


def warn(message: str) -> None:
    """Warn with the location of the first caller outside this package: the line the user wrote."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("cell_attention.", "contextlib")
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(message, CellAttentionWarning, stacklevel=level + 1)
