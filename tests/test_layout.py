"""The tests mirror the modules: a module is tested in the file of its path."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "rhale_stats"
# What is not about one module, and why.
APART = {
    "test_claims.py": "what the pages on claims quote",
    "test_documents.py": "runs the pages",
    "test_imports.py": "which libraries are loaded when",
    "test_layout.py": "this file",
    "test_public.py": "what users rely on",
    "mutation/test_mutants.py": "small errors, put into any module",
    "fuzz/test_found.py": "what random calls found, in any module",
    "fuzz/test_fuzz.py": "random calls of all public functions",
    "properties/test_few_groups.py": "errors and tests by few groups, in any module",
    "properties/test_precision.py": "rounding, in any module",
    "properties/test_ties.py": "whole numbers and rounded values, in any module",
    "properties/test_properties.py": "what holds for all public functions",
    "studies/test_agreement.py": "studies beside the numbers of their papers",
    "studies/test_numbers.py": "what the pages of studies show, some of it again",
    "studies/test_studies.py": "all studies, quickly",
}


@pytest.mark.parametrize(
    "path", sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))
)
def test_every_file_of_tests_has_the_path_of_a_module(path):
    folder, name = (TESTS / path).relative_to(TESTS).parent, Path(path).name
    module = PACKAGE / folder / name.removeprefix("test_")
    assert (path in APART) != module.is_file(), f"tests/{path} is for {module}, or is apart"


def test_every_exception_is_there():
    assert all((TESTS / path).is_file() for path in APART)
