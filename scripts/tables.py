"""Write the tables of README.md and docs/ from what lies in results/.

A table stands between two comments, `<!-- results: NAME -->` and `<!-- end -->`; `make tables`
writes them anew, and a test fails where they differ from what this script would write.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, pstdev

from cell_attention.evaluation.archive import run_folder
from cell_attention.evaluation.comparison import as_markdown, compared
from cell_attention.evaluation.published import PAPER
from cell_attention.evaluation.result import PROTOCOLS
from cell_attention.evaluation.run_summary import RunSummary, markdown_table, summary
from cell_attention.models.registry import MODELS, PRESETS
from cell_attention.training.metrics import METRICS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
FILES = (
    "README.md",
    "docs/baselines.md",
    "docs/explain.md",
    "docs/molecules.md",
    "docs/results.md",
)
BLOCK = re.compile(r"<!-- results: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def runs() -> list[RunSummary]:
    """Finished cross-validations in results/, by model and then by set; fair ones apart."""
    found = [summary(file) for file in sorted(RESULTS.glob("*.json")) if is_plain(file)]
    rows, sources = (
        ["can", "can-no-composition", "can-no-counts", "can-paper", *MODELS],
        list(PRESETS),
    )
    return sorted(
        (one for one in found if one.result is not None),
        key=lambda one: (rows.index(one.settings.row), sources.index(one.settings.source)),
    )


def is_plain(file: Path) -> bool:
    """Whether this is one run, and neither the fair one of a set nor what a search led to."""
    return not file.stem.endswith(("-ablation", "-search", "-fair", "-searched"))


def protocols() -> str:
    """Cell attention by every protocol."""
    rows = []
    for one in runs():
        if one.settings.model != "can" or one.result is None:
            continue
        source, results = one.settings.source, [one.result]
        fair = RESULTS / f"{source}-fair.json"
        if (
            one.settings.row == "can-paper"
            and fair.is_file()
            and (honest := summary(fair).result) is not None
        ):
            results.append(honest)
        shown = []
        for name in PROTOCOLS:
            outcomes = [found.protocols[name] for found in results if found.protocols[name]]
            shown.append(outcomes[0].text("%") if outcomes and outcomes[0] else "not run")
        printed = "{} ± {}".format(*PAPER[source])
        epochs = str(one.settings.training.epochs)
        majority = f"{one.result.majority:.1f}"
        rows.append((one.settings.row, source, epochs, *shown, printed, majority))
    header = ("network", "set", "epochs", *PROTOCOLS.values(), "the paper prints", "largest class")
    return markdown_table(header, rows)


SHOWN = {
    "can": "ours, the default",
    "can-paper": "ours, the paper's design",
    "gin": "GIN",
    "cin": "CIN",
    "wl": "WL kernel",
}
"""The columns of the small table: rows of the large one, and their titles."""


def reached() -> dict[str, dict[str, tuple[float, float] | None]]:
    """Mean and deviation of every set by every model of the small table, None if it was not run."""
    found = {
        (one.settings.row, one.settings.source): one.result.protocols["paper"]
        for one in runs()
        if one.result is not None
    }
    rows: dict[str, dict[str, tuple[float, float] | None]] = {}
    for source, printed in PAPER.items():
        rows[source] = {}
        for row, title in SHOWN.items():
            outcome = found.get((row, source))
            rows[source][title] = (outcome.mean, outcome.std) if outcome else None
        rows[source]["the paper prints"] = printed
    return rows


def readme() -> str:
    """The default network beside its nearest rivals, and what the paper prints for its own."""
    rows = [
        (source, *(f"{cell[0]:.1f} ± {cell[1]:.1f}" if cell else "" for cell in cells.values()))
        for source, cells in reached().items()
    ]
    return markdown_table(("set", *SHOWN.values(), "the paper prints"), rows)


def comparison() -> str:
    """All models on all sets."""
    joined = compared(runs(), "paper")
    return "" if joined is None else as_markdown(joined)


def ablation(source: str) -> Callable[[], str]:
    """What an `ablate` wrote."""

    def table() -> str:
        with run_folder(RESULTS / f"{source}-ablation.json") as folder:
            return (folder / "ablation.md").read_text(encoding="utf-8").rstrip()

    return table


def searched() -> str:
    """The preset and what a search found, paired."""
    found = [summary(RESULTS / f"{name}.json") for name in ("MUTAG", "MUTAG-searched")]
    joined, other = compared(found, "paper"), compared(found, "per_fold_best")
    texts = [as_markdown(one, quoted=False) for one in (joined, other) if one is not None]
    return "\n\n".join(texts)


def molecules() -> str:
    """Files of molecules by scaffold, a network beside a random forest."""
    files = sorted((RESULTS / "molecules").glob("*.json"), key=lambda file: file.stem)
    joined = compared([summary(file) for file in files], "fair")
    return "" if joined is None else as_markdown(joined, quoted=False)


def holdouts() -> str:
    """What `scripts/holdouts.py` measured: models by their defaults on the same splits."""
    files = sorted((RESULTS / "holdouts").glob("*.json"))
    found = {tuple(file.stem.split("-", 2)): json.loads(file.read_text()) for file in files}
    groups = sorted({(name, split) for name, split, _ in found})
    models = [model for model in MODELS if any(key[2] == model for key in found)]
    titles, rows = [], []
    for name, split in groups:
        any_model = next(found[key] for key in found if key[:2] == (name, split))
        metric = next(iter(any_model.values()))["metric"]
        titles.append(f"{name}, {split}, {METRICS[metric].title}")
    for model in models:
        row = [model]
        for name, split in groups:
            jobs = list(found.get((name, split, model), {}).values())
            tests = [job["test"] for job in jobs]
            seconds = sum(job["seconds"] for job in jobs) / max(1, len(jobs))
            mean = f"{fmean(tests):.3f} ± {pstdev(tests):.3f}, {seconds:.0f} s" if tests else ""
            row.append(mean if len(tests) > 2 else "")
        rows.append(tuple(row))
    return markdown_table(("model", *titles), rows)


RANKINGS = {
    "ours": "importance",
    "gradient": "gradient × input",
    "attention": "attention received",
    "chance": "random edges",
}


def faithful(network: str) -> Callable[[], str]:
    """How faithful rankings are on the held-out graphs of MUTAG; p of t-tests against chance."""

    def table() -> str:
        path = RESULTS / "explanations" / f"MUTAG-{network}.json"
        measures = json.loads(path.read_text(encoding="utf-8"))["measures"]
        plus, minus, area = (measures[m] for m in ("fidelity_plus", "fidelity_minus", "area"))
        tested = {"ours": "p", "attention": "p_attention"}
        rows = [
            (
                title,
                f"{plus[name]:.3f}",
                f"{plus[tested[name]]:.1e}" if name in tested else "",
                f"{minus[name]:.3f}",
                f"{area[name]:.3f}",
            )
            for name, title in RANKINGS.items()
        ]
        header = (
            "edges ranked by",
            "fall without the best fifth",
            "p",
            "fall with it alone",
            "area",
        )
        return markdown_table(header, rows)

    return table


def planted() -> str:
    """How often the best polygon is the one that decides."""
    rows = []
    for path in sorted((RESULTS / "explanations").glob("planted-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        name = path.stem.removeprefix("planted-").replace("-", " ")
        accuracy, hits = found["accuracy"], found["top_polygon_is_planted"]
        rows.append((name, f"{accuracy:.1f} %", str(found["positives"]), f"{hits:.1f} %"))
    header = ("network", "test accuracy", "positives told right", "best polygon is the planted one")
    return markdown_table(header, rows)


TABLES: dict[str, Callable[[], str]] = {
    "README": readme,
    "protocols": protocols,
    "comparison": comparison,
    "ablation-MUTAG": ablation("MUTAG"),
    "ablation-PTC_MM": ablation("PTC_MM"),
    "ablation-NCI1": ablation("NCI1"),
    "ablation-PROTEINS": ablation("PROTEINS"),
    "searched": searched,
    "molecules": molecules,
    "holdouts": holdouts,
    "faithful-ranks": faithful("ranks"),
    "faithful-paper": faithful("paper"),
    "faithful-symmetric": faithful("symmetric"),
    "planted": planted,
}


def rendered(text: str) -> str:
    """A file's text with its tables as they should be."""
    return BLOCK.sub(lambda m: f"<!-- results: {m[1]} -->\n{TABLES[m[1]]()}\n<!-- end -->", text)


if __name__ == "__main__":
    import result_plots  # the pictures of the same numbers

    for name in FILES:
        path = ROOT / name
        path.write_text(rendered(path.read_text(encoding="utf-8")), encoding="utf-8")
    result_plots.main()
