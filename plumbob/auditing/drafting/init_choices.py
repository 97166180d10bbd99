"""What the user wants audited, as far as given, and the threats, protocols and defences that apply to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from plumbob.attacks import Attack, attacks
from plumbob.auditing.planning import sweep
from plumbob.data.files import read_frame
from plumbob.data.sampling import read_sample
from plumbob.defences import DEFENCES, defence_named
from plumbob.errors import BadInput
from plumbob.formats import read_model
from plumbob.protocols import PROTOCOLS, protocol_named
from plumbob.threats import THREATS
from plumbob.trust import NO_CODE, Trust


@dataclass(frozen=True)
class Wishes:
    """What the user wants audited, as far as given."""

    data: str = ""
    parties: dict[str, Path] = field(default_factory=dict)
    id: str = ""
    label: str = ""
    label_bins: int | None = None
    active: str = ""
    ignore: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    models: tuple[Path, ...] = ()  # files of models that exist already
    columns: tuple[str, ...] = ()  # their inputs in order, where the files do not name them
    trust: Trust = NO_CODE
    threats: tuple[str, ...] = ()
    defences: tuple[str, ...] = ()
    effort: str = ""
    sample: int | None = None  # rows to read where files are large

    @property
    def kinds(self) -> tuple[str, ...]:
        """The protocols by name: those requested, and those of the models."""
        return (*self.protocols, *(read_model(path, trust=self.trust).kind for path in self.models))

    @property
    def enough(self) -> bool:
        """Whether everything without a default was given."""
        return bool(self.data or (self.parties and self.id and self.label))


def named_files(pairs: Iterable[str]) -> dict[str, Path]:
    """Parties and their files, written `bank=bank.csv`.

    >>> named_files(["bank=bank.csv"])
    {'bank': PosixPath('bank.csv')}
    """
    found: dict[str, Path] = {}
    for pair in pairs:
        name, sign, file = pair.partition("=")
        if not (name.strip() and sign and file.strip()):
            raise BadInput(f"--party: expected NAME=FILE, such as bank=bank.csv, got '{pair}'")
        if name.strip() in found:
            raise BadInput(f"--party: duplicate party '{name.strip()}'; every party has one file")
        found[name.strip()] = Path(file.strip()).expanduser()
    return found


def opened(
    parties: Mapping[str, Path], id_column: str | None = None, sample: int | None = None
) -> dict[str, pd.DataFrame]:
    if len(parties) < 2:
        raise BadInput("a federation needs at least two parties; name each with its file (--party NAME=FILE)")
    if sample is not None:
        return read_sample(parties, rows=sample, seed=0, id_column=id_column)[0]
    return {name: read_frame(file, text=[id_column] if id_column else []) for name, file in parties.items()}


def common(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """Columns that every file has, those without duplicate values (likely ids) first."""
    first, *others = frames.values()
    shared = [str(column) for column in first.columns if all(column in other.columns for other in others)]
    return sorted(shared, key=lambda column: not first[column].is_unique)


def fitting_threats(protocols: Sequence[str], active: str, parties: Sequence[str]) -> list[str]:
    """Built-in threats with an applicable attack on one of the protocols, and possible with these parties."""
    names = parties or ("active", "passive")
    fitting = []
    for threat in THREATS.values():
        try:
            threat.curious(active or names[0], names)
        except BadInput:
            continue
        if any(attack.why_not(name, threat) is None for attack in _usual() for name in protocols):
            fitting.append(threat.name)
    return fitting


def usual_threats(protocols: Sequence[str]) -> tuple[str, ...]:
    """Who is curious where nobody says: the active party, and where training is the exchange both sides, for one has the label.

    >>> usual_threats(["logistic_regression"]), usual_threats(["split_network"])
    (('active',), ('active-training', 'passive-training'))
    """
    phases = dict.fromkeys(PROTOCOLS[name].phase for name in protocols if name in PROTOCOLS)
    usual = {"prediction": ("active",), "training": sweep.THREATS["training"]}
    return tuple(threat for phase in phases for threat in usual[phase])


def fitting_protocols(threats: Sequence[str]) -> list[str]:
    """Protocols on which some attack applies to one of the threats."""
    known = [THREATS[name] for name in threats if name in THREATS]
    kinds = tuple(PROTOCOLS)
    return [name for name in kinds if any(a.why_not(name, threat) is None for a in _usual() for threat in known)]


def _usual() -> list[Attack]:
    """The attacks of a plan that names none."""
    return [attack for attack in attacks().values() if attack.by_default]


def fitting_defences(wishes: Wishes) -> list[str]:
    """Defences that have an effect on one of the protocols, and `none`; existing models are not retrained."""
    chosen = [(protocol_named(name), place >= len(wishes.protocols)) for place, name in enumerate(wishes.kinds)]
    named = {name: defence_named(name) for name in DEFENCES}
    return [
        name
        for name, one in named.items()
        if any(sweep.fits(one, kind) and not (own and "training" in sweep.points(one)) for kind, own in chosen)
    ]
