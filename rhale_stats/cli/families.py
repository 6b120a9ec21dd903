"""Families of generalised linear models, by the names of the command line."""

# Name -> class in `statsmodels.api.families`, which is loaded with the first fit.
FAMILIES = {
    "gaussian": "Gaussian",
    "binomial": "Binomial",
    "poisson": "Poisson",
    "gamma": "Gamma",
    "inverse-gaussian": "InverseGaussian",
    "negative-binomial": "NegativeBinomial",
    "tweedie": "Tweedie",
}
DEFAULT_FAMILY = "gaussian"
