"""Files are small, and the tests mirror them: a module is tested in the file of its path."""

import ast
import statistics
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


# --- sizes ----------------------------------------------------------------------------------------

MOST_LINES, MOST_LINES_OF_HALF, MOST_LINES_OF_A_BODY, MOST_AT_THE_TOP = 450, 200, 80, 9
LABELLED = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] not in ("arrays", "cli", "studies")
)


def lines_of(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_of_the_labelled_part_is_long():
    assert not [str(path) for path in LABELLED if lines_of(path) > MOST_LINES]


def test_half_of_these_files_are_short():
    assert statistics.median(map(lines_of, LABELLED)) < MOST_LINES_OF_HALF


def lines_of_body(function):
    """Lines of a function without its signature and docstring."""
    body = function.body[ast.get_docstring(function) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_no_function_has_a_long_body():
    long = {
        f"{path.relative_to(PACKAGE)}: {node.name}": lines_of_body(node)
        for path in LABELLED
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and lines_of_body(node) > MOST_LINES_OF_A_BODY
    }
    assert not long


def test_few_modules_are_beside_the_packages():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_AT_THE_TOP
