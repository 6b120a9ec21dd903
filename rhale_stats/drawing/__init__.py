"""Pictures: each function takes a Dataset and Axes, and returns the Axes."""
