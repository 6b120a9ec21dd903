"""Regional effects: regions in which an effect is less heterogeneous (math [37] to [39])."""
