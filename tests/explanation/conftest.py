"""The explanation that many tests read."""

from tests.explanation.explained import explained

__all__ = ["explained"]
