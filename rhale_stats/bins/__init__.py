"""Where to cut each axis: one small class a rule."""
