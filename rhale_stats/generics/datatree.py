"""Everything about an analysis in one tree that saves and loads."""

from __future__ import annotations

import xarray as xr

from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import software


@validated
def to_datatree(
    local: xr.Dataset | None = None, effect: xr.Dataset | None = None, **results: xr.Dataset
) -> xr.DataTree:
    """Collect local effects, effects and results made from them in one tree.

    Parameters
    ----------
    local, effect : Dataset, optional
        What `local_effects` and `rhale` returned, or the rows and the result of another method.
        They become the groups "local" and "effect" of the tree.
    **results : Dataset
        Any other results, each under its own name: replicates, tests, sizes, comparisons, truths.
        ArviZ looks for draws in the group "posterior": ``posterior=boot``.

    Returns
    -------
    DataTree
        ``tree["effect"].to_dataset()`` is the Dataset again; ``tree.to_netcdf(path)`` saves all and
        ``xarray.open_datatree(path)`` loads it.

    Raises
    ------
    TypeError
        An argument is not a Dataset.
    ValueError
        Nothing to collect.

    Notes
    -----
    ArviZ 1 takes the tree as it is, as in ``arviz.extract(tree)``. Earlier versions take
    ``arviz.InferenceData.from_datatree(tree)``, and all of them replicates alone, as in
    ``arviz.summary(boot)``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], X)
    >>> effect = rs.confint(rs.rhale(local))
    >>> tree = rs.to_datatree(local, effect, test=rs.wald_test(effect))
    >>> sorted(tree.children)
    ['effect', 'local', 'test']
    """
    named = {"local": local, "effect": effect}
    datasets = {name: dataset for name, dataset in named.items() if dataset is not None} | results
    for name, dataset in datasets.items():
        if not isinstance(dataset, xr.Dataset):
            raise TypeError(f"{name} must be a Dataset; got {type(dataset).__name__}.")
        if not dataset.variables:
            raise ValueError(f"{name} must hold a result; got an empty Dataset.")
    if not datasets:
        raise ValueError("Give at least one Dataset to collect; got none.")
    tree = xr.DataTree.from_dict({f"/{name}": dataset for name, dataset in datasets.items()})
    tree.attrs["software"] = software()
    return tree
