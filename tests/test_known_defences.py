"""What is known of defences: typed for attacks, arrays on disk."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import plumbob.attacks
import plumbob.known_label_defences  # its classes are counted too
from plumbob.defences import DEFENCES, NoDefence, defence_named
from plumbob.errors import BadInput
from plumbob.known_defences import (
    KnownBlinding,
    KnownCodebook,
    KnownDefence,
    KnownDefences,
    KnownDpHistograms,
    KnownLabelOnly,
    KnownNoise,
    KnownRounding,
)
from plumbob.threats import LUO2021, View, cut
from tests.defences.worlds import defended

KINDS = {kind.name: kind for kind in KnownDefence.__subclasses__()}


def written(known: KnownDefences) -> list[tuple[str, str, bytes]]:
    return [(key, array.dtype.str, array.tobytes()) for key, array in known.arrays.items()]


def test_every_defence_has_a_class_for_what_is_known_of_it() -> None:
    assert set(KINDS) == {name for name in DEFENCES if name != "none"}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_class_holds_all_that_the_defence_tells_in_the_same_bytes(name: str) -> None:
    told = defence_named(name).known()
    assert written(KnownDefences.of(told[KINDS[name]])) == written(told)


def test_arrays_are_named_and_ordered_as_in_records_of_earlier_versions() -> None:
    words = np.eye(2)
    known = KnownDefences.of(KnownNoise(1, True), KnownCodebook(2, words), KnownBlinding(), KnownDpHistograms(0.5))
    assert [(key, array.dtype.kind, array.tolist()) for key, array in known.prefixed().items()] == [
        ("defence/noise/sigma", "i", 1),
        ("defence/noise/clip", "b", True),
        ("defence/noise/repeats", "i", 1),
        ("defence/noise/on", "b", True),
        ("defence/codebook/levels", "i", 2),
        ("defence/codebook/on", "b", True),
        ("defence/codebook/words", "f", words.tolist()),
        ("defence/blinding/on", "b", True),
        ("defence/dp_histograms/epsilon", "f", 0.5),
    ]


def test_settings_are_read_as_their_types() -> None:
    known = KnownDefences({"noise/sigma": np.array(1), "noise/clip": np.array(False), "noise/on": np.array(True)})
    assert known[KnownNoise] == KnownNoise(1.0, False, 1)  # a record from before there were repeats
    assert type(known[KnownNoise].sigma) is float


def test_what_is_not_in_place_is_none() -> None:
    known = KnownDefences.of(KnownRounding(2))
    assert known.get(KnownLabelOnly) is None
    with pytest.raises(BadInput, match="expected the defence 'label_only', got rounding"):
        known[KnownLabelOnly]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"rounding/on": np.array(True)}, "defence 'rounding': expected its setting 'digits' in the record"),
        ({"rounding/digits": np.arange(3)}, "defence 'rounding': expected one number for 'digits'"),
        ({"rounding": np.array(True)}, "expected NAME/SETTING, got 'rounding'"),
    ],
)
def test_a_record_that_lacks_or_garbles_a_setting_is_refused(arrays: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        KnownDefences(arrays).get(KnownRounding)


def test_a_defence_that_nothing_here_knows_passes_through_a_saved_view(tmp_path: Path) -> None:
    log = defended(NoDefence(), rows=20)
    foreign = KnownDefences.named("foreign", {"strength": np.array([1.5, 2.5]), "tree/0": np.array(3)})
    foreign.seal(log)
    cut(log, LUO2021).save(tmp_path / "view.zip")
    defence = View.load(tmp_path / "view.zip").defence
    assert defence.names == ("foreign",)
    assert written(defence) == written(foreign)


def test_attacks_ask_for_defences_by_class_and_not_by_name() -> None:
    """No attack has a string such as a defence's name with a slash and a setting."""
    asked = re.compile(rf"""["'](?:{"|".join(KINDS)})/|/on["']|\.defence\.arrays""")
    folder = Path(plumbob.attacks.__file__).parent
    lines = [(path.name, line) for path in folder.rglob("*.py") for line in path.read_text().splitlines()]
    assert [(name, line) for name, line in lines if asked.search(line)] == []
