"""Simulation studies: the claims of the documents on the method, computed again.

A study is a module with a function ``study(options)`` that returns a `Study`; an entry in
`STUDIES` makes it known. From a shell::

    rhale-stats study --list
    rhale-stats study NAME --quick

and from Python, where the results come as a Dataset over (scenario, replicate)::

    results = studies.run("NAME", studies.Options(quick=True), path="NAME-quick.nc")
"""

from rhale_stats.studies.runner import Options, Output, Scenario, Study, load, names, run

# Name -> module. Modules are imported when they are needed, because a study may be slow to import.
STUDIES: dict[str, str] = {
    "uncertainty": "rhale_stats.studies.uncertainty",
    "trust": "rhale_stats.studies.trust",
    "best-k": "rhale_stats.studies.best_k",
    "variable-size": "rhale_stats.studies.variable_size",
    "example-1": "rhale_stats.studies.example_1",
    "running-example": "rhale_stats.studies.running_example",
    "bin-splitting": "rhale_stats.studies.bin_splitting",
    "california": "rhale_stats.studies.california",
    "unbiasedness": "rhale_stats.studies.unbiasedness",
    "density": "rhale_stats.studies.density",
    "bins": "rhale_stats.studies.bins",
    "penalty": "rhale_stats.studies.penalty",
    "coverage": "rhale_stats.studies.coverage",
    "weighting": "rhale_stats.studies.weighting",
    "regions": "rhale_stats.studies.regions",
    "regional-timing": "rhale_stats.studies.regional_timing",
    "correlated": "rhale_stats.studies.correlated",
    "pdp-ice": "rhale_stats.studies.pdp_ice",
    "models": "rhale_stats.studies.models",
    "validity": "rhale_stats.studies.validity",
    "spread": "rhale_stats.studies.spread",
    "model-uncertainty": "rhale_stats.studies.model_uncertainty",
    "model-tables": "rhale_stats.studies.model_tables",
}

__all__ = ["STUDIES", "Options", "Output", "Scenario", "Study", "load", "names", "run"]
