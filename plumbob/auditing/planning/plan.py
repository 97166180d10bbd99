"""The plan of an audit: what a user writes in YAML, checked before any work starts.

docs/plan.md documents every key. Short forms (`data: breast`, `threats: [active]`) are expanded first, so that
each place of the plan has one shape and an unknown key can be answered with the right one.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from plumbob import bundle
from plumbob.auditing.concluding.judging import LIMIT
from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.chosen import AttackPlan, Chosen, Effort, Part, by_signature, unnamed
from plumbob.auditing.planning.gate import Gate
from plumbob.auditing.planning.threat_plan import ThreatPlan, check_deviations, usual_deviations
from plumbob.data import registry
from plumbob.data.prepare import Rules
from plumbob.defences import DEFENCES, Defence, defence_named
from plumbob.errors import BadInput
from plumbob.protocols import PROTOCOLS, Protocol, protocol_named
from plumbob.protocols.scores.split_models import SplitModels
from plumbob.protocols.shared.hidden_codes import code_named
from plumbob.trust import Trust

PATHS = ("file", "recorded", "model")  # keys that name files

# What an effort fills in where the plan is silent: trials, the shares of unknown columns, and the most rows predicted.
EFFORTS: dict[str, dict[str, Any]] = {
    "quick": {"trials": 5, "unknown": [0.1, 0.3, 0.5], "rows": 2_000},
    "standard": {"trials": 10, "unknown": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "rows": 10_000},
    "thorough": {"trials": 20, "unknown": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], "rows": 1_000_000},
}


class PartyPlan(Part):
    """One party: its own file, or its columns of the shared one."""

    file: Path | None = None
    columns: tuple[str, ...] | None = None


class RulesPlan(Part):
    """What to do with columns that are not plain numbers."""

    categories: Literal["ordinal", "onehot", "drop"] = "ordinal"
    missing: Literal["refuse", "median", "drop_rows", "drop_column"] = "refuse"
    constant: Literal["drop", "keep"] = "drop"
    dates: Literal["days", "drop"] = "days"
    duplicates: Literal["first", "last", "refuse"] = "first"

    def rules(self) -> Rules:
        return Rules(**self.model_dump())


class DataPlan(Part):
    """A built-in data set by name, one file split by columns, a file per party, or a recorded run."""

    name: str | None = None
    file: Path | None = None
    recorded: Path | None = None
    parties: dict[str, PartyPlan] = Field(default_factory=dict)
    active: str | None = None
    label: str | None = None
    label_bins: int | None = Field(default=None, ge=2, le=50)
    id: str | None = None
    align: Literal["psi", "ids"] = "psi"
    ignore: tuple[str, ...] = ()
    sample: int | None = Field(default=None, ge=40)
    tiles: int | None = Field(default=None, ge=4, le=64)
    rules: RulesPlan = RulesPlan()

    @model_validator(mode="after")
    def _one_source(self) -> DataPlan:
        if self.recorded is not None:
            for key in type(self).model_fields:
                if key != "recorded" and getattr(self, key) != type(self).model_fields[key].get_default(
                    call_default_factory=True
                ):
                    raise ValueError(
                        f"a recorded run contains its own data, so '{key}' cannot be combined with 'recorded'"
                    )
            return self
        for key, what in (("label", "the label"), ("id", "the id column")):
            if getattr(self, key) is not None and getattr(self, key) in self.ignore:
                raise ValueError(
                    f"'ignore' names {what} '{getattr(self, key)}' ('{key}'); remove it from 'ignore' or name another column"
                )
        own_files = [name for name, party in self.parties.items() if party.file is not None]
        sources = [self.name is not None, self.file is not None, bool(own_files)]
        if sum(sources) != 1:
            raise ValueError("name one source: a data set ('name'), one 'file', a 'file' for each party, or 'recorded'")
        if self.name is None and not self.label:
            raise ValueError("name the label column ('label')")
        if self.name is None and len(self.parties) < 2:
            raise ValueError("name at least two parties ('parties')")
        if own_files and len(own_files) < len(self.parties):
            missing = next(name for name in self.parties if name not in own_files)
            raise ValueError(f"party '{missing}' has no 'file', but other parties do")
        if own_files and not self.id:
            raise ValueError("rows of several files are aligned by an id column; name it ('id')")
        if self.file is not None or (self.name is not None and self.parties):
            for name, party in self.parties.items():
                if not party.columns:
                    raise ValueError(f"party '{name}' has no columns; list them ('columns')")
        if self.name is not None:
            for key in ("label", "label_bins", "id"):
                if getattr(self, key) is not None:
                    raise ValueError(f"'{key}' is for your own files; the data set '{self.name}' defines its own")
            if self.tiles is not None and registry.find(self.name).kind != "image":
                raise ValueError(f"'tiles' is for images; the data set '{self.name}' is a table")
            if self.pictures and self.parties:
                raise ValueError(f"'{self.name}' is split into tiles ('tiles'), so it takes no 'parties'")
        elif self.tiles is not None:
            raise ValueError("'tiles' is for image data sets ('name'), not for your own tables")
        if self.active is not None and self.parties and self.active not in self.parties:
            raise ValueError(f"the active party '{self.active}' is not one of the parties: {', '.join(self.parties)}")
        if self.active is None and self.parties and not own_files:
            raise ValueError("name the party that holds the label ('active')")
        return self

    @property
    def pictures(self) -> bool:
        """Whether it is an image data set, which is split into tiles."""
        return self.name is not None and registry.find(self.name).kind == "image"

    @property
    def given(self) -> bool:
        """Whether the plan says which party holds which columns, so that none are assigned at random."""
        return bool(self.parties) or self.pictures or self.recorded is not None


class ProtocolPlan(Chosen):
    """A protocol and its settings; or an existing model, with its file and its input columns in order."""

    model: Path | None = None
    columns: tuple[str, ...] | None = None
    sha256: str | None = None  # of the model's file: findings are about these bytes

    @classmethod
    def _ordered(cls, name: str, settings: dict[str, Any]) -> dict[str, Any]:
        return by_signature(PROTOCOLS.get(name), settings)

    @model_validator(mode="after")
    def _one_model(self) -> ProtocolPlan:
        if self.model is None and (self.columns is not None or self.sha256 is not None):
            raise ValueError("'columns' and 'sha256' need a 'model'; name its file")
        if self.model is not None and self.settings:
            raise ValueError("'settings' are for training, but the given 'model' is already trained; remove them")
        if self.model is not None and (self.name == SplitModels.name or PROTOCOLS[self.name].phase == "training"):
            raise ValueError(f"'{self.name}' takes no 'model'; remove 'name', the file determines the protocol")
        return self

    @property
    def title(self) -> str:
        return super().title if self.model is None else f"{self.name} (model={self.model.name})"

    def in_sweep(self) -> ProtocolPlan:
        """The same with what a sweep sets where nothing is said: attackers of a real training see all of its rounds."""
        usual = {} if self.model is not None else dict(PROTOCOLS[self.name].sweep_settings)
        settings = self._ordered(self.name, {**usual, **self.settings})
        return self.model_copy(update={"settings": settings}) if usual else self

    @property
    def drawn(self) -> str:
        """The title without settings that change no draw: what seeds are made of."""
        without = PROTOCOLS[self.name].unseeded if self.name in PROTOCOLS else ()
        rest = {key: value for key, value in self.settings.items() if key not in without}
        return self.title if rest == self.settings else self.model_copy(update={"settings": rest}).title

    def protocol(self) -> Protocol:
        if "open_all" in self.settings:  # what the curious do is the threat's to say
            raise BadInput(f"protocol '{self.name}': 'open_all' is available in Python only, not in plans")
        code = self.settings.get("code")
        settings = self.settings if code is None else {**self.settings, "code": code_named(code)}
        return protocol_named(self.name, **settings)


class DefencePlan(Chosen):
    """A defence and its settings."""

    @classmethod
    def _ordered(cls, name: str, settings: dict[str, Any]) -> dict[str, Any]:
        if "+" not in name:
            return by_signature(DEFENCES.get(name), settings)
        parts = [part.strip() for part in name.split("+")]
        given = {
            key: by_signature(DEFENCES.get(key), own) if isinstance(own, dict) else own for key, own in settings.items()
        }
        return dict(sorted(given.items(), key=lambda one: parts.index(one[0]) if one[0] in parts else len(parts)))

    def defence(self) -> Defence:
        return defence_named(self.name, **self.settings)


class Plan(Part):
    """What to audit. `plumbob audit` without a plan uses the defaults on built-in data."""

    data: DataPlan = DataPlan(name="breast")
    unknown: tuple[float, ...] | None = None
    protocols: tuple[ProtocolPlan, ...] = (
        ProtocolPlan(name="logistic_regression"),
        ProtocolPlan(name="decision_tree"),
    )
    threats: tuple[ThreatPlan, ...] = (ThreatPlan(),)
    attacks: tuple[AttackPlan, ...] | None = None  # None: all that fit
    defences: tuple[DefencePlan, ...] = (DefencePlan(name="none"),)
    trials: int | None = Field(default=None, ge=1, le=1000, strict=True)
    train_share: float = Field(default=0.5, gt=0, lt=1)
    rows: int | None = Field(default=None, ge=50, strict=True)
    seed: int = Field(default=0, ge=0, strict=True)
    effort: Effort = "standard"
    limit: float = Field(default=LIMIT, gt=0, lt=1)  # gain that may go unseen where a column is called safe
    ceiling: bool = Field(default=True, strict=True)  # whether what could be learnt is computed beside the attacks
    attack_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    attack_memory_mb: int | None = Field(default=None, ge=1, strict=True)
    gate: str | None = None
    purpose: str | None = Field(default=None, max_length=2_000)  # what the federation is for; the assessment repeats it
    _recorded_sent: str = ""  # what the active party of a recorded run hid in its messages
    _recorded_under: tuple[str, ...] = ()  # defences of a recorded run, which the run says and no plan

    @field_validator("unknown")
    @classmethod
    def _shares(cls, unknown: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if unknown is not None and (not unknown or any(not 0 < share < 1 for share in unknown)):
            raise ValueError("expected shares between 0 and 1, such as [0.1, 0.3, 0.5]")
        return unknown

    @model_validator(mode="after")
    def _known_names(self) -> Plan:
        if self.data.name is not None:
            registry.find(self.data.name)
        for protocol in self.protocols:
            protocol.protocol()
        for threat in self.threats:
            threat.threat()
        for attack in self.attacks or ():
            attack.attack()
        for defence in self.defences:
            defence.defence()
        check_gate(self)
        if self.data.recorded is None:
            check_deviations(self.threats, [protocol.protocol() for protocol in self.protocols])
        for kind, chosen in (("protocol", self.protocols), ("defence", self.defences), ("attack", self.attacks or ())):
            titles = [part.title for part in chosen]
            if len(set(titles)) < len(titles):
                raise ValueError(f"duplicate {kind} with the same settings: {', '.join(titles)}")
        self._check_recorded()
        trained = [protocol.title for protocol in self.protocols if protocol.protocol().phase == "training"]
        for threat in self.threats:
            if threat.auxiliary_from == "prediction" and trained:
                raise ValueError(
                    f"threat '{threat.name}': 'auxiliary_from: prediction' is about prediction, {trained[0]} trains"
                )
        names = [threat.name for threat in self.threats]
        if len(set(names)) < len(names):
            raise ValueError(f"every threat needs a unique name, got {', '.join(names)}")
        if self.data.given and self.unknown is not None:
            what = "names 'parties'" if self.data.parties else "splits images into tiles"
            what = what if self.data.recorded is None else "names a recorded run"
            raise ValueError(f"'unknown' assigns columns at random, but the plan {what}; remove one of them")
        return self

    def _check_recorded(self) -> None:
        """A recorded run is audited unchanged: keys that would change it are refused."""
        if self.data.recorded is None:
            return
        fixed = {"trials": self.trials in (None, 1), "rows": self.rows is None, "train_share": self.train_share == 0.5}
        fixed["defences"] = all(defence.name == "none" for defence in self.defences)
        for key, right in fixed.items():
            if not right:
                raise ValueError(f"a recorded run is audited unchanged, so '{key}' cannot be combined with 'recorded'")

    def of_recording(self, protocol: str, defences: tuple[str, ...] = (), sent: str = "") -> Plan:
        """The same plan for a recorded run of that protocol under these defences, with the applicable threat if it names none."""
        if "protocols" in self.model_fields_set and [part.title for part in self.protocols] != [protocol]:
            named = ", ".join(part.title for part in self.protocols)
            raise BadInput(f"'protocols': the recorded run used {protocol}, the plan names {named}; remove them")
        usual = ThreatPlan(name="active-training" if PROTOCOLS[protocol].phase == "training" else "active")
        threats = self.threats if "threats" in self.model_fields_set else (usual,)
        made = self.model_copy(update={"protocols": (ProtocolPlan(name=protocol),), "threats": threats})
        made._recorded_under, made._recorded_sent = defences, sent
        check_deviations(made.threats, [made.protocols[0].protocol()])
        return made

    def sent(self, protocol: ProtocolPlan) -> str | None:
        """The kind of what the active party sends that the protocol does not ask for, "" for nothing; None: whatever an attack
        brings, where the threat lets it."""
        if self.data.recorded is not None:
            return self._recorded_sent
        code = protocol.protocol().sent
        return None if code is None else code.kind

    def in_place(self, defence: DefencePlan) -> tuple[str, ...]:
        """Names of the defences that are in place where the plan tries this one, as far as attackers can know."""
        return self._recorded_under or defence.defence().known().names

    def filled(self) -> Plan:
        """The same plan with the effort's numbers filled in, so that it can be stored and repeated."""
        values = dict(EFFORTS[self.effort])
        if self.data.recorded is not None:
            return self.model_copy(update={"trials": 1})
        if self.data.given:
            values.pop("unknown")
        silent = {key: value for key, value in values.items() if getattr(self, key) is None}
        if "threats" not in self.model_fields_set:
            deviations = usual_deviations((part.protocol() for part in self.protocols), self.effort == "thorough")
            silent |= {"threats": (*self.threats, *deviations)} if deviations else {}
        return self.model_copy(update={key: tuple(v) if isinstance(v, list) else v for key, v in silent.items()})

    def swept(self) -> Plan:
        """The same plan with the defence sweep, and with the threats that a sweep always asks."""
        if self.data.recorded is not None:
            raise BadInput(
                "a recorded run is audited unchanged, so no defence can be tried on it; sweep one of Plumbob's own protocols"
            )
        protocols = [part.protocol() for part in self.protocols]
        every = [DefencePlan(name=name, settings=settings) for name, settings in sweep.every()]
        defences = tuple(d for d in every if any(sweep.fits(d.defence(), protocol) for protocol in protocols))
        phases = {protocol.phase for protocol in protocols}
        usual = [name for phase, names in sweep.THREATS.items() if phase in phases for name in names]
        given = self.threats if "threats" in self.model_fields_set else ()
        there = {part.name for part in given}
        added = (*(ThreatPlan(name=name) for name in usual), *usual_deviations(protocols, every=True))
        threats = (*given, *(part for part in added if part.name not in there))
        dealt = self.unknown is None and not self.data.given
        unknown = sweep.UNKNOWN if dealt else self.unknown
        trained = tuple(part.in_sweep() for part in self.protocols)
        changed = {"protocols": trained} if trained != self.protocols else {}
        return self.model_copy(update={"defences": defences, "threats": threats, "unknown": unknown, **changed})

    @property
    def fitting_attacks(self) -> tuple[AttackPlan, ...]:
        """The attacks of the plan; where it names none, those of its effort."""
        return self.attacks if self.attacks is not None else unnamed(self.effort)

    def to_yaml(self, folder: Path) -> str:
        """The plan as YAML that gives the same plan when read from a file in that folder."""
        raw = self.model_dump(mode="json", exclude_none=True)
        for part in (raw["data"], *raw["data"]["parties"].values(), *raw["protocols"]):
            for key in PATHS:
                if key in part:
                    part[key] = os.path.relpath(part[key], folder.resolve())
        return in_yaml(raw, sort_keys=False)

    @property
    def digest(self) -> str:
        """A hash of what is audited; keys that change no number of a finding are left out."""
        idle = {"gate", "purpose", "limit", "attack_seconds", "attack_memory_mb"}
        return hashlib.sha256(bundle.canonical(self.model_dump(mode="json", exclude=idle)).encode()).hexdigest()

    def check_trust(self, trust: Trust) -> None:
        """Refuse networks of other packages, unless the caller trusts them."""
        for part in self.protocols:
            part.protocol().trusting(trust)


def in_yaml(raw: object, **options: Any) -> str:
    """YAML with letters unchanged and text-direction characters escaped."""
    text = str(yaml.safe_dump(raw, allow_unicode=True, **options))
    unseen = any(unicodedata.category(char) in ("Cf", "Zl", "Zp") for char in text)
    return str(yaml.safe_dump(raw, **options)) if unseen else text


def check_gate(plan: Plan) -> Gate | None:
    """The plan's gate, refused if no threat of the plan can ever satisfy it."""
    if plan.gate is None:
        return None
    gate = Gate.parse(plan.gate)
    if gate.about_labels and all(threat.threat().active for threat in plan.threats):
        raise BadInput(
            "gate: 'max_label_accuracy' applies to curious parties without the label, "
            "but every threat of the plan includes the active party"
        )
    return gate
