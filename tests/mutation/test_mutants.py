"""The errors that are put into code, and the list of those that change no result."""

from __future__ import annotations

from functools import cache

import pytest

from tests.mutation.equivalents import EQUIVALENT
from tests.mutation.mutants import PACKAGE, compiled, mutants_of

SOURCE = '''
"""A module."""
LIMIT = 3


@validated
def total(x: int = 1, *, deep: bool = True) -> Literal[2]:
    """Text 7."""
    assert x > 0
    if x >= 10:
        raise ValueError(f"x is {x + 1}")
    warn("more than", 3)
    for one, two in zip(x[1:], y, strict=True):
        x += np.minimum(one, -two)
    return np.where(x, np.sqrt(1.5), "a" + "b")


class Few:
    many = 5

    def half(self):
        return [n // 2 for n in self if n and one]
'''


def toy(folder):
    (folder / "toy.py").write_text(SOURCE, encoding="utf-8")
    return mutants_of("toy.py", folder)


def test_small_errors_but_none_in_what_is_for_readers(tmp_path):
    assert [(one.function, one.lines.start, one.text) for one in toy(tmp_path)] == [
        ("total", 10, "if x [>= → >] 10:"),
        ("total", 10, "if x [>= → <] 10:"),
        ("total", 10, "if x >= [10 → 11]:"),
        ("total", 13, "for one, two in zip(x[1:[ → -1]], y, strict=True):"),
        ("total", 13, "for one, two in zip(x[[1 → 0]:], y, strict=True):"),
        ("total", 14, "[x += np.minimum(one, -two) → pass]"),
        ("total", 14, "x [+= → -=] np.minimum(one, -two)"),
        ("total", 14, "x += [np.minimum → np.maximum](one, -two)"),
        ("total", 14, "x += np.minimum(one, [- → ]two)"),
        ("total", 15, "return np.where(x, [np.sqrt(1.5), 'a' + 'b' → 'a' + 'b', np.sqrt(1.5)])"),
        ("total", 15, "return np.where(x, [np.sqrt(1.5) → 1.5], 'a' + 'b')"),
        ("total", 15, "return np.where(x, np.sqrt([1.5 → 2.5]), 'a' + 'b')"),
        ("Few.half", 22, "return [n [// → *] 2 for n in self if n and one]"),
        ("Few.half", 22, "return [n // [2 → 3] for n in self if n and one]"),
        ("Few.half", 22, "…turn [n // 2 for n in self if n [and → or] one]"),
    ]


def test_the_code_of_a_mutant_has_one_error(tmp_path):
    def called(text):
        (mutant,) = (one for one in toy(tmp_path) if text in one.text)
        method = type(half)(compiled(mutant, tmp_path), {"one": True})
        return method((0, 8))

    def half(self): ...

    assert called("[// → *]") == [16]
    assert called("[2 → 3]") == [2]


known_mutants = cache(mutants_of)


@pytest.mark.parametrize(("path", "function"), EQUIVALENT)
def test_every_mutant_that_is_listed_exists_and_has_a_reason(path, function):
    assert (PACKAGE / path).is_file()
    texts = {one.text for one in known_mutants(path) if one.function == function}
    listed = EQUIVALENT[path, function]
    assert set(listed) <= texts
    assert all(listed.values())
