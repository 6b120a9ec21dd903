"""Code shared by all kinds of results: draws, tests, adjustments, and reasons for blanks."""
