"""Rebuild src/cell_attention/data/tu/MUTAG.zip from the files in the `grakel` wheel.

    pip download --no-deps grakel
    python scripts/bundle_mutag.py grakel-*.whl

The same wheel gives the same bytes.
"""

import sys
import zipfile
from pathlib import Path

INSIDE = "grakel/tests/data/MUTAG/"
BUNDLE = Path(__file__).parents[1] / "src/cell_attention/data/tu/MUTAG.zip"


def main(wheel: str) -> None:
    """Copy every file of the set, with fixed dates so that the archive is reproducible."""
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(BUNDLE, "w") as bundle:
        for name in sorted(name for name in source.namelist() if name.startswith(INSIDE)):
            if name.startswith(f"{INSIDE}MUTAG_"):
                entry = zipfile.ZipInfo(f"MUTAG/{name.removeprefix(INSIDE)}", (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                bundle.writestr(entry, source.read(name), compresslevel=9)


if __name__ == "__main__":
    main(sys.argv[1])
