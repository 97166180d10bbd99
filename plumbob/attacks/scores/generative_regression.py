"""Generative regression (GRNA, luo2021 Section V, Algorithm 2): a network learns to generate rows that match the scores.

A generator f_G turns a row's known columns and noise r ~ N(0, 1) into its unknown ones; the joint model f scores the
completed row, and f_G is trained until these scores match the observed ones (Eq 9):
    min over f_G of   mean_t |f(x_own, f_G(x_own, r)) - v|^2  +  weight * sum_j var(f_G)_j
It never sees a true value: what it learns of a column is what the scores and the known columns say of it. A forest has
no gradient, so a network is first fitted to its votes on rows drawn evenly from the whole space (Section V-B); the
generator is then trained through that network, against the scores that the forest really gave. Scores that a known
defence changed: their distance from what fits the release takes the place of the plain one (`release_likelihood.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal

import numpy as np

from plumbob.attacks._common.differentiable_models import Logits, logits_of
from plumbob.attacks._common.release_likelihood import SCORE_RELEASES, Misfit, meaning, squared
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.lazy_imports import Tensor, functional, torch
from plumbob.protocols.base import Model
from plumbob.protocols.scores.boosted_trees import BoostedModel
from plumbob.protocols.scores.logistic_regression import LinearModel
from plumbob.protocols.scores.neural_network import Network
from plumbob.protocols.scores.split_models import SplitModel
from plumbob.protocols.shared.adam import Adam
from plumbob.protocols.shared.networks import one_thread
from plumbob.protocols.shared.trees import Forest
from plumbob.setting_sources import authors, ours, printed
from plumbob.setting_types import Count, Positive, Whole
from plumbob.threats import View, WhiteBox

Schedule = Literal["constant", "cycle"]
MatchedBy = Literal["scores", "logs"]
GeneratorLayer = list[Tensor]  # weight, bias and, of a hidden layer, scale and shift of its normalisation

GENERATOR_LAYERS = (600, 200, 100)  # the generator's layers (Section VI-C)
SURROGATE = (2000, 200)  # those of the network that stands for a forest
VARIANCE_WEIGHT = 0.25 / 64  # the authors' 0.25 beside a sum over 64 rows; ours is a mean, whatever the batch
SURROGATE_RATE = 1e-3
SURROGATE_BATCH = 128
SURROGATE_SHARE = 8  # how many times the updates of a surrogate that is fitted evenly
ROWS_GENERATED_TOGETHER = 8192  # rows generated together at the end
DIFFERENTIABLE_MODELS: dict[str, type[Model]] = {
    "logistic_regression": LinearModel,
    "neural_network": Network,
    "random_forest": Forest,
    "boosted_trees": BoostedModel,
    "split_models": SplitModel,
}
LEAST_LOG_SCORE = 1e-6  # the smallest score whose logarithm is looked at
LOG_WEIGHT = 0.05  # what a squared gap of logarithms counts beside the variance constraint
MEANS_RATE, MEANS_BATCH = 0.05, 128


# Ours: fewer and larger steps, known columns of one size, the mean of several guesses, a forest's stand-in near real rows
FAST = {
    "steps": 600,
    "batch": 128,
    "rate": 2e-3,
    "schedule": "cycle",
    "standardise": True,
    "draws": 8,
    "near": True,
}


class GenerativeRegression(Attack):
    """GRNA as published: Algorithm 2 in the paper's objective, and in the steps of its authors' code.

    Ours: `fast` takes fewer and larger steps; `sharp` also matches logarithms, in which a small score tells as much as a large
    one, and learns the columns' means before their rows.

    `known`, `noise`, `constraint` and `generator` switch off the parts that the paper's Table III takes away.
    """

    name = "generative_regression"
    aliases = ("GRNA",)
    identity = (
        "GenerativeRegression(epochs, steps, batch, rate, schedule, standardise, distance, means, draws, "
        "near, known, noise, constraint, generator)"
    )
    summary = "GRNA: trains a generator of the unknown columns until the model's scores match the observed ones"
    paper = "luo2021"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("logistic_regression", "neural_network", "random_forest", "boosted_trees", "split_models")
    requires = (WhiteBox,)
    knows = SCORE_RELEASES
    outdone = {"random_forest": "forest_boxes", "boosted_trees": "forest_boxes"}  # plumbob/P3
    cost_terms = ("1", "draws", "draws u", "draws w", "n", "n w")  # a generator, trained in steps
    presets = {
        "fast": FAST,
        "sharp": FAST | {"distance": "logs", "means": 150},
        "small": FAST | {"epochs": 3, "steps": 40},
    }
    sources = {
        "epochs": authors("GRNA/config.ini"),
        "steps": ours("no limit besides the epochs"),
        "batch": authors("GRNA/main-grna.py"),
        "rate": authors("GRNA/utils/Trainers.py, Adam's"),
        "schedule": authors("GRNA/utils/Trainers.py"),
        "standardise": authors("GRNA/utils/VFLDatasets.py scales to (0, 1) only, as Section VI-A"),
        "distance": printed("Eq 9, with the MSE of Section V-A"),
        "means": ours("the paper has no such step"),
        "draws": printed("Section V-A: one random vector a row"),
        "near": printed("Section V-B: dummy samples from the whole space"),
        "known": printed("Algorithm 2, line 8"),
        "noise": printed("Algorithm 2, line 6"),
        "constraint": printed("Eq 9, weighed as in GRNA/config.ini"),
        "generator": printed("Algorithm 2"),
        "adaptive": printed("Section VII, where defences meet the same attack"),
    }

    def __init__(
        self,
        *,
        epochs: Whole = 60,
        steps: Whole | None = None,
        batch: Whole = 64,
        rate: Positive = 1e-4,
        schedule: Schedule = "constant",
        standardise: bool = False,
        distance: MatchedBy = "scores",
        means: Count = 0,
        draws: Whole = 1,
        near: bool = False,
        known: bool = True,
        noise: bool = True,
        constraint: bool = True,
        generator: bool = True,
        adaptive: bool = False,
    ) -> None:
        for name, value in (("epochs", epochs), ("steps", steps), ("batch", batch), ("draws", draws)):
            if value is not None and value < 1:
                raise BadInput(f"generative regression: expected {name} >= 1, got {value}")
        if not 0 < rate < math.inf:
            raise BadInput(f"generative regression: expected a rate above 0, got {rate}")
        if schedule not in ("constant", "cycle"):
            raise BadInput(f"generative regression: expected the schedule 'constant' or 'cycle', got '{schedule}'")
        if distance not in ("scores", "logs"):
            raise BadInput(f"generative regression: expected the distance 'scores' or 'logs', got '{distance}'")
        if means < 0:
            raise BadInput(f"generative regression: expected means >= 0, got {means}")
        self.epochs = epochs  # passes over the rows, as far as `steps` allows
        self.steps = steps  # most updates of the generator; None: no limit
        self.batch = batch
        self.rate = rate
        self.schedule = schedule
        self.standardise = standardise  # known columns to mean 0 and variance 1, so that noise does not drown them
        self.distance = distance  # what of the scores is matched; votes and defended scores have no logarithms
        self.means = means  # steps that learn one value per column, before the generator learns rows
        self.draws = draws  # guesses from this many draws of the noise are averaged
        self.near = near  # a forest's surrogate is fitted near real rows; else evenly over the box, as printed
        self.known = known
        self.noise = noise
        self.constraint = constraint
        self.generator = generator
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        with one_thread():
            *_, guess = self.progress(view, rng)
            return Guess(view.unknown_names, guess())

    def progress(self, view: View, rng: np.random.Generator) -> Iterator[Callable[[], FloatArray]]:
        """Train, and after every pass over the rows offer the guess so far; the last offer is the attack's guess."""
        view = self.seen(view)
        if view.model is None:
            raise BadInput("generative regression needs the model (white box)")
        random = torch.Generator().manual_seed(int(rng.integers(2**62)))
        scores = np.asarray(view.received("scores"), dtype=np.float64)
        told = torch.tensor(np.flatnonzero(~np.isnan(scores).any(axis=1)))
        observed = torch.tensor(scores, dtype=torch.float32)
        own = torch.tensor(view.own, dtype=torch.float32)
        updates = self.epochs * math.ceil(len(told) / self.batch)
        updates = updates if self.steps is None else min(self.steps, updates)
        model = (
            DIFFERENTIABLE_MODELS[view.protocol]
            .from_arrays(view.model)
            .reordered(np.concatenate([view.known, view.unknown]))
        )
        if isinstance(model, Forest | BoostedModel):
            logits = surrogate(model, own, len(view.unknown), self._surrogate_updates(updates), random, near=self.near)
        else:
            logits = logits_of(view.protocol, model.arrays())
        far = self._far(view)
        make, parameters = self._maker(own, len(view.unknown), random)
        if self.generator and len(told):
            self._learn_means(parameters[-1], logits, own[told], observed[told], far, random)
        optimiser = Adam(parameters, lr=self.rate, fused=True)
        done = 0
        while done < updates:
            for rows in torch.split(told[torch.randperm(len(told), generator=random)], self.batch):
                if done == updates:
                    break
                optimiser.lr = self.rate * self._share_of_rate(done, updates)
                made = make(rows)
                loss = far(logits(torch.cat([own[rows], made], dim=1)), observed[rows]).mean()
                if self.constraint and self.generator:
                    loss = loss + VARIANCE_WEIGHT * made.var(dim=0, correction=0).sum()
                descend(optimiser, loss)
                done += 1
            yield lambda: self._guess(make, len(own), len(view.unknown))
        if not updates:  # every row was withheld
            yield lambda: self._guess(make, len(own), len(view.unknown))

    def _surrogate_updates(self, updates: int) -> int:
        """A surrogate near real rows is worth its time: elsewhere, however well fitted, it misleads the generator."""
        return math.ceil(updates / 3) * (SURROGATE_SHARE if self.near else 1)

    def _far(self, view: View) -> Misfit:
        """Distance of every row: logits, what was observed -> a number; that of a known defence, if there is one."""
        known = meaning(view.defence)
        logs = self.distance != "scores" and view.protocol not in ("random_forest", "boosted_trees")
        if known is None:
            return log_distance if logs else score_distance
        if logs and known.fair:  # logarithms of scores below the width of a release are not known
            least = max(LEAST_LOG_SCORE, known.width)
            return lambda logits, observed: log_distance(logits, known.middle(observed), least)
        return lambda logits, observed: known.training(torch.softmax(logits, dim=1), observed)

    def _learn_means(
        self, bias: Tensor, logits: Logits, own: Tensor, observed: Tensor, far: Misfit, random: torch.Generator
    ) -> None:
        """Train the generator's last bias alone, from the mean of all known cells, as if rows did not differ."""
        if not self.means:
            return
        middle = own.mean().clamp(0.02, 0.98) if own.numel() else torch.tensor(0.5)
        with torch.no_grad():
            bias.copy_(torch.logit(middle))
        optimiser = Adam([bias], lr=MEANS_RATE)
        for _ in range(self.means):
            rows = torch.randint(len(own), (MEANS_BATCH,), generator=random)
            made = torch.sigmoid(bias).expand(MEANS_BATCH, -1)
            loss = far(logits(torch.cat([own[rows], made], dim=1)), observed[rows]).mean()
            descend(optimiser, loss)

    def _maker(
        self, own: Tensor, unknown: int, random: torch.Generator
    ) -> tuple[Callable[[Tensor], Tensor], GeneratorLayer]:
        """A function from row numbers to their unknown columns, and the parameters to train in it."""
        if not self.generator:  # the columns themselves, from a uniform start and with nothing to hold them in (0, 1)
            free = torch.rand(len(own), unknown, generator=random).requires_grad_()
            return lambda rows: free[rows], [free]
        inputs = own
        if self.standardise:
            centred = own - own.mean(dim=0)
            spread = (centred**2).mean(dim=0).sqrt()
            inputs = centred / torch.where(spread > 1e-6, spread, torch.inf)
        inputs = inputs if self.known else inputs[:, :0]
        size = unknown if self.noise else 0
        layers = fresh((inputs.shape[1] + size, *GENERATOR_LAYERS, unknown), random, normalised=True)

        def make(rows: Tensor) -> Tensor:
            noise = torch.randn(len(rows), size, generator=random)
            return torch.sigmoid(forward(layers, torch.cat([inputs[rows], noise], dim=1)))

        return make, [tensor for layer in layers for tensor in layer]

    def _guess(self, make: Callable[[Tensor], Tensor], rows: int, unknown: int) -> FloatArray:
        """The unknown columns of all rows, averaged over draws of the noise."""
        draws = self.draws if self.generator and self.noise else 1
        guess = np.zeros((rows, unknown))
        with torch.no_grad():
            for begin in range(0, rows, ROWS_GENERATED_TOGETHER):
                part = torch.arange(begin, min(begin + ROWS_GENERATED_TOGETHER, rows))
                for _ in range(draws):
                    guess[begin : begin + ROWS_GENERATED_TOGETHER] += make(part).numpy()
        return guess / draws

    def _share_of_rate(self, step: int, steps: int) -> float:
        """The cycle rises over a tenth of the steps and falls along a cosine to zero."""
        if self.schedule == "constant":
            return 1.0
        rise = max(1, steps // 10)
        if step < rise:
            return (step + 1) / rise
        return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def descend(optimiser: Adam, loss: Tensor) -> None:
    """One step of training."""
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves this method untyped
    optimiser.step()


def score_distance(logits: Tensor, observed: Tensor) -> Tensor:
    """Squared distance of the scores, as in Eq 9."""
    return squared(torch.softmax(logits, dim=1), observed)


def log_distance(logits: Tensor, observed: Tensor, least: float = LEAST_LOG_SCORE) -> Tensor:
    """Huber's distance of log-scores up to a shift, which softmax takes away; small scores are taken for `least`."""
    made, seen = torch.log_softmax(logits, dim=1).clamp(min=math.log(least)), torch.log(observed.clamp(min=least))
    gap = (made - made.mean(dim=1, keepdim=True)) - (seen - seen.mean(dim=1, keepdim=True))
    return LOG_WEIGHT * functional.huber_loss(gap, torch.zeros_like(gap), reduction="none").sum(dim=1)


def surrogate(
    forest: Forest | BoostedModel, own: Tensor, unknown: int, updates: int, random: torch.Generator, *, near: bool
) -> Logits:
    """A network that votes like the forest, fitted to its votes on dummy rows: known cells of real rows beside drawn ones.

    The drawn cells of a row lie in a box of random place and width, so that columns of little spread are met too. Unless
    `near`, all cells are drawn evenly, as luo2021 has it.
    """
    updates, known = max(1, updates), own.shape[1]
    columns = known + unknown
    layers = fresh((columns, *SURROGATE, forest.classes), random, normalised=False)
    parameters = [tensor for layer in layers for tensor in layer]
    optimiser = Adam(parameters, lr=SURROGATE_RATE, fused=True)
    dummies = torch.rand(updates * SURROGATE_BATCH, columns, generator=random)
    if near:
        place, width = torch.rand(2, len(dummies), 1, generator=random)
        dummies[:, :known] = own[torch.randint(len(own), (len(dummies),), generator=random)]
        dummies[:, known:] = place + (dummies[:, known:] - place) * width
    votes = np.concatenate(
        [forest.scores(part.double().numpy()) for part in torch.chunk(dummies, math.ceil(updates / 16))]
    )
    batches = (torch.split(rows, SURROGATE_BATCH) for rows in (dummies, torch.tensor(votes, dtype=torch.float32)))
    for rows, said in zip(*batches, strict=True):
        loss: Tensor = ((torch.softmax(forward(layers, rows), dim=1) - said) ** 2).sum(dim=1).mean()
        descend(optimiser, loss)
    for tensor in parameters:
        tensor.requires_grad_(False)
    return lambda rows: forward(layers, rows)


def fresh(sizes: tuple[int, ...], random: torch.Generator, *, normalised: bool) -> list[GeneratorLayer]:
    """Untrained layers: weights and biases even within 1 / sqrt(inputs), as torch's own default."""
    layers: list[GeneratorLayer] = []
    for i, (before, after) in enumerate(pairwise(sizes)):
        bound = 1 / math.sqrt(max(1, before))
        layer = [torch.empty(shape).uniform_(-bound, bound, generator=random) for shape in ((after, before), (after,))]
        hidden = i < len(sizes) - 2
        layer += [torch.ones(after), torch.zeros(after)] if hidden and normalised else []
        layers.append([tensor.requires_grad_() for tensor in layer])
    return layers


def forward(layers: list[GeneratorLayer], x: Tensor) -> Tensor:
    """Linear layers, each hidden one followed by its normalisation, if it has one, and by ReLU."""
    for weight, bias, *norm in layers[:-1]:
        x = functional.linear(x, weight, bias)
        x = torch.relu(functional.layer_norm(x, bias.shape, norm[0], norm[1]) if norm else x)
    return functional.linear(x, *layers[-1])
