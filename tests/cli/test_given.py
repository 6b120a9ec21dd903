"""Models and rows of commands: files of models, columns beside them, failures before the work."""

from __future__ import annotations

import json
import re

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from rhale_stats.cli import commands
from rhale_stats.cli.main import main
from tests.cli.conftest import FRAME, NUMBERS, Y


def _categories():
    return FRAME.assign(sex=FRAME["sex"].astype("category"))


def xgboost(path):
    library = pytest.importorskip("xgboost")
    model = library.XGBRegressor(n_estimators=5, enable_categorical=True).fit(_categories(), Y)
    model.save_model(path)
    return model.predict(_categories())


def lightgbm(path):
    library = pytest.importorskip("lightgbm")
    model = library.LGBMRegressor(n_estimators=5, verbose=-1).fit(_categories(), Y)
    model.booster_.save_model(path)
    return model.predict(_categories())


def catboost(path):
    library = pytest.importorskip("catboost")
    options = {"iterations": 5, "cat_features": ["sex"], "verbose": 0, "allow_writing_files": False}
    model = library.CatBoostClassifier(**options).fit(FRAME, Y > 0)
    model.save_model(str(path))
    return model.predict_proba(FRAME)[:, 1]


def onnx(path):
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    model = LinearRegression().fit(FRAME[NUMBERS].to_numpy(), Y)
    text = skl2onnx.to_onnx(model, FRAME[NUMBERS].to_numpy(np.float32)[:1], target_opset=18)
    path.write_bytes(text.SerializeToString())
    return model.predict(FRAME[NUMBERS].to_numpy())


SAFE = {".json": xgboost, ".ubj": xgboost, ".txt": lightgbm, ".cbm": catboost, ".onnx": onnx}
OF = pytest.mark.parametrize("suffix", SAFE)


@OF
def test_models_that_hold_no_code_need_no_trust(tmp_path, suffix, table):
    from rhale_stats.cli.parser import parser
    from rhale_stats.models.outputs import Outputs
    from rhale_stats.models.table import as_table

    path = tmp_path / f"model{suffix}"
    expected = SAFE[suffix](path)
    words = ["regions", str(table), "--model", str(path), "--feature", "age"]
    words += ["--columns", *NUMBERS] if suffix == ".onnx" else []
    arguments = parser().parse_args(words)
    arguments.features = [arguments.feature]
    given = commands.inputs_of(arguments)
    found = Outputs(given.model, as_table(given.X))(given.X)[:, -1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@OF
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_model_files_that_are_cut_off(tmp_path, capsys, suffix, share, table):
    path = tmp_path / f"model{suffix}"
    SAFE[suffix](path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert main(["regions", str(table), "--model", str(path), "--feature", "age"]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(rf"rhale-stats: --model must be a model that .*model{suffix}: .*\n", error)


class Evil:
    def __reduce__(self):
        return (exec, ("raise SystemError('code has run')",))


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle", ".pt", ".pth"])
def test_files_that_run_code_are_not_loaded_without_trust(tmp_path, capsys, suffix, table):
    path = tmp_path / f"model{suffix}"
    joblib.dump(Evil(), path)
    words = ["regions", str(table), "--model", str(path), "--feature", "age"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"rhale-stats: --model .* must come with --trust: loading .*\n", error)
    if suffix == ".joblib":
        assert main([*words, "--trust"]) == 2
        assert "SystemError: code has run" in capsys.readouterr().err


def test_a_whole_module_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 1)
    torch.save(module, tmp_path / "model.pt")
    kind = commands.format_of(tmp_path / "model.pt", trust=True)
    found = commands.load_model(tmp_path / "model.pt", kind)
    assert torch.equal(found.weight, module.weight)
    torch.save(module.state_dict(), tmp_path / "state.pt")
    with pytest.raises(commands.UsageError, match=r"it holds a .*Dict; save the whole module"):
        commands.load_model(tmp_path / "state.pt", kind)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(b"")
    monkeypatch.setattr(commands, "find_spec", lambda name: None)
    with pytest.raises(commands.UsageError, match=r"needs onnxruntime.*pip install onnxruntime"):
        commands.format_of(tmp_path / "model.onnx", trust=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give either --model FILE or --formula .* got none"),
        (["--model", "MODEL", "--formula", "y ~ age"], "Give either --model FILE .* got both"),
        (["--model", "no.joblib"], "--model must be an existing file; there is no no.joblib"),
        (
            ["--model", __file__],
            "--model must be a file whose suffix is known, .onnx .ONNX.",
        ),
        (["--model", "MODEL", "--family", "poisson"], "--family must come with --formula"),
        (["--model", "MODEL", "--outcome", "z"], "--outcome must be a column of .*; got z. It has"),
        (["--model", "MODEL", "--groups", "z"], "--groups must be a column of .*; got z. It has"),
        (["--model", "MODEL", "--groups", "age"], "--groups must name a column that several rows"),
        (["--model", "MODEL", "--weights", "sex"], "--weights must be a column of numbers from 0"),
        (
            ["--model", "MODEL", "--columns", "age", "z"],
            "--model .* takes columns that .* lack",
        ),
        (["--model", "MODEL", "--columns", "age"], "--model .* must predict the rows of .*--colum"),
        (
            ["--model", "MODEL", "--feature", "sex"],
            "--features must be columns of the mod",
        ),
        (["--model", "MODEL", "--max-depth", "0"], "--max-depth must be a whole number"),
        (
            ["--model", "MODEL", "--seed", "x"],
            "--seed must be a whole num",
        ),
        (["--formula", "y ~ age", "--outcome", "y"], "--outcome must be left out with --formula"),
        (["--formula", "y ~ age"], "--conditioning must name columns to split by"),
        (
            ["--formula", "y ~ age + sex", "--conditioning", "z"],
            "--conditioning must be columns of ",
        ),
        (
            ["--formula", "y ~ age + sex", "--feature", "sex"],
            "--feature must be a column of num",
        ),
        (["--formula", "y ~ age", "--out", "x.html"], "--out must end with one of .nc, .* x.html"),
        (
            ["--formula", "y ~ age", "--out", __file__ + "/x.nc"],
            "--out must be files that",
        ),
    ],
)
def test_what_cannot_be_done_is_a_line_before_the_work(
    table, linear, refused, monkeypatch, words, message
):
    monkeypatch.setattr(commands.rs, "local_effects", None)
    words = [str(linear) if word == "MODEL" else word for word in words]
    words = [*(["--trust"] if str(linear) in words else []), *words]
    feature = [] if "--feature" in words else ["--feature", "age"]
    refused(["regions", str(table), *feature, *words], message)


def test_one_of_several_outputs_is_named(table, tmp_path, capsys):
    model = LogisticRegression().fit(FRAME[["time spent"]], np.digitize(Y, [-10, 10]))
    joblib.dump(model, tmp_path / "model.joblib")
    words = ["explain", str(table), "--model", str(tmp_path / "model.joblib"), "--trust", "--json"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error == "rhale-stats: --output must name one output of the model, which are 0, 1, 2.\n"
    assert main([*words, "--output", "3"]) == 2
    assert "--output must be among those of the model, 0, 1, 2; got '3'" in capsys.readouterr().err
    assert main([*words, "--output", "2"]) == 0
    answer = json.loads(capsys.readouterr().out)
    mean = model.predict_proba(FRAME[["time spent"]])[:, 2].mean()
    assert answer["prediction_mean"] == pytest.approx(mean)
