"""The pages of the server: the report's table and picture below a box for molecules, and texts."""

import json
import mimetypes
from html import escape
from importlib.resources import files
from typing import Any

from cell_attention.app.limits import ServeLimits
from cell_attention.explanation.document import SCRIPTS, asset, document, filled

AT_ONCE = 20
"""Molecules that the page sends in one request, so that the first are soon there."""
EXAMPLES = (
    ("nitrobenzene", "O=[N+]([O-])c1ccccc1"),
    ("aspirin", "CC(=O)Oc1ccccc1C(=O)O"),
    ("caffeine", "Cn1cnc2c1c(=O)n(C)c(=O)n2C"),
    ("1-nitropyrene", "O=[N+]([O-])c1ccc2ccc3cccc4ccc1c2c34"),
)


def model_page(model: dict[str, Any], limits: ServeLimits) -> str:
    """Return the page of a model: a box, and the report's table and picture."""
    origin = f"trained on {model['trained_on']}" if model["trained_on"] else "a model"
    buttons = "".join(
        f'<button type="button" data-smiles="{escape(smiles)}">{escape(name)}</button> '
        for name, smiles in EXAMPLES
    )
    settings = {
        "columns": model["columns"], "rows": limits.rows, "at_once": min(AT_ONCE, limits.explained),
        "reads_molecules": model["reads_molecules"], "body": limits.body,
    }  # fmt: skip
    return document(
        title=f"cell-attention: {model['model']}",
        about=f"{origin}, predicts {_predicted(model)}",
        policy="", head=_STYLES, before=filled(_own("box.html"), {"examples": buttons}),
        data={**model["page"], "served": settings},
        scripts="".join(f'<script src="/assets/{name}"></script>\n' for name in _scripts()),
    )  # fmt: skip


def bare_page() -> str:
    """Return the page of a server without a model: how to make one."""
    return _page("cell-attention", _own("bare.html"))


def api_page(described: dict[str, Any], limits: ServeLimits) -> str:
    """Return the OpenAPI description as a page that needs no other server."""
    bounds = "".join(
        f"<tr><td>{escape(name)}</td><td class='number'>{value:g}</td></tr>"
        for name, value in vars(limits).items()
    )
    routes = "".join(
        _route(described["components"], f"{method.upper()} {path}", route)
        for path, methods in described["paths"].items()
        for method, route in methods.items()
    )
    return _page("API", filled(_own("api.html"), {"limits": bounds, "routes": routes}))


def _route(components: dict[str, Any], name: str, route: dict[str, Any]) -> str:
    """Return the section of one route: its request, its answer, its errors."""
    parts = [f"<h2><code>{escape(name)}</code></h2>"]
    parts.append(f"<p>{escape(route['summary'])}</p>")
    content = route.get("requestBody", {}).get("content", {})
    if content:
        kind = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
        schema = components["schemas"][kind]
        parts += [f"<h3>Request</h3>{_code(example)}" for example in schema.get("examples", [])]
        fields = ", ".join(f"<code>{escape(field)}</code>" for field in schema["properties"])
        parts.append(f"<p>Entries: {fields}.</p>")
    for code, answer in route["responses"].items():
        example = answer.get("content", {}).get("application/json", {}).get("example")
        if code == "200" and example is not None:
            parts.append(f"<h3>Answer</h3>{_code(example)}")
        elif code != "200":
            parts.append(f"<p><code>{code}</code> {escape(answer['description'])}</p>")
    return "<section>" + "".join(parts) + "</section>"


def _code(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, ensure_ascii=False))}</pre>"


def assets() -> dict[str, str]:
    """Return the files of the page by name: the report's script and style, and its own."""
    report = {name: asset(name) for name in (*SCRIPTS, "report.css")}
    return {**report, **{name: _own(name) for name in ("app.js", "app.css")}}


def kind_of(name: str) -> str:
    """Return the media type of a file."""
    return mimetypes.guess_type(name)[0] or "text/plain"


def _scripts() -> tuple[str, ...]:
    return (*SCRIPTS, "app.js")


_STYLES = (
    '<link rel="stylesheet" href="/assets/report.css">\n'
    '<link rel="stylesheet" href="/assets/app.css">'
)


def _page(title: str, body: str) -> str:
    parts = {"title": escape(title), "styles": _STYLES, "body": body}
    return filled(_own("page.html"), parts)


def _predicted(model: dict[str, Any]) -> str:
    names = ", ".join(name for name in model["targets"] if name)
    if model["task"] == "classes":
        labels = ", ".join(model["labels"])
        return f"{names or 'the class'} ({labels})"
    return names or "one value"


def _own(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
