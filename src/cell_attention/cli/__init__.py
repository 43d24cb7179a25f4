"""The command line: one module per command, and `main`, which turns errors into one line."""

from cell_attention.cli.entry import main as main
