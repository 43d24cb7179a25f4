"""The command line: one module per command, and `main`, which turns errors into one line."""

from cell_attention.cli.interruption import main as main
