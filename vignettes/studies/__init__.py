"""Simulation studies: the claims of the documents on the method, computed again.

A study is a module with a function ``study(options)`` that returns a `Study`; an entry in
`STUDIES` makes it known. From a shell::

    python vignettes/studies --list
    python vignettes/studies NAME --quick

and from Python, where the results come as a Dataset over (scenario, replicate)::

    results = studies.run("NAME", studies.Options(quick=True), path="NAME-quick.nc")
"""

from pathlib import Path

from rhale_stats.schema import validation
from studies.runner import Options, Output, Scenario, Study, load, names, run

# They read what follows from the moments of a result, as the package itself does.
validation.INSIDE.append(str(Path(__file__).parent))

# Name -> module. Modules are imported when they are needed, because a study may be slow to import.
STUDIES: dict[str, str] = {
    "uncertainty": "studies.uncertainty",
    "trust": "studies.trust",
    "best-k": "studies.best_k",
    "variable-size": "studies.variable_size",
    "example-1": "studies.example_1",
    "running-example": "studies.running_example",
    "bin-splitting": "studies.bin_splitting",
    "california": "studies.california",
    "unbiasedness": "studies.unbiasedness",
    "density": "studies.density",
    "bins": "studies.bins",
    "penalty": "studies.penalty",
    "coverage": "studies.coverage",
    "weighting": "studies.weighting",
    "regions": "studies.regions",
    "regional-timing": "studies.regional_timing",
    "correlated": "studies.correlated",
    "pdp-ice": "studies.pdp_ice",
    "models": "studies.models",
    "validity": "studies.validity",
    "spread": "studies.spread",
    "accuracy": "studies.accuracy",
    "model-uncertainty": "studies.model_uncertainty",
    "model-tables": "studies.model_tables",
}

__all__ = ["STUDIES", "Options", "Output", "Scenario", "Study", "load", "names", "run"]
