"""Effects in bins: RHALE and ALE, their errors, intervals, tests, sizes and tables."""
