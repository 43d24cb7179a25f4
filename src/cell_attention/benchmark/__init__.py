"""Speed against peers and against what is possible: ratios measured in one run, one thread each."""
