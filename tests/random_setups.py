"""Random setups on both sides of every assumption's bound, and gradient flow to judge answers by.

Shapes are few, so that few programs are compiled; everything else is drawn: spectra (equal, nearly equal, wide),
starts (tiny, huge, near saddles, rounded to float32), defects of every size, horizons, real data.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from scipy.integrate import solve_ivp
from sklearn.datasets import load_diabetes, load_iris, load_wine

import festina as fs

DEPTHS = {2: (4,), 3: (4, 4)}
D_IN, D_OUT = 3, 3
HUGE = 50.0  # from here on weights that cancel lose digits of the map
STIFF = 1e4  # rate × time from which explicit steps take minutes


def orthogonal(rng, n, k):
    return np.linalg.qr(rng.normal(size=(n, n)))[0][:, :k]


def spectrum(rng, count=3):
    """Singular values: spread, equal, nearly equal, or with a zero."""
    values = np.sort(10 ** rng.uniform(-1, 0.7, size=count))[::-1]
    kind = rng.integers(5)
    if kind == 0:
        values[1] = values[0]
    if kind == 1:
        values[1] = values[0] * (1 - 10 ** rng.uniform(-12, -3))
    if kind == 2:
        values[-1] = 0.0
    return values


def defect(rng):
    """Nothing, or anything from rounding to a per cent."""
    return 0.0 if rng.random() < 0.25 else 10 ** rng.uniform(-16, -2)


def task_of(rng, values, variances=None, miss=0.0, d_in=D_IN, d_out=D_OUT):
    """Moments with these singular values; inputs white, or with these variances along the modes, up to a defect."""
    left, right = orthogonal(rng, d_out, len(values)), orthogonal(rng, d_in, d_in)
    if variances is None:
        cov_x = np.eye(d_in) * 10 ** rng.uniform(-0.5, 0.5)
    else:
        cov_x = (right * variances) @ right.T
    root = np.linalg.cholesky(cov_x + miss * np.trace(cov_x) * _symmetric(rng, d_in))
    x = np.sqrt(d_in) * root.T  # its second moment is cov_x
    right = right[:, : len(values)]
    target = (left * values) @ right.T @ np.linalg.inv(x.T @ x / d_in)
    return fs.tasks.from_arrays(x, x @ target.T), left, right


def _symmetric(rng, n):
    noise = rng.normal(size=(n, n))
    return 0.1 * (noise + noise.T) / n


def horizon(rng, values):
    """Between a fraction of the fastest time constant and many of the slowest."""
    return float(10 ** rng.uniform(-1, 2.2) / max(values.max(), 1e-3))


def shaken(rng, weights):
    """The weights with a relative defect, or stored in float32."""
    if rng.random() < 0.15:
        return [w.astype(np.float32).astype(float) for w in weights]
    size = defect(rng)
    return [w + size * np.abs(w).max() * rng.normal(size=w.shape) for w in weights]


def mirrored(first, last):
    """Units in pairs of opposite sign: the output starts at zero, however large the weights."""
    return [np.concatenate([first, first]), np.concatenate([last, -last], axis=1)]


def aligned(rng):
    """Layers along the modes: of one strength, of two, of any sign, some at zero."""
    depth, values = int(rng.choice([2, 3])), spectrum(rng)
    variances = 10 ** rng.uniform(-0.7, 0.7, size=3)
    task, left, right = task_of(rng, values, variances, miss=defect(rng) * (rng.random() < 0.3))
    strengths = 10 ** rng.uniform(-5, 0.3) * 10 ** rng.uniform(-0.5, 0.5, size=3) * np.ones((depth, 1))
    if rng.random() < 0.5:  # layers of different strengths
        strengths = strengths * 10 ** rng.uniform(-1, 1, size=(depth, 3)) ** (rng.random() < 0.7)
    strengths = strengths * np.where(rng.random((depth, 3)) < 0.1, -1, 1) * (rng.random(3) > 0.07)
    bases = [right, *(orthogonal(rng, width, 3) for width in DEPTHS[depth]), left]
    weights = [(bases[k + 1] * strengths[k]) @ bases[k].T for k in range(depth)]
    return _setup(rng, task, DEPTHS[depth], shaken(rng, weights), values)


def balanced(rng):
    """λ-balanced layers on white inputs; square ones may have the wrong determinant."""
    values = spectrum(rng)
    task, *_ = task_of(rng, values, miss=defect(rng) * (rng.random() < 0.3))
    scale, lam = 10 ** rng.uniform(-4, 0.5), rng.choice([0.0, 1e-8, 0.5, -0.5])
    hidden = int(rng.choice([3, 4])) if lam == 0 else 3
    u, s, vt = np.linalg.svd(scale * rng.normal(size=(3, 3)))
    low, high = (np.sqrt(np.sqrt(s**2 + lam**2 / 4) + sign * lam / 2) for sign in (-1, 1))
    turn = orthogonal(rng, hidden, 3)
    return _setup(rng, task, (hidden,), shaken(rng, [(turn * low) @ vt, (u * high) @ turn.T]), values)


def small_random(rng):
    """Random layers of all sizes, inputs white or not."""
    values = spectrum(rng)
    task, *_ = task_of(rng, values, None if rng.random() < 0.5 else 10 ** rng.uniform(-0.5, 0.5, size=3))
    scale = 10 ** rng.uniform(-7, 0.5)
    weights = [scale * rng.normal(size=(4, D_IN)), scale * rng.normal(size=(D_OUT, 4))]
    return _setup(rng, task, (4,), weights, values)


def lazy(rng):
    """Large layers that cancel at the start, and not so large ones."""
    values = spectrum(rng)
    task, *_ = task_of(rng, values, 10 ** rng.uniform(-0.5, 0.5, size=3))
    scale = 10 ** rng.uniform(-0.5, 1.7)
    weights = mirrored(scale * rng.normal(size=(2, D_IN)), scale * rng.normal(size=(D_OUT, 2)))
    if rng.random() < 0.5:  # one layer that is much larger than the other
        weights = [scale * rng.normal(size=(4, D_IN)), 1e-3 * rng.normal(size=(D_OUT, 4))]
    until = float(10 ** rng.uniform(-2, 1.5) / scale**2)
    return fs.Setup(task, fs.nets.DeepLinear(4), fs.inits.Given(weights), until=until, points=25)


def huge(rng):
    """Layers so large that what they leave when they cancel may be nothing but rounding."""
    values = spectrum(rng) * 10 ** rng.uniform(-3, 1)
    task, *_ = task_of(rng, values, 10 ** rng.uniform(-0.5, 0.5, size=3))
    scale = 10 ** rng.uniform(2, 8)
    weights = mirrored(scale * rng.normal(size=(2, D_IN)), scale * rng.normal(size=(D_OUT, 2)))
    until = float(10 ** rng.uniform(-2, 1.5) / scale**2)
    return fs.Setup(task, fs.nets.DeepLinear(4), fs.inits.Given(weights), until=until, points=25)


def two_points(rng):
    """Two opposite samples, or almost."""
    half, target, off = rng.normal(size=(3, D_IN))
    mean = rng.normal(size=D_IN)
    x = np.stack([-half, half]) + defect(rng) * (rng.random() < 0.3) * rng.normal(size=D_IN)
    task = fs.tasks.from_arrays(x, np.stack([mean - target, mean + target]))
    hidden = 10 ** rng.uniform(-4, 0) * rng.normal(size=4)
    decoder = target * rng.choice([-1, 1]) + off * (rng.random() < 0.7)
    weights = [
        np.outer(hidden, half) / (half @ half),
        10 ** rng.uniform(-3, 0) * np.outer(decoder, hidden) / (hidden @ hidden),
    ]
    return _setup(rng, task, (4,), shaken(rng, weights), 10 * np.array([half @ half * np.linalg.norm(target)]))


def one_sample(rng):
    task = fs.tasks.from_arrays(rng.normal(size=(1, D_IN)), rng.normal(size=(1, D_OUT)))
    scale = 10 ** rng.uniform(-4, 1)
    weights = [scale * rng.normal(size=(4, D_IN)), scale * rng.normal(size=(D_OUT, 4))]
    return _setup(rng, task, (4,), weights, np.ones(1))


SHAPES = [(5, (4,), 2), (2, (8,), 5), (5, (1,), 4), (4, (4, 3, 4), 2), (3, (5, 4, 3, 4), 3), (3, (), 4)]


def other_shapes(rng):
    """One to five layers, narrow and wide, more inputs than outputs and the reverse; along the modes or at random."""
    d_in, hidden, d_out = SHAPES[rng.integers(len(SHAPES))]
    count, depth, sizes = min(d_in, d_out), len(hidden) + 1, [d_in, *hidden, d_out]
    values = np.sort(10 ** rng.uniform(-1, 0.5, size=count))[::-1]
    variances = None if rng.random() < 0.4 else 10 ** rng.uniform(-0.5, 0.5, size=d_in)
    task, left, right = task_of(rng, values, variances, defect(rng) * (rng.random() < 0.3), d_in, d_out)
    if rng.random() < 0.3:
        scale = 10 ** rng.uniform(-5, 0.3)
        weights = [scale * rng.normal(size=(out, into)) for into, out in itertools.pairwise(sizes)]
        return _setup(rng, task, hidden, weights, values)
    passes = np.arange(count) < min(sizes)
    strengths = 10 ** rng.uniform(-3, 0.2) * 10 ** rng.uniform(-0.5, 0.5, size=count) * passes
    strengths = strengths * np.where(rng.random((depth, count)) < 0.1, -1, 1)
    inner = [np.pad(orthogonal(rng, n, min(n, count)), ((0, 0), (0, max(count - n, 0)))) for n in hidden]
    bases = [right, *inner, left]
    weights = [(bases[k + 1] * strengths[k]) @ bases[k].T for k in range(depth)]
    return _setup(rng, task, hidden, shaken(rng, weights), values)


def wide_spectrum(rng, count=6):
    """Singular values and variances over six decades; some modes start with the wrong sign."""
    values, variances = np.sort(10 ** rng.uniform(-5, 1, size=count))[::-1], 10 ** rng.uniform(-5, 1, size=count)
    miss = 1e-5 * defect(rng) * (rng.random() < 0.2)  # the smallest variance stays positive
    task, left, right = task_of(rng, values, variances, miss, count, count)
    strengths = 10 ** rng.uniform(-5, 0.3) * 10 ** rng.uniform(-0.5, 0.5, size=count) * np.ones((2, 1))
    strengths = strengths * np.where(rng.random((2, count)) < 0.1, -1, 1)
    hidden = orthogonal(rng, count, count)
    weights = [(hidden * strengths[0]) @ right.T, (left * strengths[1]) @ hidden.T]
    return _setup(rng, task, (count,), shaken(rng, weights), values)


def stepped(rng, setup):
    """The same by gradient descent, with steps of all sizes that a theory may follow."""
    weights, tasks = setup.weights(0), getattr(setup.task, "tasks", (setup.task,))
    size = sum(np.linalg.norm(w, 2) ** 2 for w in weights)
    fastest = max(2 * np.linalg.norm(t.cov_yx, 2) + np.linalg.norm(t.cov_x, 2) * size for t in tasks)
    lr = max(10 ** rng.uniform(-4, -1) / (len(weights) * fastest), float(setup.times[-1]) / 1e5)
    return setup.replace(rule=fs.rules.GradientDescent(lr))


def by_descent(rng):
    return stepped(rng, [aligned, balanced, small_random, lazy][rng.integers(4)](rng))


def in_sequence(rng):
    """A second task that is another, or the first one reversed; by the flow or in steps."""
    first, values = [aligned, balanced, small_random][rng.integers(3)](rng), spectrum(rng)
    if rng.random() < 0.3:
        second = fs.tasks.from_moments(-np.asarray(first.task.cov_yx), first.task.cov_x)
    else:
        second = task_of(rng, values, None if rng.random() < 0.5 else 10 ** rng.uniform(-0.5, 0.5, size=3))[0]
    durations = [float(first.times[-1]), horizon(rng, values)]
    both = fs.tasks.sequence([first.task.moments_only(), second.moments_only()], durations)
    setup = first.replace(task=both, times=np.linspace(0, sum(durations), 41))
    return setup if rng.random() < 0.5 else stepped(rng, setup)


def _setup(rng, task, hidden, weights, values):
    return fs.Setup(task, fs.nets.DeepLinear(hidden), fs.inits.Given(weights), until=horizon(rng, values), points=25)


LINEAR = {
    draw.__name__: draw
    for draw in (aligned, balanced, small_random, lazy, huge, two_points, one_sample, other_shapes, wide_spectrum)
}


def gated(rng):
    """Exclusive or with pathways that never meet; some start with the wrong sign."""
    cuts = [[[0], [1], [2], [3]], [[0], [1, 2], [3]]][rng.integers(2)]
    net = fs.nets.Gated.pathways([{"on": {"item": items}, "width": 3} for items in cuts])
    task = fs.tasks.xor(float(rng.uniform(0.2, 2.0)))
    strengths = 10 ** rng.uniform(-4, 0) * np.where(rng.random(2 * len(cuts)) < 0.2, -1.0, 1.0)
    along_modes = fs.Setup(task, net, fs.inits.Decoupled(strengths), until=10 ** rng.uniform(0.5, 2.3), points=15)
    return along_modes.replace(init=fs.inits.Given(shaken(rng, [np.asarray(w) for w in along_modes.weights(0)])))


def shared_edges(rng):
    """Routes through shared layers, which race for them; some start with the wrong sign."""
    task = fs.tasks.routing(domains=3, trained=2, levels=tuple(np.sort(rng.uniform(0.5, 3.0, size=2))[::-1]))
    net = fs.nets.Gated.routing(3, 3, 2, items=2, features=3, hidden=4)
    strengths = 10 ** rng.uniform(-3, 0) * np.where(rng.random(len(net.edges)) < 0.1, -1.0, 1.0)
    along_modes = fs.Setup(task, net, fs.inits.Decoupled(strengths), until=10 ** rng.uniform(0, 1.7), points=15)
    return along_modes.replace(init=fs.inits.Given(shaken(rng, [np.asarray(w) for w in along_modes.weights(0)])))


def tiny_gated(rng):
    """The same from where learning takes ten to a hundred time constants to begin."""
    setup, factor = gated(rng), 10 ** rng.uniform(-15, -3)
    weights = [factor * np.asarray(w) for w in setup.weights(0)]
    until = float(setup.times[-1]) * (1 - np.log(factor) / 10)
    return setup.replace(init=fs.inits.Given(weights), until=until, times=None, points=15)


def nonlinear(rng):
    """Small and large networks with one hidden layer, on inputs with and without a mean."""
    x = 5.0 * rng.integers(2) + 10 ** rng.uniform(-0.7, 0) * rng.normal(size=(12, D_IN))
    task = fs.tasks.from_arrays(x, rng.normal(size=(12, 2)))
    scale = 10 ** rng.uniform(-2, 1.5)
    weights = mirrored(scale * rng.normal(size=(10, D_IN)), scale * rng.normal(size=(2, 10)))
    fastest = 20 * scale**2 * np.linalg.norm(task.cov_x, 2)
    until = float(10 ** rng.uniform(-1, 1.3) / fastest)
    net = fs.nets.MLP(20, activation=["tanh", "relu"][rng.integers(2)])
    return fs.Setup(task, net, fs.inits.Given(weights), until=until, points=15)


def real_data(rng):
    """Flowers, wines and patients, raw, standardised or white, with random weights of all sizes."""
    x, y = [load_iris, load_wine, load_diabetes][rng.integers(3)](return_X_y=True)
    y = np.eye(3)[y] if len(np.unique(y)) == 3 else y[:, None] / y.std()
    x = [x, (x - x.mean(0)) / x.std(0), x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / len(x))).T][rng.integers(3)]
    task = fs.tasks.from_arrays(x, y)
    scale = 10 ** rng.uniform(-4, 1)
    weights = [scale * rng.normal(size=(4, task.d_in)), scale * rng.normal(size=(task.d_out, 4))]
    if rng.random() < 0.5:
        weights = mirrored(weights[0][:2], weights[1][:, :2])
    fastest = np.linalg.norm(task.cov_yx, 2) + scale**2 * np.linalg.norm(task.cov_x, 2)
    until = float(10 ** rng.uniform(-1, 2) / fastest)
    return fs.Setup(task, fs.nets.DeepLinear(4), fs.inits.Given(weights), until=until, points=25)


def flow(setup, rtol):
    """The map of a linear chain under gradient flow, (time, out, in), by SciPy from the moments alone."""
    weights = [np.asarray(w) for w in setup.weights(0)]
    cov_yx, cov_x = np.asarray(setup.task.cov_yx), np.asarray(setup.task.cov_x)
    ends, shapes = np.cumsum([w.size for w in weights])[:-1], [w.shape for w in weights]

    def split(flat):
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]

    def product(layers):
        return functools.reduce(lambda matrix, w: w @ matrix, layers)

    def field(_, flat):
        layers = split(flat)
        error = cov_yx - product(layers) @ cov_x
        slopes = []
        for k in range(len(layers)):
            slope = functools.reduce(lambda slope, w: w.T @ slope, reversed(layers[k + 1 :]), error)
            slopes.append(functools.reduce(lambda slope, w: slope @ w.T, layers[:k], slope).ravel())
        return np.concatenate(slopes)

    times, start = np.asarray(setup.times), np.concatenate([w.ravel() for w in weights])
    sizes = [2 * np.linalg.norm(cov_yx @ np.linalg.pinv(cov_x), 2), *(np.linalg.norm(w, 2) ** 2 for w in weights)]
    fastest = np.linalg.norm(cov_x, 2) * max(sizes)
    method = "LSODA" if fastest * times[-1] > STIFF else "DOP853"
    if np.abs(start).max() > HUGE:
        return _flow_of_changes(weights, cov_yx, cov_x, times, rtol, method)
    atol = rtol * 1e-6 * np.abs(start).max()
    with np.errstate(all="ignore"):  # of steps that are tried and not taken
        solution = solve_ivp(field, (0, times[-1]), start, method=method, t_eval=times, rtol=rtol, atol=atol)
    assert solution.success, solution.message
    return np.stack([product(split(flat)) for flat in solution.y.T])


def _flow_of_changes(weights, cov_yx, cov_x, times, rtol, method):
    """The same of two layers, in what changes of each, so that no digit is lost where large layers cancel."""
    first, last = weights
    long = np.longdouble
    at_first = np.array((last.astype(long)[:, :, None] * first.astype(long)[None]).sum(axis=1), float)

    def split(flat):
        return flat[: first.size].reshape(first.shape), flat[first.size :].reshape(last.shape)

    def product(low, high):
        return at_first + last @ low + high @ first + high @ low

    def field(_, flat):
        low, high = split(flat)
        error = cov_yx - product(low, high) @ cov_x
        return np.concatenate([((last + high).T @ error).ravel(), (error @ (first + low).T).ravel()])

    start = np.zeros(first.size + last.size)
    target = np.abs(cov_yx @ np.linalg.pinv(cov_x)).max()
    atol = rtol * 1e-3 * target / max(np.abs(first).max(), np.abs(last).max())
    with np.errstate(all="ignore"):  # of steps that are tried and not taken
        solution = solve_ivp(field, (0, times[-1]), start, method=method, t_eval=times, rtol=rtol, atol=atol)
    assert solution.success, solution.message
    return np.stack([product(*split(flat)) for flat in solution.y.T])


def losses(task, maps):
    """Of maps, or of outputs where there is no map, (time,)."""
    if maps.shape[1:] == np.shape(task.cov_yx):
        error = maps - np.asarray(task.target())
        return 0.5 * np.sum((error @ np.asarray(task.cov_x)) * error, axis=(1, 2)) + task.floor()
    return 0.5 * np.mean(np.sum((maps - task.y) ** 2, axis=2), axis=1)


def relative_loss_error(task, answer, true):
    """The largest difference of losses, relative to the largest; one below a millionth of a silent net's is learned."""
    silent = losses(task, np.zeros_like(true[:1]))[0]
    answered, trained = losses(task, answer), losses(task, true)
    return float(np.max(np.abs(answered - trained)) / max(np.max(trained), 1e-6 * silent))


def relative_error(answer, true):
    """The largest difference of maps or outputs over time, relative to the largest true one."""
    return float(np.max(np.linalg.norm(answer - true, axis=(1, 2))) / np.max(np.linalg.norm(true, axis=(1, 2))))
