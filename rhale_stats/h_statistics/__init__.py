"""How much of a model's output is interaction: Friedman and Popescu's H² (math [60] to [62])."""
