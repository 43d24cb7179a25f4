"""The command line: one module per verb, and `main`, which ends errors in one line and a code."""

from cell_attention.cli.entry import main as main
