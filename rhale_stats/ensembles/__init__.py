"""Results of several models: refits, models of folds, draws, several learners (math [30], [81])."""
