"""Reports: what `explain` found, as one HTML file for readers who know no Python."""
