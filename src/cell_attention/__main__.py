"""`python -m cell_attention`, the same as the command `cell-attention`."""

from cell_attention.cli import main

main()
