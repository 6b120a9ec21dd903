"""Rules that choose the edges of bins, one class for each rule."""
