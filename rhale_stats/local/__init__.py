"""Local effects: derivatives or differences of the output at the rows."""
