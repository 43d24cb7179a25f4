"""Check a built site: nothing is loaded from elsewhere, and every link inside leads somewhere.

    python scripts/site_offline.py site

Prints what is wrong, one line each, and ends with exit code 1 if anything is.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "audio": "src", "embed": "src", "iframe": "src", "image": "href", "img": "src", "link": "href",
    "object": "data", "script": "src", "source": "src", "use": "href", "video": "src",
}  # fmt: skip
"""Elements that load something, and the attribute that says what."""
STYLED = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """What a page loads, where it leads, and the places in it that links can name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        found = dict(attrs)
        self.places |= {found[name] or "" for name in ("id", "name") if name in found}
        if tag in LOADED and (target := found.get(LOADED[tag]) or found.get("xlink:href")):
            if found.get("rel") not in ("canonical", "prev", "next"):
                self.loads.append(target)
        elif tag == "a" and (target := found.get("href")) is not None:
            self.leads.append(target)
        if (style := found.get("style")) is not None:
            self.loads += STYLED.findall(style)


def faults(site: Path) -> Iterator[str]:
    """Yield what is wrong with the site."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site)
        for target in page.loads:
            if urlsplit(target).scheme in ("http", "https") or target.startswith("//"):
                yield f"{where}: loads {target}"
        for target in [*page.leads, *page.loads]:
            if not leads_somewhere(target, path, pages):
                yield f"{where}: {target} leads nowhere"
    for path in sorted([*site.rglob("*.css"), *site.rglob("*.svg")]):
        for target in STYLED.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: loads {target}"


def leads_somewhere(target: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Whether a link leads to a file of the site, and to a place in it; others are not followed."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file():
        return False
    known = {found.resolve(): page for found, page in pages.items()}
    place = unquote(parts.fragment)
    return not place or there not in known or place in known[there].places


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if not (folder / "index.html").is_file():
        sys.exit(f"{folder}: there is no site; run make docs")
    wrong = list(faults(folder))
    print("\n".join(wrong) or f"{folder}: nothing from elsewhere, every link leads somewhere")
    sys.exit(1 if wrong else 0)
