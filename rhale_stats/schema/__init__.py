"""What results are: their kinds, variables, features, levels and parts, and checks of them."""
