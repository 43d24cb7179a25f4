"""Errors and warnings of this package; messages name the argument, the rule and the value."""

import re
import sys
import warnings

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    r"\ud800-\udfff]"
)
"""Control characters, those that turn the direction of a text, and bytes that are not UTF-8."""


def printable(text: str, form: str | None = None) -> str:
    """Write what a terminal would obey or could not encode as an escape: U+202E, byte FF of a name.

    form: of the escape, such as that of JSON.
    """

    def escaped(found: re.Match[str]) -> str:
        code = ord(found[0])
        if form is not None:
            return form.format(code)
        if 0xDC80 <= code <= 0xDCFF:  # Python's form of a byte in a file name that is not UTF-8
            return f"\\x{code - 0xDC00:02x}"
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _UNSEEN.sub(escaped, text)


def counted(count: int, one: str, many: str) -> str:
    """Return a number with its words, as in "1 molecule is" or "2,000 molecules are"."""
    return f"{count:,} {one if count == 1 else many}"


class CellAttentionError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(CellAttentionError, ValueError):
    """An argument or a graph that breaks a stated rule."""


class MoleculeError(InputError):
    """A text that is not a molecule; the message is only the reason."""


class LargeMoleculeError(MoleculeError):
    """A molecule beyond a limit on its size."""


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
