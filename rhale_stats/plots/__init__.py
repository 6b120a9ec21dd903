"""Pictures: a Dataset and Axes in, Axes out."""
