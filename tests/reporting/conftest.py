"""The explanation that many tests read."""

from tests.explanation.explained import explained, explained_many

__all__ = ["explained", "explained_many"]
