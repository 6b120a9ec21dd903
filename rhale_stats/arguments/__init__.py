"""Checks of what a user passes, and the conventions of rows, randomness and progress."""
