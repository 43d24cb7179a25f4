"""What mkdocs does beside rendering docs/: pages from notebooks and from the repository's root, and
a warning (an error, as the build is strict) for a public name without a word about it.
"""

import base64
import importlib
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file alone
from site_arguments import Arguments

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "docs" / "notebooks"
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Files of the root that are pages of the site, too."""
PUBLIC = (
    "cell_attention",
    "cell_attention.data",
    "cell_attention.explanation",
    "cell_attention.nn",
    "cell_attention.testing",
    "cell_attention.topology",
)
"""The modules whose names are public."""
IMAGES = {"image/svg+xml": "svg", "image/png": "png"}
FILE_NAME = re.compile(r"\[(?:docs/)?([\w/-]+\.md)\]\(((?:\.\./)?)([\w/-]+\.md)")
"""A link whose text is the name of a file: that name, the way up, and the page."""
SHIM = "https://unpkg.com/iframe-worker/shim"
LOG = logging.getLogger("mkdocs.hooks.site_pages")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that do not lie in docs/."""
    for name, page in PAGES.items():
        text = moved((ROOT / name).read_text(encoding="utf-8"))
        if page == "index.md":  # alone in its section: a menu would only take its place
            text = f"---\nhide: [navigation]\n---\n\n{text}"
        files.append(File.generated(config, page, content=text))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, pictures = notebook_page(path)
        files.append(File.generated(config, f"{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"pictures/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let a link that shows the name of a file show the title that the page has in the menu."""
    titles = dict(titled(config["nav"]))
    return FILE_NAME.sub(
        lambda found: f"[{titles.get(found[3], found[1])}]({found[2]}{found[3]}", markdown
    )


def titled(nav: Any) -> Iterator[tuple[str, str]]:
    """Yield every page of the menu with its title."""
    for entry in nav:
        for title, inside in entry.items():
            yield from [(inside, title)] if isinstance(inside, str) else titled(inside)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Name the box of the search for screen readers, and load the script that lets pages search
    without a server from the site itself.
    """
    output = output.replace('role="dialog"', 'role="dialog" aria-label="Search"')
    return output.replace(SHIM, get_relative_url("assets/iframe-worker.js", page.url))


def on_post_build(config: Any) -> None:
    """Warn of public names without a docstring or without an entry in the reference."""
    Path(config["site_dir"], "404.html").unlink()  # for servers: its links begin at their root
    for fault in faults(entries()):
        LOG.warning(fault)


def moved(text: str) -> str:
    """Let links of a file in the root lead to pages of the site."""
    text = re.sub(r"\]\(docs/notebooks/([\w-]+)\.ipynb", r"](\1.md", text)
    text = re.sub(r"\]\(docs/", "](", text)
    for name, page in PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text.replace("[CITATION.cff](CITATION.cff)", "`CITATION.cff`")


def moved_up(text: str) -> str:
    """Let links of a notebook lead from a page of the site, which lies one folder higher."""
    text = re.sub(r"\]\(([\w-]+\.csv)\)", r"](notebooks/\1)", text)
    return moved(text.replace("](../../", "](").replace("](../", "]("))


def notebook_page(path: Path) -> tuple[str, dict[str, str | bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, str | bytes] = {}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(moved_up(source))
            continue
        shell = source.startswith("%%bash\n")
        lines = [f"$ {line}" for line in source.splitlines()[1:]] if shell else [source]
        parts.append("\n".join(["```console" if shell else "```python", *lines, "```"]))
        for place, output in enumerate(cell["outputs"]):
            alt = cell["metadata"].get("alt", "")
            kind = next((kind for kind in IMAGES if kind in output.get("data", {})), None)
            if kind is None:
                parts.append("\n".join(["```text", printed(output), "```"]))
                continue
            name = f"{path.stem}-{number}-{place}.{IMAGES[kind]}"
            text = "".join(output["data"][kind])
            pictures[name] = text if kind == "image/svg+xml" else base64.b64decode(text)
            parts.append(f"![{alt}](pictures/{name})")
    parts.append(f"This page is the notebook `docs/notebooks/{path.name}`.")
    return "\n\n".join(parts) + "\n", pictures


def printed(output: dict[str, Any]) -> str:
    """Return what a cell printed or returned, as text."""
    text = output["text"] if "text" in output else output["data"]["text/plain"]
    return "".join(text).rstrip()


def entries() -> list[str]:
    """Return the names that the pages of the reference describe."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    texts = [page.read_text(encoding="utf-8") for page in pages]
    return re.findall(r"^::: ([\w.]+)$", "\n".join(texts), re.MULTILINE)


def faults(names: list[str]) -> Iterator[str]:
    """Yield what the reference is missing: an entry or a docstring of a public name."""
    package = griffe.load(
        "cell_attention", search_paths=[ROOT / "src"], extensions=griffe.load_extensions(Arguments)
    )
    described = {package[name.removeprefix("cell_attention.")].canonical_path for name in names}
    for module in PUBLIC:
        inside = package[module.removeprefix("cell_attention.")] if "." in module else package
        exported = getattr(importlib.import_module(module), "__all__", None)
        for name in exported or [name for name, found in inside.members.items() if is_own(found)]:
            found = inside[name].final_target if inside[name].is_alias else inside[name]
            if found.canonical_path not in described:
                yield f"{module}.{name} has no entry in docs/reference"
            yield from (f"{one} has no docstring" for one in undocumented(found))


def is_own(found: Any) -> bool:
    """Whether a name is public and was not imported."""
    return not found.is_alias and not found.name.startswith("_") and not found.is_module


def undocumented(found: Any) -> Iterator[str]:
    """Yield an object, and what belongs to it, where nothing is said about it.

    What `__init__` assigns is left out, as the parts of a network; the fields of records are not.
    """
    if not found.docstring:
        yield found.canonical_path
    for member in found.members.values() if found.is_class else ():
        assigned = member.is_attribute and "class-attribute" not in member.labels
        if is_own(member) and ("dataclass" in found.labels or not assigned):
            yield from undocumented(member)
