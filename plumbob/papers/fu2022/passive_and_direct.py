"""Passive model completion on Breast Cancer Wisconsin, and the direct attack where logits cross the cut.

Of the paper's data only that table is here (CIFAR, CINIC, Yahoo, Criteo, histopathology and Tiny ImageNet are not, or in part).
Settings are those of the authors' commands: 20 known labels and 14 columns at the attacker, who is the only passive party. The
active completion, whose party is malicious, is another attack.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks import attack_named
from plumbob.attacks.own_column_labels import labels_of_own_columns
from plumbob.data import registry
from plumbob.federation import Federation, split
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import below, every
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, KnownLabels, Schema, Threat, cut

COLUMNS, LABELS = 14, 10  # of the attacker; known of each class
THREAT = Threat(
    "fu2022", "a passive party that knows 10 labels of each class", (Schema(), KnownLabels(LABELS)), active=False
)
EPOCHS, TRIALS = {"smoke": 5, "paper": 100}, {"smoke": 1, "paper": 5}
STEPS = {"smoke": 60, "paper": 5 * 1_024}


def wisconsin() -> Federation:
    table = registry.load("breast")
    names = [column.name for column in table.columns]
    return split(table, {"active": names[COLUMNS:], "passive": names[:COLUMNS]}, "active")


def passive(scale: Scale, seed: int) -> CheckResult:
    """The completed model, beside the best model of own columns with the same labels."""
    found: dict[str, list[float]] = {
        "completed": [],
        "completed, weight 1": [],
        "own columns": [],
        "most frequent class": [],
    }
    federation = wisconsin()
    for trial in range(TRIALS[scale]):
        rng = np.random.default_rng([seed, trial])
        log = SplitNetwork(epochs=EPOCHS[scale]).train(federation, federation, rng)
        view = cut(log, THREAT)
        truth = truth_of(log, view)
        assert truth.label is not None
        label, alone = truth.unlabelled(truth.label), labels_of_own_columns(view)
        assert alone is not None
        for title, weight in (("completed", 50.0), ("completed, weight 1", 1.0)):
            guess = attack_named("model_completion", steps=STEPS[scale], weight=weight).run(
                view, np.random.default_rng(trial)
            )
            assert guess.labels is not None
            found[title].append(round(float(np.mean(truth.unlabelled(guess.labels) == label)), 4))
        found["own columns"].append(round(float(np.mean(truth.unlabelled(alone) == label)), 4))
        found["most frequent class"].append(round(float(np.bincount(label).max()) / len(label), 4))
    answers = [below(found[other], found["completed"]) for other in ("own columns", "most frequent class")]
    expected = (
        "with 10 labels of a class the completed model names more labels than own columns with the same labels do"
    )
    why = "the authors' code reports the best epoch by the true labels and trains the bottom model on; here the last step counts"
    return CheckResult(every(answers), dict(found), expected, TRIALS[scale], why)


def direct(scale: Scale, seed: int) -> CheckResult:
    """Labels read off the gradients of logits."""
    federation = wisconsin()
    protocol = SplitNetwork(hidden=(2,), top="sum", epochs=2)
    log = protocol.train(federation, federation, np.random.default_rng(seed))
    view = cut(log, THREATS["passive-training"])
    guess = attack_named("direct_label_inference").run(view, np.random.default_rng(seed))
    assert guess.labels is not None
    right = float(np.mean(guess.labels == log.sealed("active")["label"]))
    return CheckResult(right == 1.0, {"labels": right}, "every label is read", 1)


CLAIMS: tuple[Claim, ...] = (
    Claim("fu2022", "F1", "5", "passive model completion beats what the columns tell", passive),
    Claim("fu2022", "F2", "5", "the direct attack reads every label where logits cross", direct),
)
