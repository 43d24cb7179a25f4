"""How the rows of a large source are computed and written; imports nothing that is slow."""

from dataclasses import dataclass
from typing import Literal

from cell_attention.arguments import require, require_choice

ShardFormat = Literal["csv", "parquet"]
AT_ONCE = 512
"""Rows that are computed together, so that memory does not grow with the source."""
MOST_ROWS = 10**9


@dataclass(frozen=True)
class ShardOptions:
    """A folder of shards, which is what an `out` without the ending of a file names."""

    format: ShardFormat = "csv"
    """The kind of file: .csv, or .parquet with predictions as numbers (needs pyarrow)."""
    rows_per_shard: int = 65_536
    """Rows of the source in a shard, rounded up to a multiple of 512, the rows of a batch."""
    fresh: bool = False
    """Delete the shards that are in the folder and start over."""

    def __post_init__(self) -> None:
        require_choice("format", self.format, ShardFormat)
        rows = self.rows_per_shard
        whole = type(rows) is int and 1 <= rows <= MOST_ROWS
        require("rows_per_shard", whole, f"lie in 1…{MOST_ROWS:,}", rows)
        object.__setattr__(self, "rows_per_shard", -(-rows // AT_ONCE) * AT_ONCE)
