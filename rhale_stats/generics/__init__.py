"""Functions that take any kind of result and call the package of that kind."""
