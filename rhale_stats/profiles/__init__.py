"""Curves of one feature on a grid: partial dependence, ICE, M-plots, SHAP dependence."""
