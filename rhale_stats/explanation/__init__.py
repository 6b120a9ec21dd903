"""One call that answers first: effects, rows, splits, checks and outcomes in one tree."""
