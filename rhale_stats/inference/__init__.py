"""Code shared by all kinds of results: intervals, draws, tests, adjustments, reasons for blanks."""
