"""The tests mirror the package: what a module does is tested in the file of the same path."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "rhale_stats"
# What is not about one module, and why.
APART = {
    "test_documents.py": "runs the pages",
    "test_imports.py": "which libraries are loaded when",
    "test_layout.py": "this file",
    "fuzz/test_found.py": "what random calls found, in any module",
    "fuzz/test_fuzz.py": "random calls of all public functions",
    "studies/test_agreement.py": "studies beside the numbers of their papers",
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
