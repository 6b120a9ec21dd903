"""Everything that calls a model, and what is known of its table and outputs."""
