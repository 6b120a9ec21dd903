"""Effects on the outcome: what is in the data, not only in a fitted model."""
