"""Average predictions, slopes and comparisons of levels of a fitted model."""
