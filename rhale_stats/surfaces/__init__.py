"""Second-order effects: the joint effect of two features beyond their main effects."""
