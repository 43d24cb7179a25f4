"""The HTML of the report, with its style and script: as one file, or as parts that a server sends.

Imports no torch: the server of the local page needs none.
"""

import json
from html import escape
from importlib.resources import files
from typing import Any

SCRIPTS = ("data.js", "draw.js", "table.js", "detail.js", "totals.js", "main.js")
POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
    "'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">"
)
"""What a page that holds its own style and script may do: nothing but show itself."""


def document(
    *,
    title: str,
    about: str,
    policy: str,
    head: str,
    data: dict[str, Any],
    scripts: str,
    before: str = "",
) -> str:
    """Return the page; title and about are text, the other parts HTML.

    data: what the script draws. before: what stands above the table.
    """
    # No text of the source may end the script element: every "<" is escaped.
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    parts = {
        "title": escape(title),
        "about": escape(about),
        "policy": policy,
        "head": head,
        "before": before,
        "scripts": scripts,
        "data": packed.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),  # noqa: E501
    }  # fmt: skip
    return filled(asset("report.html"), parts)


def filled(template: str, parts: dict[str, str]) -> str:
    """Replace every {{name}} of a template by the part of this name."""
    first, *rest = template.split("{{")
    return first + "".join(
        parts[name] + text for name, _, text in (piece.partition("}}") for piece in rest)
    )


def asset(name: str) -> str:
    """Return a file of the report's assets."""
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
