"""Many inputs, many outputs, one thing to learn between any two: which pairs have to be trained?

There are M input domains and M output domains. Every domain has items of its own, shown one-hot, and every output
domain has the same tree of features over them, with values 6, 4 and 3 for the features of the three levels:

    Y = [6 6 6 6; 4 4 0 0; 0 0 4 4; 3 I]  (seven features of four items; singular values √185, √41, 3, 3).

A sample shows an item in one input domain and asks for its features in one output domain. Of the M² pairs, K per
input domain are trained: i → i + j (mod M), j = −⌊(K − 1)/2⌋ … ⌊K/2⌋ [saxe2022], [saxe_slides, "routing network"].
Which output is asked for is told by the labels alone, so the task is for networks with gates.

The singular values of Σʸˣ are all products of those of Y and those of the pairs, over the number of samples. The
pairs make a circulant matrix, with singular values K (trained), M − K (untrained) or M (all), and for k = 1 … M − 1
|sin(πkK/M)/sin(πk/M)| (trained, untrained) or 0 (all).

**Other units.** The slides sum over the trained pairs the *mean* of (y − ŷ)² over the 28 entries of Y. With P = MK
pairs there are 4P samples, so that this loss is 2·4P/28 = 2MK/7 times the one of this library, ½⟨‖y − ŷ‖²⟩: 8 times
for M = 7 and K = 4. A step of rate lr on theirs is a step of rate (2MK/7)·lr on ours: their 0.02 is 0.16, and
their 500 epochs last 80 units of time. (With f features in the tree of other `levels`: 2MK/f.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .._foundation.checks import choice, real_array, whole
from .._foundation.errors import BadInput
from ._recipe import recipe
from .base import Task
from .hierarchy import hierarchy_block, hierarchy_eigenvalues
from .own_data import from_arrays

PAIRS = ("trained", "untrained", "all")


@recipe
def routing(
    domains: int = 7, trained: int = 4, pairs: str = "trained", levels: Sequence[float] = (6.0, 4.0, 3.0)
) -> Task:
    """Items of `domains` input domains, with their features in as many output domains, one at a time.

    `trained` is the number of output domains that each input domain is trained with; `pairs` says which pairs are
    the samples: "trained", "untrained" (all others) or "all". `levels` are the values of the features at each level
    of the tree, from the root on. Labels, from 0: "source" (input domain), "target" (output domain) and "item".
    """
    domains, trained = whole(domains, "domains"), whole(trained, "trained")
    values = real_array(levels, "levels", ndim=1)
    if trained > domains:
        raise BadInput(f"trained = {trained} of {domains} domains", "trained <= domains", "train fewer pairs")
    if len(values) == 0:
        raise BadInput("levels is empty", "a number for each level of the tree", "give levels=(6, 4, 3)")
    choice(pairs, "pairs", PAIRS)
    if pairs == "untrained" and trained == domains:
        raise BadInput(
            f"pairs = 'untrained' with trained = {trained} of {domains} domains",
            "pairs that are not trained",
            "train fewer pairs, or use pairs='all'",
        )
    number = np.arange(domains)
    shift = (number[None, :] - number[:, None] + (trained - 1) // 2) % domains
    used = {"trained": shift < trained, "untrained": shift >= trained, "all": shift >= 0}[pairs]
    block = np.repeat(values, 2 ** np.arange(len(values)))[:, None] * hierarchy_block(2 ** (len(values) - 1))
    features, items = block.shape
    source, target = (np.repeat(ends, items) for ends in np.nonzero(used))
    item = np.tile(np.arange(items), used.sum())
    x, y = np.zeros((len(item), domains, items)), np.zeros((len(item), domains, features))
    sample = np.arange(len(item))
    x[sample, source, item] = 1.0
    y[sample, target] = block.T[item]
    task = from_arrays(
        x.reshape(len(item), -1),
        y.reshape(len(item), -1),
        items=[f"item {i}, domain {a + 1} to {b + 1}" for a, b, i in zip(source, target, item, strict=True)],
        inputs=[f"item {i} of domain {d + 1}" for d in number for i in range(items)],
        features=[f"feature {f} of domain {d + 1}" for d in number for f in range(features)],
        labels={"source": source, "target": target, "item": item},
    )
    waves = np.arange(1, domains)
    ripples = np.abs(np.sin(np.pi * waves * trained / domains) / np.sin(np.pi * waves / domains)) * (pairs != "all")
    products = np.outer([used[0].sum(), *ripples], np.sqrt(hierarchy_eigenvalues(values)))
    return dataclasses.replace(task, stated_spectrum=np.sort(products.ravel())[::-1] / len(item))
