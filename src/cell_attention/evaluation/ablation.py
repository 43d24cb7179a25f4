"""Ablations: how much every part of the network contributes, paired fold by fold.

Deviation: the paper prints a difference ± a standard deviation. Here ± is the standard error of the
paired difference, which says whether it is noise.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cell_attention.errors import InputError
from cell_attention.evaluation.figures import picture
from cell_attention.evaluation.paired import Difference, difference
from cell_attention.evaluation.protocols import Outcome
from cell_attention.evaluation.published import ABLATION, printed_text
from cell_attention.evaluation.result import PROTOCOLS, Result
from cell_attention.evaluation.run_summary import markdown_table
from cell_attention.models.settings import Settings
from cell_attention.nn.config import NetworkConfig

FORMAT = 1
FULL = "full"

PAPER_ABLATIONS: dict[str, dict[str, Any]] = {
    "no pooling": {"pooling": "none", "pool_at": "every"},
    "no attention": {"attention": "none"},
    "no upper": {"attention": "lower"},
    "no lower": {"attention": "upper"},
    "no lift": {"lift": "none"},
    "uniform": {"attention": "uniform"},
}
"""The paper's ablations, and uniform weights, as changes of the network's configuration."""


def rank_ablations(network: NetworkConfig) -> dict[str, dict[str, Any]]:
    """Return the ablations of a network on every rank: one per rank, per neighbourhood, of the
    shared cell, of the weights, of what cells say, of the update, the readout and the counts;
    those that change nothing are left out.
    """
    heard = network.neighbourhoods
    ranks: dict[str, dict[str, Any]] = {
        "no nodes": {"ranks": tuple(rank for rank in network.ranks if rank != 0)},
        "no polygons": {"ranks": tuple(rank for rank in network.ranks if rank != 2)},
    }
    if len(network.ranks) == 3:  # else the same as one of these
        ranks["edges alone"] = {"ranks": (1,)}
    without = {
        f"no neighbourhood {name}": {"neighbourhoods": tuple(one for one in heard if one != name)}
        for name in heard
    }
    attention = tuple(name for name in heard if name in ("faces", "cofaces"))
    others: dict[str, dict[str, Any]] = {
        "no attention": {"neighbourhoods": attention},
        "no shared cell": {"shared_cell": False},
        "gates": {"weights": "gate"},
        "plain sums": {"weights": "sum"},
        "a voice for each neighbourhood": {"voices": "each"},
        "an MLP after each round": {"update": "mlp"},
        "means read out": {"readout": "mean"},
        "no counts": {"counts": 0},
        "no composition": {"composition": False},
    }
    found = {**ranks, **without, **others}
    return {name: changes for name, changes in found.items() if _changes(network, changes)}


def _changes(network: NetworkConfig, changes: dict[str, Any]) -> bool:
    """Whether at least one of these fields has another value."""
    return any(getattr(network, name) != value for name, value in changes.items())


@dataclass(frozen=True)
class Removed:
    """The network without one part."""

    name: str
    protocols: dict[str, tuple[Outcome, Difference] | None]
    """Its outcome, and the difference to the full network, for every protocol that was run."""
    printed: tuple[float, float] | None
    """The difference that the paper prints."""


@dataclass(frozen=True)
class Ablation:
    """The results of removing each part alone."""

    source: str
    score: str
    full: dict[str, Outcome | None]
    removed: tuple[Removed, ...]
    leaks: tuple[str, ...] = ()
    """Ways in which held-out graphs influenced the numbers."""

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table."""
        shown = [PROTOCOLS[name] for name in self._run()]
        return ("removed", *shown, "the paper prints") if self._printed else ("changed", *shown)

    @property
    def _printed(self) -> bool:
        return any(entry.printed is not None for entry in self.removed)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the numbers of the full network, then the change by every removal."""
        shown = [self.full[name] for name in self._run()]
        rows = [("nothing", *(o.text(self.score) if o else "" for o in shown), "")]
        for entry in self.removed:
            cells = [self._text(entry.protocols[name]) for name in self._run()]
            rows.append((entry.name, *cells, printed_text(entry.printed, "+")))
        return [row[: len(self.header)] for row in rows]

    def _text(self, entry: tuple[Outcome, Difference] | None) -> str:
        return "" if entry is None else f"{entry[1].text(self.score)} (p = {entry[1].p_value:.2f})"

    def _run(self) -> list[str]:
        """The protocols that were run."""
        return [name for name, outcome in self.full.items() if outcome is not None]

    @property
    def title(self) -> str:
        """What the numbers mean."""
        return (
            f"{self.source}, {self.score}: mean difference to the full network on the same folds "
            "± its paired standard error"
        )

    def record(self) -> dict[str, Any]:
        """Return the content of `ablation.json`."""
        return {"format": FORMAT, **asdict(self)}

    def as_markdown(self) -> str:
        """Return the table with its title and notes."""
        note = (
            "The first row is the full network itself, ± the population standard deviation over "
            "the folds. p: paired t-test, corrected for training sets that overlap."
        )
        if self._printed:
            note += " What the paper prints is ± a standard deviation."
        table = markdown_table(self.header, self.rows())
        leaks = [f"Note: {leak}." for leak in self.leaks]
        return "\n\n".join([f"{self.title}.", table, note, *leaks]) + "\n"


def variants(settings: Settings) -> dict[str, Settings]:
    """Return the full network and every ablation, by name; refuse one that changes nothing."""
    found, network = {FULL: settings}, settings.network
    paper = network.design == "paper"
    for name, changes in (PAPER_ABLATIONS if paper else rank_ablations(network)).items():
        if not _changes(network, changes):
            raise InputError(f"ablation {name!r} changes nothing: {changes} is set already")
        found[name] = replace(settings, network=replace(network, **changes))
    return found


def folder_of(name: str) -> str:
    """Return the name of a variant's run folder, inside the ablation's folder."""
    return name.replace(" ", "-")


def compare_variants(source: str, results: dict[str, Result], paper: bool) -> Ablation:
    """Compare the results of all variants with the full network.

    paper: whether it is the paper's design, whose printed ablations are shown beside ours.
    """
    full = results[FULL].protocols
    removed = [
        Removed(
            name,
            {key: _difference(result.protocols[key], full[key]) for key in PROTOCOLS},
            ABLATION.get(name, {}).get(source) if paper else None,
        )
        for name, result in results.items()
        if name != FULL
    ]
    return Ablation(source, results[FULL].score, full, tuple(removed), results[FULL].leaks)


def draw_ablation(path: Path, found: Ablation, protocol: str = "paper") -> None:
    """Draw every removal beside the paper's as an SVG file; same results, same bytes."""
    pairs = [entry.protocols[protocol] for entry in found.removed]
    ours = [pair and (pair[1].mean, pair[1].standard_error) for pair in pairs]
    title = f"{found.source}: what is lost without a part, by {PROTOCOLS[protocol]}"
    with picture(path, title) as axes:
        _bars(axes, ours, shift=-0.2, colour="#1f4e79", label="here, ± paired standard error")
        printed = [entry.printed for entry in found.removed]
        if any(printed):
            _bars(
                axes,
                printed,
                shift=0.2,
                colour="#c9a227",
                label="printed in the paper, ± standard deviation",
            )
        axes.axhline(0.0, color="#444444", linewidth=0.8)
        names = [entry.name for entry in found.removed]
        turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(names)), names, **(turned if len(names) > 7 else {}))
        axes.set_ylabel(f"change of {found.score}")
        axes.legend(fontsize=8, edgecolor="none", framealpha=0.8)


def _bars(
    axes: Any,
    values: Sequence[tuple[float, float] | None],
    *,
    shift: float,
    colour: str,
    label: str,
) -> None:
    there = [(place, value) for place, value in enumerate(values) if value is not None]
    axes.bar(
        [place + shift for place, _ in there], [value[0] for _, value in there], 0.38,
        yerr=[value[1] for _, value in there], color=colour, label=label, capsize=2,
        error_kw={"elinewidth": 0.8, "ecolor": "#555555"},
    )  # fmt: skip


def _difference(ours: Outcome | None, full: Outcome | None) -> tuple[Outcome, Difference] | None:
    if ours is None or full is None:
        return None
    return ours, difference(ours.folds, full.folds)
