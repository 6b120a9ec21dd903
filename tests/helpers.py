"""What tests of several modules use."""

from __future__ import annotations

import numpy as np

import rhale_stats as rs


def frozen(array, dtype=None):
    """A copy that nothing can change."""
    array = np.array(array, dtype=dtype)
    array.setflags(write=False)
    return array


def local_of(x, g, **options):
    """Local effects ``g`` of all columns of an array ``x``, the constant ones too."""
    x, g = np.asarray(x), np.asarray(g)
    options = {"features": list(range(x.shape[1]))} | options
    return rs.local_effects(None, x, jacobian=g, **options)


class Counting:
    """A model that remembers how many rows it was asked for, call by call."""

    def __init__(self, model):
        self.model, self.rows = model, []

    def __call__(self, X):
        self.rows.append(len(X))
        return self.model(X)


def labelled(ax, text):
    """The artist or container whose label begins with ``text``."""
    handles, labels = ax.get_legend_handles_labels()
    found = [
        handle for handle, label in zip(handles, labels, strict=True) if label.startswith(text)
    ]
    assert len(found) == 1, (text, labels)
    return found[0]
