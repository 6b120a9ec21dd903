"""Pictures by their names: ``rs.plots.forest(boot)``; `rhale_stats.plot` chooses one by the result.

Each takes a result first, draws into ``ax=`` or a new figure, and returns the Axes.
"""

from importlib import import_module

# The modules of `drawing` that draw them.
_MODULES = {
    **{name: name for name in ("bins", "effects", "profile", "tree")},
    **dict.fromkeys(("compare", "forest", "outcome", "summary"), "estimates"),
    **dict.fromkeys(("h_statistics", "interactions", "surface"), "heat_maps"),
    "bias": "bins",
    "curves": "facets",
    "edges": "bins",
    "effect": "effects",
    "methods": "profile",
    "outputs": "effects",
    "regions": "tree",
    "scores": "bins",
}
__all__ = sorted(_MODULES)  # listed in plots.pyi


def __getattr__(name: str) -> object:
    """A picture, imported when it is first used, or an error that says what to type."""
    if name in _MODULES:
        module = import_module(f"rhale_stats.drawing.{_MODULES[name]}")
        globals()[name] = getattr(module, f"plot_{name}")
        return globals()[name]
    if name.startswith("__"):
        raise AttributeError(name)
    from rhale_stats.arguments.peers import other_name

    advice = other_name(name.removeprefix("plot_"), __all__)
    raise AttributeError(f"rhale_stats.plots has no {name!r}. {advice}".rstrip())


def __dir__() -> list[str]:
    return __all__
