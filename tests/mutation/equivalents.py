"""Mutants that no test can find, each with its reason: they compute the same."""

from __future__ import annotations

from tests.mutation.mutants import Mutant

# By module and function: the mutants as the table of survivors shows them.
EQUIVALENT: dict[tuple[str, str], dict[str, str]] = {}


def reason(mutant: Mutant) -> str | None:
    """Why a mutant computes the same, or None."""
    return EQUIVALENT.get((mutant.path, mutant.function), {}).get(mutant.text)
