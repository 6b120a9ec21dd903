"""Small fitted models of every library, each with its numbers by the library's own functions."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rhale_stats.arrays.moments import FloatArray

NUMBERS, LEVELS = ["width", "depth", "age"], "ground"
ROWS = 240


class Data(NamedTuple):
    """Rows with numbers alone and with a column of text, and what models are fitted to."""

    numbers: pd.DataFrame
    mixed: pd.DataFrame
    y: FloatArray
    counts: FloatArray
    yes: FloatArray
    three: FloatArray

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Data:
        """Rows of a smooth process with an interaction."""
        X = pd.DataFrame(
            {
                "width": rng.normal(size=ROWS),
                "depth": rng.uniform(0, 2, ROWS),
                "age": rng.gamma(3, 1, ROWS),
            }
        )
        ground = rng.choice(["clay", "rock", "sand"], ROWS)
        mean = np.sin(X["width"]) + X["width"] * X["depth"] / 2 + X["age"] / 4 + (ground == "clay")
        y = np.asarray(mean + 0.3 * rng.normal(size=ROWS))
        three = np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y).astype(np.float64)
        count = rng.poisson(np.exp(mean / 3)).astype(np.float64)
        yes = (y + rng.logistic(size=ROWS) > np.median(y)).astype(np.float64)
        return cls(X, X.assign(**{LEVELS: ground}), y, count, yes, three)


# From rows in pandas to numbers, as the library makes them: (row) or (row, output).
Answer = Callable[[pd.DataFrame], Any]
Fitted = tuple[Any, Answer]


class Kind(NamedTuple):
    """How a model is fitted, which library it is of, and what it is like.

    ``levels`` is the type of the column of levels, empty without one; ``single`` says that answers
    are in single precision, ``numbered`` that columns are known by their numbers alone.
    """

    fit: Callable[[Data], Fitted]
    library: str = "sklearn"
    levels: str = ""
    single: bool = False
    numbered: bool = False


def _sk(path: str, **arguments: Any) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"sklearn.{module}"), name)(**arguments)


def _pipe(*steps: Any) -> Any:
    return import_module("sklearn.pipeline").make_pipeline(*steps)


def _scaled(model: Any) -> Any:
    return _pipe(_sk("preprocessing.StandardScaler"), model)


def _predicting(make: Callable[[], Any], target: str = "y") -> Callable[[Data], Fitted]:
    def fit(data: Data) -> Fitted:
        model = make().fit(data.numbers, getattr(data, target))
        return model, model.predict

    return fit


def _probable(make: Callable[[], Any], target: str = "yes") -> Callable[[Data], Fitted]:
    """Of two classes the second."""

    def fit(data: Data) -> Fitted:
        model = make().fit(data.numbers, getattr(data, target))
        two = target == "yes"
        return model, lambda X: model.predict_proba(X)[:, 1] if two else model.predict_proba(X)

    return fit


def _network(kind: str, **arguments: Any) -> Any:
    return _sk(
        f"neural_network.{kind}",
        hidden_layer_sizes=(12, 8),
        activation="tanh",
        solver="lbfgs",
        max_iter=60,
        tol=1e-2,
        random_state=0,
        **arguments,
    )


# --- scikit-learn, functions ---------------------------------------------------------------------


def _smooth(width: Any, depth: Any, age: Any) -> Any:
    return np.sin(width) * depth + np.log1p(age)


def _values(X: Any) -> list[Any]:
    """Columns of a table of any library."""
    if isinstance(X, np.ndarray) and X.dtype.names is None:
        return list(X.T)
    return [np.asarray(X[name], dtype=np.float64) for name in NUMBERS]


def _function(_data: Data) -> Fitted:
    def of_columns(X: Any) -> Any:
        return _smooth(*_values(X))

    return of_columns, of_columns


class _Predictor:
    def predict(self, X: Any) -> Any:
        return _smooth(*_values(X))


def _two_functions(_data: Data) -> Fitted:
    def of_columns(X: Any) -> Any:
        width, depth, age = _values(X)
        return np.column_stack([width * depth, np.sqrt(age)])

    return of_columns, of_columns


def _adapted(_data: Data) -> Fitted:
    def gradient(X: Any, columns: Any) -> Any:
        width, depth, age = _values(X)
        slopes = (np.cos(width) * depth, np.sin(width), 1 / (1 + age))
        by = dict(zip(NUMBERS, slopes, strict=True))
        names = list(getattr(X, "columns", NUMBERS))
        return np.column_stack([by[names[at]] for at in columns])

    adapter = import_module("rhale_stats.models.adapters.adapter").Adapter
    return adapter(lambda X: _smooth(*_values(X)), gradient), lambda X: _smooth(*_values(X))


def _columns(data: Data) -> Fitted:
    transformer = import_module("sklearn.compose").make_column_transformer(
        (_sk("preprocessing.OneHotEncoder"), [LEVELS]),
        (_sk("preprocessing.StandardScaler"), NUMBERS[:2]),
        remainder="passthrough",
    )
    polynomial = _sk("preprocessing.PolynomialFeatures", degree=2)
    model = _pipe(transformer, polynomial, _sk("linear_model.Ridge")).fit(data.mixed, data.y)
    return model, model.predict


def _histogram(data: Data) -> Fitted:
    coded = data.mixed.assign(**{LEVELS: data.mixed[LEVELS].astype("category")})
    model = _sk(
        "ensemble.HistGradientBoostingRegressor",
        max_iter=20,
        categorical_features="from_dtype",
        random_state=0,
    ).fit(coded, data.y)
    return model, model.predict


# --- boosting ------------------------------------------------------------------------------------


def _xgboost(objective: str, target: str) -> Callable[[Data], Fitted]:
    def fit(data: Data) -> Fitted:
        library = import_module("xgboost")
        options = {"objective": objective, "max_depth": 3, "nthread": 1}
        if objective.startswith("multi"):
            options["num_class"] = 3
        table = library.DMatrix(data.numbers, getattr(data, target))
        model = library.train(options, table, num_boost_round=15)
        return model, lambda X: model.predict(library.DMatrix(X))

    return fit


def _stopped(data: Data) -> Fitted:
    """Early stopping: the rounds after the best one are not used."""
    library = import_module("xgboost")
    table = library.DMatrix(data.numbers[:120], data.y[:120])
    rest = library.DMatrix(data.numbers[120:], data.y[120:])
    model = library.train(
        {"eta": 0.9, "nthread": 1},
        table,
        num_boost_round=40,
        evals=[(rest, "rest")],
        early_stopping_rounds=5,
        verbose_eval=False,
    )
    last = (0, model.best_iteration + 1)
    return model, lambda X: model.predict(library.DMatrix(X), iteration_range=last)


def _lightgbm(objective: str, target: str, *, levels: bool = False) -> Callable[[Data], Fitted]:
    def fit(data: Data) -> Fitted:
        library = import_module("lightgbm")
        X = data.numbers
        if levels:
            X = data.mixed.assign(**{LEVELS: data.mixed[LEVELS].astype("category")})
        options = {"objective": objective, "verbose": -1, "num_threads": 1, "num_leaves": 6}
        if objective == "multiclass":
            options["num_class"] = 3
        table = library.Dataset(X, getattr(data, target))
        model = library.train(options, table, num_boost_round=15)
        return model, model.predict

    return fit


def _boosted(library: str, name: str, **arguments: Any) -> Callable[[], Any]:
    return lambda: getattr(import_module(library), name)(**arguments)


CATBOOST = {
    "iterations": 20,
    "verbose": 0,
    "thread_count": 1,
    "allow_writing_files": False,
    "random_seed": 0,
}


def _catboost_native(data: Data) -> Fitted:
    library = import_module("catboost")
    pool = library.Pool(data.mixed, data.y, cat_features=[LEVELS])
    model = library.train(pool, {**CATBOOST, "loss_function": "RMSE"})
    return model, model.predict


# --- statsmodels ---------------------------------------------------------------------------------


def _formula(name: str, formula: str, target: str, **arguments: Any) -> Callable[[Data], Fitted]:
    def fit(data: Data) -> Fitted:
        make = getattr(import_module("statsmodels.formula.api"), name)
        given = dict(arguments)
        if "family" in given:
            families = import_module("statsmodels.genmod.families")
            given["family"] = getattr(families, given["family"])()
        if "groups" in given:
            given["groups"] = data.mixed[given["groups"]]
        of_fit = {"disp": 0} if name in ("logit", "probit", "poisson", "mnlogit") else {}
        table = data.mixed.assign(outcome=getattr(data, target))
        model = make(f"outcome ~ {formula}", table, **given).fit(**of_fit)
        return model, model.predict

    return fit


def _exposed(data: Data) -> Fitted:
    """A rate: predict leaves the exposure out, and effects are of the counts."""
    formulas = import_module("statsmodels.formula.api")
    family = import_module("statsmodels.genmod.families").Poisson()
    table = data.mixed.assign(outcome=data.counts)
    made = np.log(table["age"] + 1)
    model = formulas.glm("outcome ~ width * depth", table, family=family, offset=made).fit()
    own = np.asarray(model.model.offset)

    def answer(X: pd.DataFrame) -> Any:
        return model.predict(X, offset=np.resize(own, len(X)))

    return model, answer


def _arrays(data: Data) -> Fitted:
    model = import_module("statsmodels.api").Logit(data.yes, data.numbers).fit(disp=0)
    return model, model.predict


def _smoothed(data: Data) -> Fitted:
    gam = import_module("statsmodels.gam.api")
    smoother = gam.BSplines(data.numbers[["width", "depth"]], df=[5, 5], degree=[3, 3])
    model = gam.GLMGam.from_formula(
        "outcome ~ age",
        data=data.numbers.assign(outcome=data.y),
        smoother=smoother,
        alpha=np.array([1.0, 1.0]),
    ).fit()
    return model, lambda X: model.predict(X, exog_smooth=X[["width", "depth"]])


def _hazards(data: Data) -> Fitted:
    table = data.numbers.assign(time=np.exp(-data.y / 3))
    make = import_module("statsmodels.formula.api").phreg
    model = make("time ~ width + depth + age", table, status=data.yes).fit()
    return model, lambda X: model.predict(exog=X).predicted_values


def _ordered(data: Data) -> Fitted:
    make = import_module("statsmodels.miscmodels.ordinal_model").OrderedModel
    model = make(data.three, data.numbers, distr="logit").fit(method="bfgs", disp=0)
    return model, model.predict


# --- networks, pyGAM -----------------------------------------------------------------------------


def _torch(*, single: bool) -> Callable[[Data], Fitted]:
    def fit(data: Data) -> Fitted:
        torch = import_module("torch")
        generator = torch.Generator().manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Linear(3, 16),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 8),
            torch.nn.BatchNorm1d(8),
            torch.nn.Softplus(),
            torch.nn.Linear(8, 1),
        )
        with torch.no_grad():
            for one in network.parameters():
                one.copy_(torch.randn(one.shape, generator=generator) / 2)
        network.double().train()
        network(torch.tensor(data.numbers.to_numpy()))  # for the means of the normalisation
        exact = deepcopy(network).eval()

        def answer(X: pd.DataFrame) -> Any:
            with torch.no_grad():
                return exact(torch.tensor(X.to_numpy(dtype=np.float64)))[:, 0].numpy()

        return network.float() if single else network, answer

    return fit


def _jax(*, compiled: bool) -> Callable[[Data], Fitted]:
    def fit(_data: Data) -> Fitted:
        jax, jnp = import_module("jax"), import_module("jax.numpy")
        rng = np.random.default_rng(0)
        first, second = rng.normal(size=(3, 8)) / 2, rng.normal(size=8) / 2

        def function(X: Any) -> Any:
            return jnp.tanh(jnp.asarray(X) @ first) @ second

        def answer(X: pd.DataFrame) -> Any:
            return np.tanh(X.to_numpy(dtype=np.float64) @ first) @ second

        return jax.jit(function) if compiled else function, answer

    return fit


def _jax_columns(_data: Data) -> Fitted:
    jax, jnp = import_module("jax"), import_module("jax.numpy")

    def function(X: Any) -> Any:
        return jnp.sin(X["width"]) * X["age"] + jnp.tanh(X["age"])

    def answer(X: pd.DataFrame) -> Any:
        width, age = (X[name].to_numpy(dtype=np.float64) for name in ("width", "age"))
        return np.sin(width) * age + np.tanh(age)

    return jax.jit(function), answer


def _pygam(name: str, target: str) -> Callable[[Data], Fitted]:
    def fit(data: Data) -> Fitted:
        make = getattr(import_module("pygam"), name)
        model = make(n_splines=8).fit(data.numbers.to_numpy(), getattr(data, target))
        return model, lambda X: model.predict_mu(X.to_numpy(dtype=np.float64))

    return fit


KINDS: dict[str, Kind] = {
    "function": Kind(_function, "numpy"),
    "function, two outputs": Kind(_two_functions, "numpy"),
    "object with predict": Kind(lambda data: (_Predictor(), _function(data)[1]), "numpy"),
    "Adapter with gradient": Kind(_adapted, "numpy"),
    "LinearRegression": Kind(_predicting(lambda: _sk("linear_model.LinearRegression"))),
    "PoissonRegressor, scaled": Kind(
        _predicting(lambda: _scaled(_sk("linear_model.PoissonRegressor")), "counts")
    ),
    "LogisticRegression, scaled": Kind(
        _probable(lambda: _scaled(_sk("linear_model.LogisticRegression")))
    ),
    "LogisticRegression, three classes": Kind(
        _probable(lambda: _scaled(_sk("linear_model.LogisticRegression")), "three")
    ),
    "MLPRegressor, scaled": Kind(_predicting(lambda: _scaled(_network("MLPRegressor")))),
    "MLPClassifier, scaled": Kind(_probable(lambda: _scaled(_network("MLPClassifier")))),
    "splines and Ridge": Kind(
        _predicting(
            lambda: _pipe(
                _sk("preprocessing.SplineTransformer", n_knots=5), _sk("linear_model.Ridge")
            )
        )
    ),
    "columns, levels and Ridge": Kind(_columns, levels="str"),
    "SVR": Kind(_predicting(lambda: _scaled(_sk("svm.SVR")))),
    "Gaussian process": Kind(
        _predicting(
            lambda: _scaled(
                _sk("gaussian_process.GaussianProcessRegressor", alpha=0.1, optimizer=None)
            )
        )
    ),
    "random forest": Kind(
        _predicting(lambda: _sk("ensemble.RandomForestRegressor", n_estimators=10, random_state=0))
    ),
    "histogram boosting, levels": Kind(_histogram, levels="category"),
    "nearest neighbours": Kind(_predicting(lambda: _sk("neighbors.KNeighborsRegressor"))),
    "blend of line and tree": Kind(
        _predicting(
            lambda: _sk(
                "ensemble.VotingRegressor",
                estimators=[
                    ("line", _sk("linear_model.LinearRegression")),
                    ("tree", _sk("tree.DecisionTreeRegressor", max_depth=4, random_state=0)),
                ],
            )
        )
    ),
    "XGBRegressor": Kind(
        _predicting(_boosted("xgboost", "XGBRegressor", n_estimators=15, n_jobs=1)),
        "xgboost",
        single=True,
    ),
    "xgboost Booster, stopped early": Kind(_stopped, "xgboost", single=True),
    "xgboost Booster, three classes": Kind(
        _xgboost("multi:softprob", "three"), "xgboost", single=True
    ),
    "LGBMClassifier": Kind(
        _probable(_boosted("lightgbm", "LGBMClassifier", n_estimators=15, verbose=-1, n_jobs=1)),
        "lightgbm",
    ),
    "lightgbm Booster": Kind(_lightgbm("regression", "y"), "lightgbm"),
    "lightgbm Booster, three classes": Kind(_lightgbm("multiclass", "three"), "lightgbm"),
    "lightgbm Booster, levels": Kind(
        _lightgbm("regression", "y", levels=True), "lightgbm", levels="category"
    ),
    "CatBoostClassifier": Kind(
        _probable(_boosted("catboost", "CatBoostClassifier", **CATBOOST)), "catboost"
    ),
    "catboost, native, levels": Kind(_catboost_native, "catboost", levels="str"),
    "OLS, formula": Kind(
        _formula("ols", "width * depth + np.log(age) + C(ground)", "y"),
        "statsmodels",
        levels="str",
    ),
    "GLM, Poisson, offset": Kind(_exposed, "statsmodels"),
    "GLM, binomial, splines": Kind(
        _formula("glm", "bs(width, df=4) + depth + age", "yes", family="Binomial"),
        "statsmodels",
    ),
    "Logit, arrays": Kind(_arrays, "statsmodels"),
    "MNLogit": Kind(_formula("mnlogit", "width + depth + age", "three"), "statsmodels"),
    "QuantReg": Kind(_formula("quantreg", "width * depth", "y"), "statsmodels"),
    "MixedLM": Kind(_formula("mixedlm", "width * depth + age", "y", groups=LEVELS), "statsmodels"),
    "GLMGam": Kind(_smoothed, "statsmodels"),
    "PHReg": Kind(_hazards, "statsmodels"),
    "OrderedModel": Kind(_ordered, "statsmodels"),
    "torch, double precision": Kind(_torch(single=False), "torch", numbered=True),
    "torch, single precision": Kind(_torch(single=True), "torch", single=True, numbered=True),
    "JAX, compiled": Kind(_jax(compiled=True), "jax", single=True, numbered=True),
    "JAX, a function": Kind(_jax(compiled=False), "jax", single=True, numbered=True),
    "LinearGAM": Kind(_pygam("LinearGAM", "y"), "pygam", numbered=True),
    "LogisticGAM": Kind(_pygam("LogisticGAM", "yes"), "pygam", numbered=True),
    "JAX, a function of columns": Kind(_jax_columns, "jax", single=True),
}
