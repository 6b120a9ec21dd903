"""Variables of results: their dimensions, long names and units."""
