"""Functions for any kind of result; the wing of that kind does the work."""
