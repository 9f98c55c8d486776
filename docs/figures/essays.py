"""Draw the figures of the essays: each function returns one, from runs and formulas of festina alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import festina as fs
from festina._figures.panels import beside, border, key, mark, panels
from festina._figures.style import (
    COLOURS,
    DASHES,
    GREY,
    INK,
    LEGEND_SIZE,
    THICK,
    THIN,
    TIME,
    predicted,
    styled,
    trained,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- why-stages.md ------------------------------------------------------------------------------------------------


def stages_of_four_items() -> Figure:
    """The modes of four items, and how a network learns them one after another."""
    task = fs.tasks.hierarchy(levels=2)
    setup = fs.Setup(task, fs.nets.DeepLinear(hidden=16), fs.inits.SmallRandom(1e-4), until=50.0, points=300)
    run = fs.simulate(setup, seeds=3, observe=["loss", "levels"])
    theory = fs.solve(setup, "SmallRandomModes", observe=["loss", "levels"])
    modes, colours = task.modes(), (COLOURS[0], COLOURS[2], COLOURS[3])
    figure, axes = panels("aa;bc", height_ratios=[0.75, 1])

    table = np.concatenate([modes.right.T, modes.left.T], axis=1)
    table[:2] *= np.sign(table[:2, :1])
    shown = axes["a"].imshow(table, cmap="PuOr", vmin=-0.8, vmax=0.8, aspect="auto")
    axes["a"].axvline(3.5, color="white", lw=8)
    axes["a"].set_xticks(range(11), [*task.items, *task.features], rotation=35, ha="right", rotation_mode="anchor")
    names = ["all alike", "animals or plants", "oak or rose", "canary or salmon"]
    axes["a"].set_yticks(
        range(4), [f"{name}, s = {s:.2f}" for name, s in zip(names, modes.singular_values, strict=True)]
    )
    for tick, colour in zip(axes["a"].get_yticklabels(), [*colours, colours[2]], strict=True):
        tick.set_color(colour)
    axes["a"].tick_params(length=0)
    axes["a"].spines[:].set_visible(False)
    figure.colorbar(shown, ax=axes["a"], label="weight in the mode", pad=0.01)
    axes["a"].set_title("modes: a pattern of items (left) that calls for a pattern of features (right)")

    for level, colour in enumerate(colours):
        trained(axes["b"], run.times, run["levels"][..., level], colour=colour)
        predicted(axes["b"], run.times, theory["levels"][:, level], colour=colour)
    axes["b"].set(xlabel=TIME, ylabel="strength of the mode", title="strengths, colours as in a")
    trained(axes["c"], run.times, run["loss"], colour=GREY)
    predicted(axes["c"], run.times, theory["loss"], colour="0.0")
    axes["c"].set(xlabel=TIME, ylabel="loss", ylim=(0, None), title="loss")
    for loss, text in ((1.5, "nothing learned"), (0.625, "one mode"), (0.25, "two modes")):
        border(axes["c"], loss, text, across=True)
    key(figure, kinds=("training, three seeds", "theory of small weights"))
    return figure


def one_mode_at_every_depth() -> Figure:
    """Speed and time course of one mode in chains of different depth."""
    from festina.theories.aligned_modes import mode, time_to

    task, colours = fs.tasks.from_moments([[1.0]], [[1.0]]), dict(zip((1, 2, 3, 5), COLOURS, strict=False))
    figure, axes = panels("abc")
    strength = np.linspace(0, 1, 200)
    for depth, colour in colours.items():
        axes["a"].plot(strength, strength ** (2 - 2 / depth) * (1 - strength), color=colour, lw=THIN + 0.5)
        times = np.linspace(0, 30, 151)
        init = fs.inits.Aligned(0.01)
        net = fs.nets.DeepLinear(hidden=(1,) * (depth - 1))
        run = fs.simulate(fs.Setup(task, net, init, times=times / depth), observe="modes")
        trained(axes["b"], times, run["modes"][..., 0], colour=colour)
        known = mode(times / depth, singular_value=1.0, variance=1.0, start=0.01, depth=depth)
        predicted(axes["b"], times, known, colour=colour)
        starts = np.geomspace(1e-4, 0.3, 60)
        halves = depth * np.asarray(time_to(0.5, singular_value=1.0, start=starts, depth=depth))
        axes["c"].loglog(starts, halves, color=colour, lw=THIN + 0.5)
    axes["a"].set(xlabel="strength a / target", ylabel="speed da/dt (1/τ′)", title="speed, from the law")
    axes["b"].set(xlabel="time (τ′ = τ/D)", ylabel="strength a / target", title="time course")
    axes["c"].set(xlabel="initial strength / target", ylabel="time to one half (τ′)", title="waiting time")
    names = {f"D = {depth}": colour for depth, colour in colours.items()}
    key(figure, names, kinds=("training (b)", "closed form (b)"))
    return figure


def smaller_starts_wait_longer() -> Figure:
    """Loss and half-times of the modes from smaller and smaller initial strengths."""
    from festina.theories.aligned_modes import time_to

    task = fs.tasks.hierarchy(levels=2)
    setup = fs.Setup(task, fs.nets.DeepLinear(hidden=8), fs.inits.Aligned(1e-2), until=45.0, points=400)
    shades, starts = ("0.7", "0.45", "0.1"), (1e-2, 1e-4, 1e-6)
    figure, axes = panels("aab")
    for start, shade in zip(starts, shades, strict=True):
        theory = fs.solve(setup.replace(init=fs.inits.Aligned(start)), "AlignedModes", observe="loss")
        axes["a"].plot(theory.times, theory["loss"], color=shade, lw=THIN + 0.7)
    for loss, text in ((1.5, "{ }"), (0.625, "{1}"), (0.25, "{1, 2}"), (0.0, "all")):
        border(axes["a"], loss, text, across=True)
    axes["a"].set(xlabel=TIME, ylabel="loss", title="loss, from three initial strengths a₀")
    marks = [
        mark(f"a₀ = {name}", "_", colour=shade, ms=12, mew=2)
        for name, shade in zip(("10⁻²", "10⁻⁴", "10⁻⁶"), shades, strict=True)
    ]
    fine = np.geomspace(1e-8, 1e-2, 50)
    for s, colour in zip(task.spectrum()[:3], (COLOURS[0], COLOURS[2], COLOURS[3]), strict=True):
        halves = time_to(2 * s, singular_value=s, variance=0.25, start=fine)
        axes["b"].semilogx(fine, halves, color=colour, lw=THIN + 0.5)
        marks.append(mark(f"s = {s:.2f}", "_", colour=colour, ms=12, mew=2))
    axes["b"].invert_xaxis()
    axes["b"].set(xlabel="initial strength a₀", ylabel="half-time (τ)", title="half-times of the modes")
    key(figure, kinds=(), marks=marks)
    return figure


def tree_parts_from_broad_to_fine() -> Figure:
    """Hidden representations of eight items while a network learns their tree, and their distances."""
    task = fs.tasks.tree(branching=(2, 2, 2), flip=0.1)
    setup = fs.Setup(task, fs.nets.DeepLinear(hidden=32), fs.inits.SmallRandom(1e-3), until=140.0, points=240)
    hidden = fs.simulate(setup, seeds=1, observe="representation")["representation"][0]  # time, item, unit
    around, items = hidden - hidden.mean(1, keepdims=True), list(task.items)
    branches, kinds, twins = np.repeat([1, -1], 4), np.tile(np.repeat([1, -1], 2), 2), np.tile([1, -1], 4)
    parted = [around @ (each @ around[-1] / np.linalg.norm(each @ around[-1])) for each in (branches, kinds, twins)]
    paths = np.stack([parted[0], parted[1] + 0.6 * parted[2]], axis=-1)  # time, item, axis
    figure, axes = panels("ab", width_ratios=[1, 1.15])
    distance = np.sum((hidden[:, :, None] - hidden[:, None]) ** 2, axis=-1)
    pairs = {"animal, plant": (0, 4), "bird, fish": (0, 2), "canary, robin": (0, 1)}
    for (name, (one, other)), colour in zip(pairs.items(), ("0.1", "0.45", "0.7"), strict=True):
        curve = distance[:, one, other]
        axes["a"].plot(setup.times, curve / curve[-1], color=colour, lw=THICK - 1.5, label=name)
    axes["a"].set(xlabel=TIME, ylabel="squared distance / final one", title="items of different branches move apart")
    axes["a"].legend(title="a pair of", loc="lower right", alignment="left")
    for item, name in enumerate(items):
        colour = COLOURS[0] if item < 4 else COLOURS[2]
        axes["b"].plot(*paths[:, item].T, color=colour, lw=THIN)
        axes["b"].plot(*paths[-1, item], "o", color=colour, ms=5)
        side = paths[-1, item, 0] > 0
        shift = 0
        axes["b"].annotate(
            name,
            paths[-1, item],
            (8 if side else -8, shift),
            textcoords="offset points",
            size=LEGEND_SIZE,
            ha="left" if side else "right",
            va="center",
        )
    axes["b"].margins(x=0.25, y=0.12)
    axes["b"].set(xlabel="animal or plant", ylabel="kind (and, less, item)", title="paths in the hidden layer")
    axes["b"].set(xticks=[], yticks=[])
    return figure


# --- lazy-rich-delayed.md -----------------------------------------------------------------------------------------


def scale_makes_lazy_or_rich() -> Figure:
    """Loss, tangent kernel and representations after learning from small and large random weights."""
    task = fs.tasks.hierarchy(levels=3)
    setup = fs.Setup(
        task, fs.nets.DeepLinear(hidden=64), fs.inits.SmallRandom(1e-3), times=[0.0, *np.geomspace(1e-3, 150, 160)]
    )
    names = ["loss", "kernel_distance", "input_representation"]
    scales = {"small": 1e-3, "middle": 0.1, "large": 1.0}
    colours = dict(zip(scales, (COLOURS[0], COLOURS[2], "#000000"), strict=True))
    runs = {
        n: fs.simulate(setup.replace(init=fs.inits.SmallRandom(s)), seeds=1, observe=names) for n, s in scales.items()
    }
    figure, axes = panels("ab;cd", height_ratios=[1, 1])
    for name, run in runs.items():
        trained(axes["a"], run.times, run["loss"] / run["loss"][:, :1], colour=colours[name])
        trained(axes["b"], run.times, run["kernel_distance"], colour=colours[name])
        if name == "large":
            frozen = fs.solve(
                setup.replace(init=fs.inits.SmallRandom(scales[name])), "FrozenKernel", observe="loss", strict=False
            )
            predicted(axes["a"], run.times, frozen["loss"] / frozen["loss"][0], colour=colours[name])
        if name == "small":
            modes = fs.solve(setup, "SmallRandomModes", observe="loss")
            predicted(axes["a"], run.times, modes["loss"] / modes["loss"][0], colour=colours[name])
    axes["a"].set(xlabel=TIME, ylabel="loss / first loss", title="loss")
    axes["b"].set(
        xlabel=TIME, ylabel="kernel distance, 1 − cos", title="how far the tangent kernel has turned", ylim=(0, 0.8)
    )
    for letter, name in (("c", "small"), ("d", "large")):
        matrix = runs[name]["input_representation"][0, -1]
        reach = np.abs(matrix).max()
        shown = axes[letter].imshow(matrix, cmap="PuOr", vmin=-reach, vmax=reach)
        figure.colorbar(shown, ax=axes[letter], label="entry of W₁ᵀW₁")
        axes[letter].set_xticks([])
        axes[letter].set_yticks(range(8), task.items)
        axes[letter].set_title(f"items after learning, {name} weights")
    for letter in "ab":
        axes[letter].set_xscale("log")
    key(figure, {f"σ = {s:g}": colours[n] for n, s in scales.items()}, kinds=("training", "theories of the two limits"))
    return figure


def imbalance_straightens_a_sigmoid() -> Figure:
    """One mode of two layers from balanced to unbalanced weights."""
    task, net = fs.tasks.from_moments([[1.0]], [[1.0]]), fs.nets.DeepLinear(hidden=1)
    figure, axes = panels("ab")
    strength = np.linspace(0, 1, 200)
    shades = dict(zip((0.0, 0.3, 2**-0.5, 3.0), COLOURS, strict=False))
    for c, colour in shades.items():
        speed = np.sqrt(c**2 + 4 * strength**2) * (1 - strength)
        axes["b"].plot(strength, speed, color=colour, lw=THIN + 0.5)
        start = 1e-2
        upper = math.sqrt((c + math.sqrt(c**2 + 4 * start**2)) / 2)
        setup = fs.Setup(task, net, fs.inits.Given([[[start / upper]], [[upper]]]), until=6.0, points=121)
        run, known = fs.simulate(setup, observe="modes"), fs.solve(setup, "UnbalancedModes", observe="modes")
        trained(axes["a"], setup.times, run["modes"][..., 0], colour=colour)
        predicted(axes["a"], setup.times, known["modes"][..., 0], colour=colour)
    axes["a"].set(xlabel=TIME, ylabel="strength a / target", title="time course of one mode, s = λₓ = 1")
    axes["b"].set(xlabel="strength a / target", ylabel="speed da/dt (1/τ)", title="its speed, from the law")
    named = {f"c = {label}": colour for label, colour in zip(("0", "0.3", "1/√2", "3"), shades.values(), strict=True)}
    key(figure, named, kinds=("training", "closed form"))
    return figure


def shape_decides_which_balance_is_lazy() -> Figure:
    """Final kernel distance of three shapes of networks against the balance."""
    from festina.theories.balanced_riccati import family

    sizes = np.array([1.0, 2.0, 5.0, 10.0, 20.0, 40.0])
    lams = np.concatenate([-sizes[::-1], [0.0], sizes])
    shapes = {"square, 4-4-4": (4, 4), "funnel, 8-4-4": (8, 4), "bottleneck, 6-4-6": (6, 6)}
    figure, axes = panels("a", row=3.2)
    for (name, (inputs, outputs)), colour in zip(shapes.items(), COLOURS, strict=False):
        task = fs.tasks.from_moments(np.random.default_rng(0).normal(size=(outputs, inputs)), np.eye(inputs))
        found = family(task, 4, lam=lams, scale=0.05, seeds=8, times=[0.0, 1e5], observe="kernel_distance")
        ends = found.kernel_distance.isel(time=-1, scale=0)
        axes["a"].plot(lams, ends.mean("seed"), "o-", color=colour, lw=THIN, ms=5, label=name)
    axes["a"].set(xlabel="balance λ", ylabel="final kernel distance, 1 − cos", ylim=(0, None))
    axes["a"].set_xscale("symlog", linthresh=1)
    axes["a"].set_xticks([-40, -10, -2, 0, 2, 10, 40], ["−40", "−10", "−2", "0", "2", "10", "40"])
    axes["a"].minorticks_off()
    axes["a"].set_title("kernel distance after learning: 0 means lazy")
    axes["a"].texts[0].remove()  # the letter, which a lone panel does not need
    axes["a"].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title="inputs-hidden-outputs", alignment="left")
    return figure


def delayed_learning_is_lazy_then_rich() -> Figure:
    """Loss and tangent kernel of one network for the two signs of the balance and for none."""
    target = np.zeros((6, 3))
    np.fill_diagonal(target, [2.0, 1.5, 1.0])
    task = fs.tasks.from_moments(target, np.eye(3), target @ target.T)
    times = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 200)])
    setup = fs.Setup(task, fs.nets.DeepLinear(hidden=3), fs.inits.Balanced(40.0, 0.05), times=times)
    balances = {"λ = 40 (delayed)": 40.0, "λ = −40 (lazy)": -40.0, "λ = 0": 0.0}
    named = dict(zip(balances, (COLOURS[1], COLOURS[0], COLOURS[2]), strict=True))
    figure, axes = panels("abc")
    for name, lam in balances.items():
        each = setup.replace(init=fs.inits.Balanced(lam, 0.05))
        exact = fs.solve(each, "BalancedRiccati", observe=["loss", "kernel_distance"])
        axes["a"].semilogx(times[1:], exact["loss"][1:], color=named[name], lw=THIN + 0.7)
        axes["b"].semilogx(times[1:], exact["kernel_distance"][1:], color=named[name], lw=THIN + 0.7)
        if lam > 0:
            frozen = fs.solve(each, "FrozenKernel", observe="loss", strict=False)
            axes["a"].semilogx(times[1:], frozen["loss"][1:], ":", color=INK, lw=THIN)
    for lam, shade in zip((10.0, 40.0, 160.0), ("0.7", "0.45", "0.1"), strict=True):
        grid = np.concatenate([[0.0], np.geomspace(1e-2, 30, 200)])
        each = setup.replace(init=fs.inits.Balanced(lam, 0.05), times=lam * grid)
        exact = fs.solve(each, "BalancedRiccati", observe="kernel_distance")
        axes["c"].semilogx(grid[1:], exact["kernel_distance"][1:], color=shade, lw=THIN + 0.7)
        named[f"λ = {lam:g} (c)"] = shade
    axes["a"].set(xlabel=TIME, ylabel="loss", title="loss", ylim=(0, None))
    axes["b"].set(xlabel=TIME, ylabel="kernel distance, 1 − cos", title="tangent kernel", ylim=(0, None))
    axes["c"].set(
        xlabel="time / λ (τ)", ylabel="kernel distance, 1 − cos", title="three delays on one clock", ylim=(0, None)
    )
    key(figure, named, kinds=())
    return figure


# --- which-pathway-wins.md ----------------------------------------------------------------------------------------


def the_stronger_correlation_wins() -> Figure:
    """Two pathways that see the same thing loud and dim, and what the dim one is left with."""
    from matplotlib.lines import Line2D

    from festina.theories.aligned_modes import mode

    nodes = {"loud": 1, "dim": 1, "first": 4, "second": 4, "y": None}
    edges = [("loud", "first"), ("first", "y"), ("dim", "second"), ("second", "y")]
    net = fs.nets.Gated(nodes, edges, inputs={"loud": [0], "dim": [1]})

    def setup(dim: float, start: float, times: object) -> fs.Setup:
        task = fs.tasks.from_arrays(np.array([[1.0, dim]]), np.array([[1.0]]))
        return fs.Setup(task, net, fs.inits.Decoupled(start), times=times)

    times, winner, loser = np.linspace(0, 10, 201), COLOURS[0], COLOURS[1]
    figure, axes = panels("ab")
    both = setup(0.6, 0.03, times)
    run, theory = fs.simulate(both, observe="path_modes"), fs.solve(both, "NeuralRace", observe="path_modes")
    for path, (colour, size) in enumerate(((winner, 1.0), (loser, 0.6))):
        trained(axes["a"], times, size * run["path_modes"][:, :, path, 0], colour=colour)
        predicted(axes["a"], times, size * theory["path_modes"][:, path, 0], colour=colour)
    alone = mode(times, singular_value=0.6, variance=0.36, start=0.03**2)
    axes["a"].plot(times, 0.6 * alone, ":", color=loser, lw=THIN + 0.5)
    axes["a"].set(xlabel=TIME, ylabel="contribution to the output", title="correlations s₁ = 1 and s₂ = 0.6")
    starts = np.array([0.1, 0.03, 0.01, 0.001])
    for dim, shade in zip((0.9, 0.6, 0.3), ("0.7", "0.45", "0.1"), strict=True):
        ends = [
            fs.solve(setup(dim, a, [0.0, 80.0]), "NeuralRace", observe="path_modes")["path_modes"][-1, :, 0]
            for a in starts
        ]
        axes["b"].loglog(starts**2, [end[1] / end[0] for end in ends], "o-", color=shade, ms=4, lw=THIN)
        axes["b"].loglog(
            starts**2, ends[-1][1] / ends[-1][0] * (starts / starts[-1]) ** (2 - 2 * dim), ":", color=shade
        )
        beside(axes["b"], starts[-1] ** 2, ends[-1][1] / ends[-1][0], f"s₂/s₁ = {dim:g}")
    axes["b"].invert_xaxis()
    axes["b"].set(
        xlabel="initial strength a₀²",
        ylabel="loser / winner in the end",
        title="the smaller the start, the clearer the win",
    )
    marks = [Line2D([], [], color=loser, ls=":", lw=THIN + 0.5, label="weaker pathway alone")]
    key(
        figure, {"stronger pathway": winner, "weaker pathway": loser}, kinds=("training", "race reduction"), marks=marks
    )
    return figure


def shared_edges_learn_faster() -> Figure:
    """A pathway that several domains share against private ones."""
    from festina._formulas import race_clock
    from festina.experiments._kit import shared_layers

    sharing, start = (1, 2, 4, 7), 0.01
    net, task = shared_layers.two_layers(sharing, 4)
    times = np.linspace(0, 12, 121)
    setup = fs.Setup(task, net, fs.inits.Decoupled(start), times=times)
    shown, shared, private = sharing.index(4), COLOURS[2], COLOURS[4]
    figure, axes = panels("ab")
    run = shared_layers.pathways(fs.simulate(setup, seeds=1, observe="path_norm"), sharing).isel(seed=0)
    theory = race_clock.over_time(
        lambda clock: race_clock.two_layer_rivals(clock, start, np.array(sharing)), np.ones(len(sharing)), times
    )
    for path, colour in enumerate((shared, private)):
        trained(axes["a"], times, run.isel(path=path, group=shown).values, colour=colour)
        predicted(axes["a"], times, theory[:, path, shown], colour=colour)
    axes["a"].set(xlabel=TIME, ylabel="strength of the pathway", title="four domains share one pathway")
    starts = np.geomspace(0.1, 1e-3, 25)
    for count, shade in zip(sharing, ("0.8", "0.6", "0.35", "0.0"), strict=True):
        ends = []
        for b in starts:
            rivals = lambda clock, b=b, m=count: race_clock.two_layer_rivals(np.array([clock]), b, np.array([m]))[:, 0]  # noqa: E731
            ends.append(race_clock.finals(rivals, 1.0, -np.log(b)))
        axes["b"].loglog(starts**2, [end[1] / end[0] for end in ends], color=shade, lw=THIN + 0.7)
        beside(axes["b"], starts[-1] ** 2, ends[-1][1] / ends[-1][0], f"M = {count}")
    axes["b"].invert_xaxis()
    axes["b"].set(
        xlabel="initial strength b₀²", ylabel="private / shared in the end", title="M domains share; M = 1 is a tie"
    )
    key(figure, {"shared pathway": shared, "one private pathway": private}, kinds=("training", "closed form"))
    return figure


def a_network_for_contexts() -> Figure:
    """A gated network with a common pathway and one for each pair of three contexts."""
    pairs = {f"contexts {one + 1}+{other + 1}": [one, other] for one, other in ((0, 1), (0, 2), (1, 2))}
    net = fs.nets.Gated(  # Gated.contexts(subsets=2, contexts=3, items=8), with names for its nodes
        {"items, contexts": 11, "items": 8, "common": 100, **dict.fromkeys(pairs, 100), "features": None},
        [("items, contexts", "common"), *(("items", pair) for pair in pairs)]
        + [(hidden, "features") for hidden in ("common", *pairs)],
        node_gates={pair: {"context": on} for pair, on in pairs.items()},
        inputs={"items, contexts": range(11), "items": range(8)},
    )
    return net.draw(fs.tasks.contextual(items=8, contexts=3))


def contexts_race_before_it_shows() -> Figure:
    """Loss of gated networks with pathways for one, two and three of four contexts, and why they differ."""
    from festina.theories.context_race import item_mode

    contexts, items = 4, 8
    task = fs.tasks.contextual(items=items, contexts=contexts, blocks="hierarchy")
    times = np.linspace(0, 200, 126)
    colours = dict(zip((1, 2, 3), COLOURS, strict=False))
    figure, axes = panels("aab")
    for size, colour in colours.items():
        net = fs.nets.Gated.contexts(subsets=size, contexts=contexts, items=items, width=100)
        setup = fs.Setup(task, net, fs.inits.SmallRandom(1e-5), fs.rules.GradientDescent(0.1), times=times)
        run = fs.simulate(setup, observe="loss")
        theory = fs.solve(setup.replace(rule=fs.rules.GradientFlow()), "ContextRace", observe="loss")
        trained(axes["a"], times, run["loss"], colour=colour)
        predicted(axes["a"], times, theory["loss"], colour=colour)
    border(axes["a"], task.floor(), "linear map", across=True)
    axes["a"].set(
        xlabel=TIME, ylabel="loss", ylim=(0, None), title="a common pathway beside ones for m of four contexts"
    )
    sizes, top = np.array([1, 2, 3]), np.linalg.svd(fs.tasks.hierarchy(levels=3).y, compute_uv=False)[1]
    modes = [item_mode(top, items=items, contexts=contexts, size=int(m)) for m in sizes]
    axes["b"].plot(sizes, [mode.raw for mode in modes], "o-", color=INK)
    axes["b"].plot(sizes, [mode.residual for mode in modes], "s--", color=GREY)
    beside(axes["b"], sizes[-1], modes[-1].raw, "target")
    beside(axes["b"], sizes[-1], modes[-1].residual, "residual")
    axes["b"].set(
        xlabel="contexts m of a pathway",
        ylabel="singular value",
        xticks=sizes,
        ylim=(0, None),
        title="broadest item mode",
    )
    key(figure, {f"m = {m}": c for m, c in colours.items()}, kinds=("training", "theory of small weights"))
    return figure


# --- relu-as-gated.md ---------------------------------------------------------------------------------------------


def _relu_on_contexts(times: np.ndarray) -> fs.Setup:
    """A ReLU network from small weights on eight items in three contexts, as the experiments on twins train it."""
    task, start = fs.tasks.contextual(items=8, contexts=3), fs.inits.SmallRandom(0.005 / 700)
    return fs.Setup(task, fs.nets.MLP(700), start, fs.rules.GradientDescent(0.24), times=times)


def gates_of_relu_units() -> Figure:
    """On which samples the units of a ReLU network are active at three times of learning."""
    times = np.array([0.0, 9.6, 24.0, 192.0])
    run = fs.gates.record(_relu_on_contexts(times))
    on, sizes, losses = fs.gates.patterns(run)[0], run["unit_size"][0], run["loss"][0] / run["loss"][0, 0]
    figure, axes = panels("abc", row=3.4)
    for letter, k in zip("abc", (1, 2, 3), strict=True):
        large = np.argsort(-sizes[k])[:150]  # the units with most weight
        rows = on[k][large]
        order = np.lexsort(rows.T[::-1])[::-1]
        axes[letter].imshow(rows[order], cmap="Greys", vmin=0, vmax=1.4, aspect="auto", interpolation="nearest")
        for line in (7.5, 15.5):
            axes[letter].axvline(line, color=COLOURS[1], lw=1.5)
        axes[letter].set_xticks((3.5, 11.5, 19.5), ["context 1", "context 2", "context 3"])
        axes[letter].set_yticks([])
        axes[letter].tick_params(length=0)
        axes[letter].set(xlabel="8 items in each", title=f"time {times[k]:g} τ, loss {100 * losses[k]:.2g} %")
    axes["a"].set_ylabel("the 150 units with most weight")
    return figure


def the_twin_has_the_loss_not_the_geometry() -> Figure:
    """Loss, gates and hidden geometry of a ReLU network beside gated linear networks."""
    setup = _relu_on_contexts(np.linspace(0, 240, 101))
    relu = fs.gates.record(setup, seeds=2, observe="similarity")
    read = fs.gates.purity(relu).isel(seed=0, layer=0)
    colours = {"ReLU": INK, "pairs of contexts": COLOURS[1], "one context": COLOURS[2]}
    figure, axes = panels("abc")
    axes["a"].semilogy(setup.times, relu["loss"][0] / relu["loss"][0, 0], color=INK, lw=THIN + 1)
    for name, size in (("pairs of contexts", 2), ("one context", 1)):
        net = fs.nets.Gated.contexts(subsets=size, contexts=3, items=8, width=100)
        weights = [1.0 if "common" in edge else 2.0 for edge in map(str, net.edges)]  # a head start, as in the source
        init = fs.inits.SmallRandom([0.005 / 700 * weight for weight in weights])
        twin = fs.simulate(setup.replace(net=net, init=init), observe=["loss", "similarity"])
        axes["a"].semilogy(setup.times, twin["loss"][0] / twin["loss"][0, 0], color=colours[name], lw=THIN + 0.7)
        alike = fs.gates.geometry(twin["similarity"][0, 4:], relu["similarity"][0, 4:], similarity=True)
        axes["c"].plot(setup.times[4:], alike, color=colours[name], lw=THIN + 0.7)
    alike = fs.gates.geometry(relu["similarity"][1, 4:], relu["similarity"][0, 4:], similarity=True)
    axes["c"].plot(setup.times[4:], alike, color=INK, lw=THIN + 1)
    whole = read.on_for.sel(values_on=[1, 2]).sum("values_on")
    shares = {"all samples": read.all_on, "whole contexts": whole, "some items only": read.split}
    for (name, share), look in zip(shares.items(), ("-", "--", ":"), strict=True):
        axes["b"].plot(setup.times, share, look, color=COLOURS[0], lw=THIN + 0.7, label=name)
    axes["b"].legend(title="units active on", alignment="left", loc="center right", bbox_to_anchor=(1.0, 0.5))
    axes["a"].set(xlabel=TIME, ylabel="loss / first loss", ylim=(1e-4, 1.5), title="loss")
    axes["b"].set(xlabel=TIME, ylabel="share of the weight", title="gates of the ReLU units")
    axes["c"].set(xlabel=TIME, ylabel="correlation of distances", ylim=(0.5, 1.01), title="geometry, against ReLU")
    named = {"ReLU (c: another seed)": INK, "twin, pairs of contexts": COLOURS[1], "twin, one context": COLOURS[2]}
    key(figure, named, kinds=())
    return figure


def relu_follows_the_faster_gating() -> Figure:
    """Steps to learn exclusive or with a margin: two gatings by formula, and a ReLU network."""
    from festina.theories.disjoint_pathways import effective_start, time_to_loss

    lr, scale, fraction = 0.4, math.sqrt(4e-8 / 128), 0.4
    figure, axes = panels("ab", width_ratios=[1, 1.6])
    fine = np.linspace(0.3, 2, 60)
    start = {n: effective_start(width=n, scale=scale) for n in (32, 64)}
    rates = dict(fraction=fraction, lr=lr)
    linear = [time_to_loss(m / 2, target=1 / m, start=start[64], **rates) / lr for m in fine]
    wide = np.linspace(0, 2, 60)
    size = np.sqrt(2 + wide**2)
    points = [time_to_loss(r / 4, target=1 / r, start=start[32], **rates) / lr for r in size]
    margins = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6, 2.0)
    for margin in margins:
        setup = fs.Setup(
            fs.tasks.xor(margin),
            fs.nets.MLP(128),
            fs.inits.SmallRandom(scale),
            fs.rules.GradientDescent(lr),
            times=np.arange(0, 120) * lr,
        )
        run = fs.simulate(setup, seeds=4, observe="loss")
        steps = fs.gates.learning_times(run, fractions=fraction).time_to.values.ravel()[0] / lr
        axes["b"].plot(margin, steps, "o", color=INK, ms=6, zorder=4)
    axes["b"].plot(fine, linear, color=COLOURS[1], lw=THIN + 0.7)
    axes["b"].plot(wide, points, color=COLOURS[2], lw=THIN + 0.7)
    axes["b"].set(
        xlabel="margin Δ", ylabel="steps to 40 % of the loss", ylim=(0, 150), title="the ReLU network and two gatings"
    )
    border(axes["b"], math.sqrt(2 / 3))
    axes["b"].set_xticks([0, 0.5, math.sqrt(2 / 3), 1, 1.5, 2], ["0", "0.5", "√(2/3)  ", "  1", "1.5", "2"])
    for (x, y), sign in zip(((-1, -1), (1, -1), (-1, 1), (1, 1)), (-1, 1, 1, -1), strict=True):
        axes["a"].plot(x, y, "s" if sign > 0 else "o", color=COLOURS[0], ms=9, mfc=COLOURS[0] if sign > 0 else "white")
        axes["a"].annotate("+Δ" if sign > 0 else "−Δ", (x, y), (9, 9), textcoords="offset points", size=LEGEND_SIZE)
    axes["a"].set(
        xlabel="x₁",
        ylabel="x₂",
        xlim=(-1.7, 1.9),
        ylim=(-1.7, 1.9),
        title="third input ±Δ",
        xticks=(-1, 1),
        yticks=(-1, 1),
    )
    marks = [
        mark("ReLU, mean of four seeds", "o", ms=6),
        mark("target 1", "s", colour=COLOURS[0]),
        mark("target −1", "o", colour=COLOURS[0], mfc="white"),
    ]
    key(figure, {"one pathway per answer": COLOURS[1], "one pathway per point": COLOURS[2]}, kinds=(), marks=marks)
    return figure


# --- two-points.md ------------------------------------------------------------------------------------------------


def two_points_without_a_fit() -> Figure:
    """H, P and w of a linear network on two opposite points, from small and from large weights."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=3)
    half /= np.linalg.norm(half)
    task = fs.tasks.from_arrays(np.stack([-half, half]), np.array([[-1.0], [1.0]]))
    names = {"distance": "H", "output_distance": "P", "output_alignment": "w"}
    figure, axes = panels("ab")
    colours = dict(zip(names, COLOURS, strict=False))
    for letter, gain, until in (("a", 0.02, 8.0), ("b", 1.0, 2.5)):
        times = np.linspace(0, until, 126)
        setup = fs.Setup(
            task, fs.nets.DeepLinear(hidden=8), fs.inits.SmallRandom(gain), fs.rules.GradientDescent(0.01), times=times
        )
        run, known = fs.simulate(setup, observe=list(names)), fs.solve(setup, "TwoPoint", observe=list(names))
        for name, colour in colours.items():
            trained(axes[letter], run.times, run[name].reshape(1, -1), colour=colour)
            predicted(axes[letter], run.times, known[name].ravel(), colour=colour)
        axes[letter].set(xlabel=TIME, ylabel="squared distance", title=f"weights of σ = {gain:g}")
    key(
        figure,
        {
            "H, hidden layer": colours["distance"],
            "P, output": colours["output_distance"],
            "w, alignment": colours["output_alignment"],
        },
        kinds=("training", "closed form"),
    )
    return figure


def where_two_points_end() -> Figure:
    """The final hidden distance against the invariant of the start."""
    from festina.theories.two_point import final_distance

    figure, axes = panels("ab")
    task = fs.tasks.from_arrays(np.array([[-0.5], [0.5]]), np.array([[-0.5], [0.5]]))  # X = Y = 1
    line = np.linspace(-4, 4, 200)
    axes["a"].plot(line, line / 2 + np.sqrt(line**2 / 4 + 1), color=INK, ls=DASHES, lw=THIN)
    axes["a"].plot(line, np.maximum(line, 0), ":", color=GREY, lw=THIN)
    rng, layers = np.random.default_rng(1), []
    for _ in range(14):
        r, v = rng.uniform(0.1, 2), rng.uniform(-1.9, 1.9)
        layers.append((r, v))
    for r, v in layers:
        weights = [np.array([[r], [0.0]]), np.array([[v, 0.0]])]
        setup = fs.Setup(task, fs.nets.DeepLinear(hidden=2), fs.inits.Given(weights), times=[0.0, 200.0])
        end = fs.simulate(setup, observe="distance")["distance"].ravel()[-1]
        axes["a"].plot(r**2 - v**2, end, "o", color=COLOURS[0], ms=6)
    axes["a"].set(xlabel="A = H₀ − κ X P₀/H₀", ylabel="final squared distance H", title="X = Y = κ = 1")
    gains, draws = np.geomspace(0.03, 10, 40), np.random.default_rng(2).normal(size=(2, 4000))
    for target, colour in ((1.0, COLOURS[1]), (0.25, COLOURS[2])):
        ends = []
        for gain in gains:
            u, v = gain * draws
            h, p, w = u**2, (u * v) ** 2, (u * v) ** 2 - u * v * math.sqrt(target)
            ends.append(
                final_distance(
                    distance0=h, output0=p, alignment0=w, input_gap=1.0, target_gap=target, tau_h=1.0, tau_y=1.0
                )
            )
        low, middle, high = np.quantile(ends, (0.1, 0.5, 0.9), axis=1)
        axes["b"].fill_between(gains, low, high, color=colour, alpha=0.25, lw=0)
        axes["b"].loglog(gains, middle, color=colour, lw=THIN + 0.7)
    axes["b"].set(
        xlabel="size of the initial weights", ylabel="final squared distance H", title="one hidden unit, 4000 draws"
    )
    marks = [mark("training", "o", colour=COLOURS[0], ms=6)]
    key(figure, {"|Δy*| = 1": COLOURS[1], "|Δy*| = ½": COLOURS[2]}, kinds=(), marks=marks)
    return figure


def a_fit_that_holds_and_one_that_does_not() -> Figure:
    """The two fitted rates in a shallow network from small weights and in one from large weights."""
    task, names = fs.tasks.two_point(), ["distance", "output_distance", "output_alignment"]
    runs = (
        ("a", "leaky_relu", 0.35, (100, 100), 0.02, 40.0),
        ("b", "leaky_relu", 1.0, (100, 100), 0.02, 12.0),
        ("c", "tanh", 0.85, (50,) * 20, 0.00125, 7.5),
    )
    figure, axes = panels("abc")
    for letter, activation, gain, hidden, lr, until in runs:
        setup = fs.Setup(
            task,
            fs.nets.MLP(hidden, activation, bias=True),
            fs.inits.Xavier(gain),
            fs.rules.GradientDescent(lr),
            times=np.linspace(0, until, 151),
        )
        run = fs.simulate(setup, observe=[*names, "mean_gap", "loss"])
        layer = len(hidden) // 2
        fitted = fs.fit("TwoPoint", run, layer=layer)
        for k, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
            trained(
                axes[letter],
                run.times,
                run[name].reshape(1, len(run.times), -1)[..., layer if k == 0 else 0],
                colour=colour,
            )
            predicted(axes[letter], run.times, fitted.predicted[k], colour=colour)
        verdict = "applies" if fitted.applies else "does not apply"
        what = "two hidden layers" if len(hidden) == 2 else "tanh, 20 layers"
        axes[letter].set(xlabel=TIME, ylabel="squared distance", title=f"{what}, gain {gain:g}\nverdict: {verdict}")
    key(
        figure,
        dict(zip(("H, hidden layer", "P, output", "w, alignment"), COLOURS, strict=False)),
        kinds=("training", "fitted, two rates"),
    )
    return figure


# --- what-holds.md ------------------------------------------------------------------------------------------------


def printed_curves_and_training() -> Figure:
    """Three printed formulas, their corrections, and networks under training."""
    from festina.experiments._kit import printed_formulas
    from festina.theories.aligned_modes import mode

    as_printed, correct = COLOURS[1], COLOURS[0]
    figure, axes = panels("abc")
    times, start = np.linspace(0, 6, 121), 0.3
    task = fs.tasks.from_moments([[2.0]], [[0.5]])
    chain = fs.Setup(task, fs.nets.DeepLinear(hidden=(1, 1)), fs.inits.Aligned(start), times=times / 3)
    trained(axes["a"], times, fs.simulate(chain, observe="modes")["modes"][..., 0] / 4, colour=correct)
    known = mode(times / 3, singular_value=2.0, variance=0.5, start=start, depth=3)
    predicted(axes["a"], times, known / 4, colour=correct)
    axes["a"].plot(times, printed_formulas.very_deep_mode(times, 2.0, 0.5, start) / 4, color=as_printed, lw=THIN + 0.5)
    axes["a"].set(xlabel="time (τ/D)", ylabel="strength / target", title="three layers, one mode")

    target = np.zeros((6, 3))
    np.fill_diagonal(target, [2.0, 1.5, 1.0])
    task = fs.tasks.from_moments(target, np.eye(3), target @ target.T)
    balanced = fs.Setup(task, fs.nets.DeepLinear(hidden=3), fs.inits.Balanced(5.0, 0.2), times=np.linspace(0, 4, 81))
    run, exact = fs.simulate(balanced, observe="loss"), fs.solve(balanced, "BalancedRiccati", observe="loss")
    trained(axes["b"], balanced.times, run["loss"], colour=correct)
    predicted(axes["b"], balanced.times, exact["loss"], colour=correct)
    wrong = printed_formulas.balanced_map(balanced, balanced.times, 5.0, mended=False)
    axes["b"].plot(balanced.times, 0.5 * np.sum((wrong - target) ** 2, axis=(1, 2)), color=as_printed, lw=THIN + 0.5)
    axes["b"].set(xlabel=TIME, ylabel="loss", ylim=(0, 5), title="3-3-6 network, λ = 5")

    net = fs.nets.Gated.pathways([{"on": {"item": [k]}, "width": 8} for k in range(4)])
    gated = fs.Setup(fs.tasks.xor(margin=0.0), net, fs.inits.Decoupled(0.03), times=np.linspace(0, 30, 121))
    trained(axes["c"], gated.times, fs.simulate(gated, observe="loss")["loss"], colour=correct)
    right, wrong = (printed_formulas.four_pathways_loss(gated.times, 2**0.5 / 4, d, 0.03**2) for d in (1 / 2, 1 / 8))
    predicted(axes["c"], gated.times, right, colour=correct)
    axes["c"].plot(gated.times, wrong, color=as_printed, lw=THIN + 0.5)
    border(axes["c"], 0.0, across=True)
    axes["c"].set(xlabel=TIME, ylabel="loss", title="exclusive or, four pathways")
    key(figure, {"as printed": as_printed}, kinds=("training", "corrected"))
    return figure


def the_fastest_gates_depend_on_when_you_look() -> Figure:
    """Losses of two gatings and a ReLU network, and the gates that units can make."""
    setup = _relu_on_contexts(np.linspace(0, 216, 181))
    points = [{"name": f"point {k}", "on": np.eye(24)[k], "width": 25} for k in range(24)]
    nets = {
        "ReLU": (fs.nets.MLP(700), INK),
        "common + pairs": (fs.nets.Gated.contexts(subsets=2, contexts=3, items=8, width=100), COLOURS[1]),
        "common + points": (fs.nets.Gated.pathways([{"name": "common", "width": 100}, *points]), COLOURS[2]),
    }
    figure, axes = panels("aab")
    for net, colour in nets.values():
        loss = fs.simulate(setup.replace(net=net), observe="loss")["loss"][0]
        axes["a"].semilogy(setup.times, loss / loss[0], color=colour, lw=THIN + 0.7)
    for level, label in ((0.1, "10 %"), (0.01, "1 %")):
        border(axes["a"], level, label, across=True)
    axes["a"].set(xlabel=TIME, ylabel="loss / first loss", ylim=(1e-3, 1.3), title="losses of gatings cross")
    sizes = ((2, 2), (2, 3), (4, 2))
    possible = [len(fs.gates.implementable_patterns(fs.tasks.contextual(i, c, "hierarchy"))) for i, c in sizes]
    lemma, everything = [2**c + i * c for i, c in sizes], [2 ** (i * c) for i, c in sizes]
    for k, (counts, shade) in enumerate(((everything, "0.85"), (possible, "0.55"), (lemma, "0.15"))):
        axes["b"].bar(np.arange(3) + 0.27 * (k - 1), counts, 0.25, color=shade)
        for place, count in enumerate(counts):
            axes["b"].annotate(
                str(count),
                (place + 0.27 * (k - 1), count),
                (0, 2),
                textcoords="offset points",
                ha="center",
                size=LEGEND_SIZE,
            )
    axes["b"].set_yscale("log")
    axes["b"].set_xticks(range(3), [f"{i} × {c}" for i, c in sizes])
    axes["b"].set(xlabel="items × contexts", ylabel="number of gates", title="gates of one unit")
    marks = [
        mark(label, "s", colour=shade)
        for label, shade in (("all patterns", "0.85"), ("possible", "0.55"), ("of lemma 4.1", "0.15"))
    ]
    key(figure, {name: colour for name, (_, colour) in nets.items()}, kinds=(), marks=marks)
    return figure


if __name__ == "__main__":
    import sys
    import time

    for name in sys.argv[2:]:
        begun = time.process_time()
        with styled():
            globals()[name]().savefig(f"{sys.argv[1]}/{name}.png", dpi=96)
        print(name, f"{time.process_time() - begun:.1f} s of CPU")
