"""The command line: fit a generalised linear model, compute RHALE, print, save, draw."""
