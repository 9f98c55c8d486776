"""The loops that people write: NumPy by hand, a jitted JAX step, PyTorch; and the machine's own peak.

Each function reads the initial weights and returns a call that trains one seed and gives its final loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .problem import EPOCHS, LR, SAMPLES, data, loss, read_start

Call = Callable[[], list[float]]
# Without these glibc gives every large temporary array back to the system, and asks for it again each epoch.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000"}


def numpy_loop(start: str) -> Call:
    first_into, first_out = read_start(start)
    x, y = data()
    rate = np.float32(LR / SAMPLES)

    def go():
        into, out = first_into.copy(), first_out.copy()
        for _ in range(EPOCHS):
            h = np.maximum(x @ into.T, 0)
            error = h @ out.T - y
            back = (error @ out) * (h > 0)
            out -= rate * (error.T @ h)
            into -= rate * (back.T @ x)
        return [loss(into, out)]

    return go


def numpy_buffers(start: str) -> Call:
    """The same without temporary arrays, and with the longer axis of each weight contiguous."""
    first_into, first_out = read_start(start)
    x, y = data()
    x_turned = np.ascontiguousarray(x.T)
    rate = np.float32(LR / SAMPLES)

    def go():
        into, out = first_into.T.copy(), first_out.copy()
        h, back = np.empty((SAMPLES, len(first_into)), np.float32), np.empty((SAMPLES, len(first_into)), np.float32)
        error, active = np.empty_like(y), np.empty(h.shape, bool)
        slope_into, slope_out = np.empty_like(into), np.empty_like(out)
        for _ in range(EPOCHS):
            np.matmul(x, into, out=h)
            np.maximum(h, 0, out=h)
            np.matmul(h, out.T, out=error)
            np.subtract(error, y, out=error)
            np.multiply(error, rate, out=error)
            np.matmul(error, out, out=back)
            np.greater(h, 0, out=active)
            np.multiply(back, active, out=back)
            np.matmul(error.T, h, out=slope_out)
            np.subtract(out, slope_out, out=out)
            np.matmul(x_turned, back, out=slope_into)
            np.subtract(into, slope_into, out=into)
        return [loss(into.T, out)]

    return go


def jitted_loop(start: str) -> Call:
    import jax
    import jax.numpy as jnp

    first = tuple(map(jnp.asarray, read_start(start)))
    x, y = map(jnp.asarray, data())

    def objective(weights):
        into, out = weights
        return 0.5 * jnp.mean(jnp.sum((jax.nn.relu(x @ into.T) @ out.T - y) ** 2, axis=1))

    train = jitted_steps(objective, LR, EPOCHS)
    return lambda: [loss(*map(np.asarray, train(first)))]


def jitted_steps(objective: Any, rate: float, epochs: int) -> Callable[[Any], Any]:
    """Descent as research code has it: one compiled step per epoch, and the loss of each as a Python number."""
    import jax

    @jax.jit
    def step(weights):
        value, slope = jax.value_and_grad(objective)(weights)
        return jax.tree.map(lambda w, g: w - rate * g, weights, slope), value

    def train(weights):
        losses = []
        for _ in range(epochs):
            weights, value = step(weights)
            losses.append(float(value))
        return weights

    return train


def torch_eager(start: str) -> Call:
    import torch

    x, y = map(torch.from_numpy, data())
    first = [torch.from_numpy(w) for w in read_start(start)]

    def go():
        into, out = (w.clone().requires_grad_() for w in first)
        optimizer = torch.optim.SGD([into, out], lr=LR)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            value = 0.5 * ((torch.relu(x @ into.T) @ out.T - y) ** 2).sum(dim=1).mean()
            value.backward()
            optimizer.step()
        return [loss(into.detach().numpy(), out.detach().numpy())]

    return go


PEAK_SIZE = 4096


def matrix_product() -> Call:
    """One large product in float32, as fast as the machine multiplies."""
    random = np.random.default_rng(0)
    a, b = random.random((2, PEAK_SIZE, PEAK_SIZE), dtype=np.float32)
    c = np.empty_like(a)

    def go():
        np.matmul(a, b, out=c)
        return []

    return go
