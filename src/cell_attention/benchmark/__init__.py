"""Benchmarks against peers and lower bounds: ratios measured in one run, on one thread."""
