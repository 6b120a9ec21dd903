"""Simulation studies: what the documents claim of the method, computed again.

A study is a module with a function ``study(options)`` that returns a `Study`; an entry in
`STUDIES` makes it known. From a shell::

    rhale-stats study --list
    rhale-stats study NAME --quick

and from Python, where the results come as a Dataset over (scenario, replicate)::

    results = studies.run("NAME", studies.Options(quick=True), path="NAME-quick.nc")
"""

from rhale_stats.studies.runner import Options, Output, Scenario, Study, load, names, run

# Name -> module. Imported only when asked for: a study may be slow to import.
STUDIES: dict[str, str] = {}

__all__ = ["STUDIES", "Options", "Output", "Scenario", "Study", "load", "names", "run"]
