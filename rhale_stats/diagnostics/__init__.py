"""Checks of estimates: bias, jumps, scores against a truth, folds."""
