"""Rows with an interaction, and models of them, for commands on any model."""

from __future__ import annotations

import re

import joblib
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from sklearn.linear_model import LinearRegression

from rhale_stats.cli.main import main

RNG = np.random.default_rng(0)
ROWS = 400
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(20, 70, ROWS),
        "sex": RNG.choice(["f", "m"], ROWS),
        "time spent": RNG.normal(size=ROWS),
    }
)
SLOPE = np.where(FRAME["sex"] == "f", 0.5, -0.5)
Y = SLOPE * FRAME["age"] + FRAME["time spent"] ** 2
NUMBERS = ["age", "time spent"]


FORMULA = "y ~ age * sex + Q('time spent')"


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.csv"
    frame = FRAME.assign(y=Y, clinic=np.arange(ROWS) % 20, weight=1.0 + np.arange(ROWS) % 2)
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def linear(tmp_path):
    """A model that runs code as it is loaded: linear in age, a different slope by sex."""
    path = tmp_path / "model.joblib"
    joblib.dump(LinearRegression().fit(FRAME[NUMBERS], Y), path)
    return path


@pytest.fixture
def refused(capsys):
    """Check that a command ends before its work, with status 2 and one line."""

    def check(words, message):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
        error = capsys.readouterr().err
        assert status == 2
        assert re.fullmatch(f"rhale-stats: {message}.*\n", error), error

    return check


@pytest.fixture(scope="session")
def fitted(table):
    rows = pd.read_csv(table)[["age", "sex", "time spent", "y"]]
    rows.attrs["output_name"] = "y"
    return smf.glm(FORMULA, rows).fit(), rows
