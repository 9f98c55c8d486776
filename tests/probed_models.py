"""Models for tests of probe.torch, loops that train them, and what their layers do, computed by hand."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

X = torch.linspace(-1, 1, 12).reshape(4, 3).sin()
Y = torch.linspace(-2, 1, 8).reshape(4, 2).cos()


def seeded(make, seed=0):
    torch.manual_seed(seed)
    return make()


def plain():
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))


def rough():
    """All that a forward pass may do to a model: noise, running statistics, overwriting what it was given."""
    first = nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.4)
    second = nn.Linear(8, 8), nn.LeakyReLU(inplace=True), nn.Dropout(0.2)
    return nn.Sequential(nn.ReLU(inplace=True), *first, *second, nn.Linear(8, 2))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model, optimizer=None, steps=6, before=lambda: None):
    optimizer = optimizer or sgd(model)
    for _ in range(steps):
        before()
        optimizer.zero_grad()
        ((model(X.clone()) - Y) ** 2).mean().backward()
        optimizer.step()


def by_hand(model, modules, x=X):
    """Activities (sample, unit) of the first modules of a Sequential, in eval mode."""
    with torch.no_grad():
        return copy.deepcopy(model).eval()[:modules](x.clone()).reshape(len(x), -1).double().numpy()


def assert_same(one, two):
    """Bit for bit, and with the same names."""
    assert one.keys() == two.keys()
    for name in one:
        assert torch.equal(one[name], two[name]), name
