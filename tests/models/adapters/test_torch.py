"""Modules of PyTorch: their gradients, and that they are left as they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import rhale_stats as rs

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))


def network(dtype=torch.float64, n_outputs=1, device="cpu"):
    torch.manual_seed(0)
    layers = [
        *(torch.nn.Linear(3, 16), torch.nn.BatchNorm1d(16), torch.nn.Tanh()),
        *(torch.nn.Dropout(0.5), torch.nn.Linear(16, n_outputs)),
    ]
    return torch.nn.Sequential(*layers).to(dtype=dtype, device=device)


def difference(module, X, **options):
    """Of the gradient from central differences, over the size of these."""
    exact = rs.local_effects(module, X, **options)
    near = rs.local_effects(module, X, method="central_difference", **options)
    assert set(exact["local_effect_method"].values) == {"gradient"}
    off, size = (np.abs(one["local_effect"]) for one in (exact - near, near))
    # Steps at the ends of the axis are one-sided.
    return float(np.quantile(off, 0.97) / size.max()), exact


@pytest.mark.thorough
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float64, 1e-8), (torch.float32, 1e-3)])
def test_gradient_of_a_module(dtype, limit):
    off, exact = difference(network(dtype), X)
    assert off < limit
    assert exact.attrs["answer_precision"] >= torch.finfo(dtype).eps


@pytest.mark.thorough
def test_brain_floats_are_known_by_their_digits():
    """Rows are rounded as well: the output is a staircase, and its error is said."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    exact = rs.local_effects(module.to(torch.float64), X)
    with pytest.warns(rs.JumpWarning):
        coarse = rs.local_effects(module.to(torch.bfloat16), X)
    assert coarse.attrs["answer_precision"] == 2**-7
    off = np.abs(coarse["local_effect"] - exact["local_effect"]).mean("obs")
    assert (off < 2 * coarse["local_effect_error"]).all()


@pytest.mark.thorough
def test_several_outputs_and_the_scale_of_log_odds():
    off, exact = difference(network(n_outputs=3), X)
    assert off < 1e-8
    assert exact["local_effect"].sizes == {"output": 3, "obs": 300, "feature": 3}
    module = torch.nn.Sequential(network(), torch.nn.Sigmoid(), torch.nn.Flatten(0))
    assert difference(module, X, scale="logit")[0] < 1e-7


def test_tables_and_other_methods():
    module = network()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype({"b": "Float64"})
    assert difference(module, frame)[0] < 1e-8
    whole = rs.local_effects(module, X)
    some = rs.local_effects(module, frame, features=["c", "a"])
    assert_array_equal(some["local_effect"], whole["local_effect"][:, [2, 0]])
    for effect in (rs.ale(module, X), rs.pdp(module, X), rs.ale2(module, X, (0, 1))):
        assert np.isfinite(next(iter(effect.data_vars.values())).values).any()
    with pytest.raises(rs.ModelError, match=r"numbers only for a model of torch; the columns 'd'"):
        rs.local_effects(module, frame.assign(d="text"), features="a")


class Counting(torch.nn.Module):
    """A module with a buffer that every call changes, and parts in different modes."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return self.inner(x) + torch.rand(1) * 0


@pytest.mark.parametrize("fails", [False, True])
def test_a_module_is_left_as_it_was(fails):
    module = Counting()
    module.train()
    module.inner[2].eval()
    next(module.parameters()).requires_grad_(False)
    before = {name: one.clone() for name, one in module.state_dict().items()}
    modes = [one.training for one in module.modules()]
    random = torch.random.get_rng_state()
    if fails:
        with pytest.raises(rs.ModelError, match="model raised RuntimeError"):
            rs.local_effects(module, X[:, :2])
    else:
        rs.local_effects(module, X)
    after = module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert [one.training for one in module.modules()] == modes
    assert torch.equal(random, torch.random.get_rng_state())
    assert all(one.grad is None for one in module.parameters())
    assert [one.requires_grad for one in module.parameters()][:2] == [False, True]


def test_batches_change_nothing(monkeypatch):
    from rhale_stats.models.adapters import torch as own

    module, sizes = network(), []
    whole = rs.local_effects(module, X)
    monkeypatch.setattr(own, "BATCH_ROWS", 64)
    module.register_forward_hook(lambda _, given, __: sizes.append(len(given[0])))
    parts = rs.local_effects(module, X)
    assert max(sizes) == 64
    np.testing.assert_allclose(parts["local_effect"], whole["local_effect"], rtol=1e-12)


def test_a_gradient_that_is_not_that_of_the_output_is_not_taken():
    class Rounded(torch.nn.Module):
        def forward(self, x):
            return x[:, 0] ** 2 + (x[:, 1] ** 2).detach()

    with pytest.warns(UserWarning, match=r"gradient .* differs .* for 'x1' .*differences were"):
        local = rs.local_effects(Rounded(), X.astype(np.float32).astype(float))
    assert list(local["local_effect_method"].values) == [
        "gradient",
        "central_difference",
        "gradient",
    ]


def test_what_is_no_tensor_is_refused():
    class Two(torch.nn.Module):
        def forward(self, x):
            return x[:, 0], x[:, 1]

    with pytest.raises(rs.ModelError, match="must return a tensor; Two returns tuple"):
        rs.local_effects(Two(), X)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_scripted_modules():
    scripted = torch.jit.trace(network().eval(), torch.from_numpy(X))
    assert difference(scripted, X)[0] < 1e-8


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use")
def test_on_a_gpu_as_on_the_cpu():
    near = rs.local_effects(network(torch.float32), X)
    far = rs.local_effects(network(torch.float32, device="cuda"), X)
    np.testing.assert_allclose(far["local_effect"], near["local_effect"], rtol=1e-4, atol=1e-5)
