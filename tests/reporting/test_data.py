"""Files inside a report."""

import json
from urllib.parse import unquote

import numpy as np
import pytest

from rhale_stats.printing.text import plain
from rhale_stats.reporting.page import csv_link, csv_text, file_name, guarded, json_link


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\tx", "\rx", "  =1"])
def test_texts_that_would_be_formulas_get_an_apostrophe(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("value", ["a=1", "", -1.5, True, None])
def test_other_values_stay(value):
    assert guarded(value) == value


def test_tables_are_csv():
    text = csv_text(["a", "b,c"], [["x\ny", 1.5], ['"', np.nan]])
    assert text == 'a,"b,c"\n"x\ny",1.5\n"""",\n'


def test_links_hold_their_files():
    link = csv_link("a b/ü", ["é"], [["#&%"], [1.0]])
    assert link.name == "a_b.csv"
    assert unquote(link.href.split(",", 1)[1]) == "\ufeffé\n#&%\n1.0\n"
    assert not set(' <>"#\n') & set(link.href.split(",", 1)[1])
    found = json_link("r", {"a": np.array([1.0, np.nan]), "b": (np.int64(2), "x"), "c": {1: None}})
    assert json.loads(unquote(found.href.split(",", 1)[1])) == {
        "a": [1.0, None],
        "b": [2, "x"],
        "c": {"1": None},
    }
    assert (found.form, found.size) == ("JSON", "1 kB")


def test_names_of_files():
    assert file_name("../../etc/passwd", "csv") == "etc_passwd.csv"
    assert file_name("\u4e2d", "csv") == "data.csv"
    assert len(file_name("x" * 500, "csv")) < 70


def test_other_objects_are_text():
    assert plain(np.datetime64("2020-01-01")) == "2020-01-01"
