"""Printed summaries: the forms of their tables, and the notes below them."""

import csv
from io import StringIO
from xml.etree import ElementTree

import pytest
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_params

from rhale_stats.schema.notes import PrintedTable, Summary

LINES = [["1.5", "", "a_b, 50%"], ["-20", "x < 1", "c"]]
HEADS, STUBS = ["effect", "rule", 'a "long" name of a column'], ["age", "place & time"]
FULL = PrintedTable(LINES, HEADS, STUBS, "Title")
BARE = PrintedTable(LINES, widths=(1, 2, 3), aligns="lrl", separator=" | ")


@pytest.mark.parametrize("title", ["", "Title"])
def test_text_is_that_of_a_table_of_statsmodels(title):
    theirs = SimpleTable(LINES, HEADS, STUBS, title, txt_fmt=fmt_params | {"data_aligns": "r"})
    ours = PrintedTable(LINES, HEADS, STUBS, title)
    assert ours.as_text() == str(ours) == repr(ours) == theirs.as_text()
    assert ours.width == len(theirs.as_text().splitlines()[-1])


def test_columns_have_their_widths_and_alignments():
    assert BARE.as_text().splitlines() == [
        "=" * 22,
        "1.5 |       | a_b, 50%",
        "-20 | x < 1 | c       ",
        "=" * 22,
    ]


def test_a_name_without_a_line_has_none():
    table = PrintedTable([], HEADS, ["age"])
    assert table.rows == [["", *HEADS]]
    assert "effect" in table.as_latex()


def test_html_holds_the_texts():
    html = ElementTree.fromstring(FULL._repr_html_())
    assert html.findtext("caption") == "Title"
    assert [[cell.text or "" for cell in row] for row in html.iter("tr")] == FULL.rows
    assert [[cell.tag for cell in row] for row in html.iter("tr")] == [
        ["th"] * 4,
        *[["th", "td", "td", "td"]] * 2,
    ]


@pytest.mark.parametrize(("table", "columns"), [(FULL, "lrrr"), (BARE, "lrl")])
def test_latex_is_escaped(table, columns):
    latex = table.as_latex()
    assert rf"\begin{{tabular}}{{{columns}}}" in latex
    assert r"a\_b, 50\%" in latex
    assert (r"\caption{Title}" in latex) == (table is FULL)


def test_csv_is_read_back():
    assert [*csv.reader(StringIO(FULL.as_csv()))] == [["Title"], *FULL.rows]


def test_a_summary_joins_tables_and_counts_notes():
    summary = Summary(
        [FULL, PrintedTable(LINES, HEADS, STUBS)], [f"note {n}" for n in range(7)], ("Words",)
    )
    text = str(summary)
    assert text.count("=" * FULL.width) == 3
    assert text.endswith("[5] note 4\n2 more notes: see summary(...).notes")
    assert "\n\nWords\nNotes:\n[1] note 0" in text
    assert "<br/>[1] note 0<br/>" in summary._repr_html_()
    assert summary.as_latex().count(r"\begin{tabular}") == 2
    assert summary.as_csv().count("age") == 2
    # The notes come with the tables in every form.
    assert "[2] note 1 \\newline" in summary.as_latex()
    assert "\n[2] note 1\n" in summary.as_csv()
