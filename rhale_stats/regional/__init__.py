"""Regional effects: where an effect is less heterogeneous (math [37] to [39])."""
