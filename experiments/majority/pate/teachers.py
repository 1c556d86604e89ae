"""Teachers in PyTorch: SGD, and DP-SGD by opacus. Imported only when teachers are trained.

Opacus's ``secure_mode`` stays off: its noise comes from a seeded generator in floating point, so
that a run can be repeated. The epsilon is that of the ideal mechanism; these teachers are for
experiments and must not be published as private.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]
from opacus.accountants import PRVAccountant  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]
from torch.utils.data import (  # pyright: ignore[reportMissingImports]
    DataLoader,
    TensorDataset,
)

from dpopt.files import versions
from experiments.data.mnist import SIDE, Digits
from experiments.majority.pate.rates import (
    HELD_OUT,
    KINDS,
    PLAIN_RATES,
    PRIVATE_RATES,
    Training,
    disjoint_parts,
    scan_table,
)
from experiments.majority.pate.votes import Bits, Run, Votes
from experiments.registry import Table, track

_FINE = 1e-3


def accounted_epsilon(training: Training, size: int, error: float = 0.01) -> float:
    """Return the epsilon of one private teacher at delta, as opacus's PRV accountant bounds it."""
    accountant = PRVAccountant()
    batches = training.steps(size) // training.epochs
    accountant.history = [(training.noise_multiplier, 1.0 / batches, training.steps(size))]
    with warnings.catch_warnings():
        # Renyi orders only size the grid on which the accountant then convolves.
        warnings.filterwarnings("ignore", message="Optimal order is the", category=UserWarning)
        return float(accountant.get_epsilon(training.delta, eps_error=error))


def train_votes(
    digits: Digits, training: Training, seeds: tuple[int, ...], *, dataset: str = "mnist"
) -> Votes:
    """Train private and non-private teachers for each seed; return their votes on the test images.

    A seed fixes the parts, the initial weights, the batches and the noise: on one machine, with
    the same versions and number of threads, the same seed gives the same votes.
    """
    size = training.part_size(len(digits.train_labels))
    runs = []
    for seed in seeds:
        private = train_teachers(digits, training, seed, private=True)
        plain = train_teachers(digits, training, seed, private=False)
        runs.append(Run(seed, private, plain))
    record: dict[str, Any] = {
        "training": asdict(training),
        "images_per_teacher": size,
        "unused_images": len(digits.train_labels) - size * training.teachers,
        "steps": training.steps(size),
        "accountant": "opacus PRVAccountant, eps_error 0.01",
        "epsilon_at_error_0.001": accounted_epsilon(training, size, _FINE),
        "secure_mode": False,
        "threads": torch.get_num_threads(),
        "data_sha256": digits.sha256,
        "versions": versions() | {name: version(name) for name in ("torch", "opacus")},
    }
    epsilon = accounted_epsilon(training, size)
    return Votes(
        dataset, digits.classes, digits.test_labels, tuple(runs), epsilon, training.delta, record
    )


def train_teachers(digits: Digits, training: Training, seed: int, *, private: bool) -> Bits:
    """Train the teachers of one run; return their votes, shape (K, test images).

    Private and non-private teachers of one seed use the same parts and start from the same weights.
    """
    sequence = np.random.SeedSequence(seed)
    parts_seed, *teacher_seeds = sequence.spawn(1 + training.teachers)
    parts = disjoint_parts(len(digits.train_labels), training, np.random.default_rng(parts_seed))
    images, labels = _tensors(digits.train_images, digits.train_labels)
    test, _ = _tensors(digits.test_images, digits.test_labels)
    votes = []
    for part, teacher_seed in track(zip(parts, teacher_seeds, strict=True)):
        own = TensorDataset(images[part], labels[part])
        state = [int(word) for word in teacher_seed.generate_state(3, np.uint64)]
        model = _trained(own, training, state, private=private)
        with torch.no_grad():
            votes.append(model(test).argmax(dim=1).numpy().astype(np.uint8))
    return np.array(votes, dtype=np.uint8)


def network() -> nn.Sequential:
    """Return a teacher: two convolutions with ReLU and 2x2 max pooling, and a linear layer.

    The convolutions are 5x5, of 16 and 32 channels, with padding 2.
    """
    side = SIDE // 4
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * side * side, 2),
    )


def _tensors(images: Bits, labels: Bits) -> tuple[torch.Tensor, torch.Tensor]:
    scaled = (images.astype(np.float32) / 255.0)[:, None]
    return torch.from_numpy(scaled), torch.from_numpy(labels.astype(np.int64))


def _trained(
    data: TensorDataset, training: Training, state: list[int], *, private: bool
) -> nn.Module:
    weights_seed, batches_seed, noise_seed = state
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(weights_seed)
        model: nn.Module = network()
    rate = training.private_rate if private else training.plain_rate
    optimiser: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    loader: DataLoader = DataLoader(
        data,
        batch_size=training.batch_size,
        shuffle=True,
        generator=torch.Generator().manual_seed(batches_seed),
    )
    with warnings.catch_warnings():
        # Both warnings are expected: the noise is seeded on purpose (see the top of this file), and
        # the first layer's inputs need no gradient, which opacus's hooks allow for.
        warnings.filterwarnings("ignore", message="Secure RNG turned off", category=UserWarning)
        warnings.filterwarnings(
            "ignore", message="Full backward hook is firing", category=UserWarning
        )
        if private:
            model, optimiser, loader = PrivacyEngine(accountant="prv").make_private(
                module=model,
                optimizer=optimiser,
                data_loader=loader,
                noise_multiplier=training.noise_multiplier,
                max_grad_norm=training.clipping,
                noise_generator=torch.Generator().manual_seed(noise_seed),
            )
        _descend(model, optimiser, loader, training.epochs)
    return model


def _descend(
    model: nn.Module, optimiser: torch.optim.Optimizer, loader: DataLoader, epochs: int
) -> None:
    loss = nn.CrossEntropyLoss()
    model.train()
    for _ in range(epochs):
        for images, labels in loader:
            optimiser.zero_grad()
            loss(model(images), labels).backward()
            optimiser.step()
    model.eval()


def scan(digits: Digits, training: Training, seeds: tuple[int, ...], dataset: str) -> Table:
    """Train teachers at every learning rate on a part of the training images; test on others."""
    records = []
    for seed in seeds:
        part = digits.hold_out(len(digits.train_labels) // HELD_OUT, seed)
        for kind, rates in zip(KINDS, (PRIVATE_RATES, PLAIN_RATES), strict=True):
            for rate in rates:
                at = replace(training, private_rate=rate, plain_rate=rate)
                votes = train_teachers(part, at, seed, private=kind == KINDS[0])
                records.append((dataset, kind, rate, seed, votes, part.test_labels))
    return scan_table(records)
