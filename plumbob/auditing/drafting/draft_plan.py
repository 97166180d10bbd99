"""A first plan, from the user's options and the contents of the files.

What cannot work is refused here, with the sentence that the audit would give. Contents are reported as counts, never as
values. The plan has a comment for every key, with the alternatives that apply.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from plumbob.auditing.drafting.init_choices import (
    Wishes,
    fitting_defences,
    fitting_protocols,
    fitting_threats,
    opened,
    usual_threats,
)
from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.plan import EFFORTS, Plan, in_yaml
from plumbob.auditing.planning.plan_file import make_plan, plan_from_text
from plumbob.auditing.planning.plan_fits_data import FEWEST, check_fit, fitting_share
from plumbob.auditing.running.open_data import Source, open_source, with_models
from plumbob.data.align import canonical
from plumbob.data.prepare import CHOICES
from plumbob.data.recognise import count, recognise
from plumbob.errors import BadInput
from plumbob.files import real
from plumbob.protocols import protocol_named
from plumbob.threats import THREATS

WIDTH = 110  # of the plan's comments
FLAGS = {"set 'label_bins'": "use --label-bins", "put it under 'ignore'": "use --ignore", "('active')": "(--active)"}
FLAGS |= {"('columns')": "(--column)", "'columns' lists": "--column lists"}
FLAGS |= {"put the column under 'ignore'": "ignore it (--ignore)"}
_PLAIN = re.compile(r"(\.\./)*[A-Za-z_]([A-Za-z0-9_ ./+-]*[A-Za-z0-9_])?")


@dataclass(frozen=True)
class Draft:
    """A plan that can be run, as commented YAML, and what was found in the files."""

    plan: Plan
    text: str
    seen: tuple[str, ...]


def draft(wishes: Wishes, folder: Path) -> Draft:
    """The plan for a file in `folder`, checked against its data."""
    usual = tuple(part.name for part in Plan().protocols) if not wishes.models else ()
    wishes = replace(
        wishes,
        protocols=wishes.protocols or usual,
        defences=wishes.defences or ("none",),
        effort=wishes.effort or "standard",
    )
    wishes = replace(wishes, threats=wishes.threats or usual_threats(wishes.kinds) or ("active",))
    _check_names(wishes)
    frames = opened(wishes.parties, wishes.id, wishes.sample) if wishes.parties else {}
    holders = [name for name, frame in frames.items() if wishes.label in frame.columns]
    if len(holders) > 1 and not wishes.active:
        raise BadInput(
            f"parties {', '.join(holders)} all have a column '{wishes.label}'; name the party whose label counts (--active)"
        )
    wishes = replace(wishes, active=wishes.active or next(iter(holders), ""))
    with _flags():
        plan = make_plan(_raw(wishes, "refuse"), folder=folder, trust=wishes.trust)
        kinds = {name: _kinds(name, frame, wishes) for name, frame in frames.items()}
        gaps = sum(gap for _, gap in kinds.values())
        missing = "median" if gaps else "refuse"
        plan = make_plan(_raw(wishes, missing), folder=folder, trust=wishes.trust)
        quick = plan.data.model_copy(update={"align": "ids"})  # the same rows, without the cryptography
        source = open_source(quick, plan.seed)
        source = with_models(source, plan.protocols, trust=wishes.trust)
        share = fitting_share(plan.filled(), source)
        if share is not None and share != plan.train_share:
            plan = make_plan(_raw(wishes, missing) | {"train_share": share}, folder=folder, trust=wishes.trust)
        check_fit(plan.filled(), source)
    text = _text(wishes, folder, source, missing, plan.train_share)
    if plan_from_text(text, "the plan", folder, trust=wishes.trust).digest != plan.digest:
        raise BadInput("a name in these data cannot be written in a plan; rename the party, file or column")
    return Draft(plan, text, (*_seen(wishes, frames, kinds), *_shared(wishes, source, gaps)))


@contextmanager
def _flags() -> Iterator[None]:
    """In sentences about keys of the plan, name the command's option where there is one."""
    try:
        yield
    except BadInput as error:
        words = str(error).removeprefix("plan: ")
        for key, flag in FLAGS.items():
            words = words.replace(key, flag)
        raise BadInput(words) from error


def _check_names(wishes: Wishes) -> None:
    """Refuse a choice without any applicable attack, and name one that has some."""
    for name in wishes.protocols:
        protocol_named(name)
    for name in wishes.threats:
        THREATS.named(name)
    fitting = fitting_protocols(wishes.threats)
    if not set(wishes.kinds) & set(fitting):
        raise BadInput(
            f"no attack applies to {' or '.join(wishes.threats)} on {' or '.join(wishes.kinds)}; "
            f"with --threat {wishes.threats[0]} use --protocol {' or '.join(fitting)}"
        )


def _raw(wishes: Wishes, missing: str) -> dict[str, Any]:
    """The plan as plain data."""
    data: dict[str, Any] = {"name": wishes.data} if wishes.data else {}
    if wishes.parties:
        data = {
            "parties": {name: {"file": str(real(file))} for name, file in wishes.parties.items()},
            "id": wishes.id,
            "label": wishes.label,
            "rules": {"missing": missing},
        }
        data |= {"active": wishes.active} if wishes.active else {}
    if wishes.label_bins is not None:
        data["label_bins"] = wishes.label_bins
    if wishes.sample is not None:
        data["sample"] = wishes.sample
    data["ignore"] = list(wishes.ignore)
    defences: Any = sweep.NAME if wishes.defences == (sweep.NAME,) else list(wishes.defences)
    columns = {"columns": list(wishes.columns)} if wishes.columns else {}
    models = [{"model": str(real(path))} | columns for path in wishes.models]
    rest = {"protocols": [*wishes.protocols, *models], "threats": list(wishes.threats), "defences": defences}
    return {"data": data, **rest, "effort": wishes.effort}


# what was seen


def _kinds(party: str, frame: pd.DataFrame, wishes: Wishes) -> tuple[Counter[str], int]:
    """How many columns of each kind a party's file has, and how many of their cells are missing."""
    skipped = {wishes.id, *wishes.ignore} | ({wishes.label} if party == wishes.active else set())
    names = [str(name) for name in frame.columns if name not in skipped]
    cells = [recognise(frame[name], name, f"party '{party}'") for name in names]
    usable = [one for one in cells if one.kind not in ("text", "identifier")]
    return Counter(one.kind for one in cells), sum(int(one.missing.sum()) for one in usable)


def _seen(
    wishes: Wishes, frames: Mapping[str, pd.DataFrame], kinds: Mapping[str, tuple[Counter[str], int]]
) -> list[str]:
    lines = []
    for name, frame in frames.items():
        found, gaps = kinds[name]
        ids = len(set(canonical(frame[wishes.id])))
        words = [f"{number} {_plural(kind, number)}" for kind, number in found.items()]
        line = f"{name}: {count(len(frame), 'row')}, {count(ids, 'distinct id')}; columns: {', '.join(words) or 'none'}"
        line += f"; {count(gaps, 'missing value')}" if gaps else ""
        lines.append(line)
    return lines


def _plural(kind: str, number: int) -> str:
    words = {"binary": "of two values", "text": "of free text, ignored", "identifier": "without information, ignored"}
    if kind in words:
        return words[kind]
    return kind if number == 1 else {"category": "categories"}.get(kind, f"{kind}s")


def _shared(wishes: Wishes, source: Source, gaps: int) -> list[str]:
    rows, columns = source.values.shape
    classes = count(len(source.classes), "class") if len(source.classes) == 1 else f"{len(source.classes)} classes"
    if not wishes.parties:
        dealt = "" if source.federation is not None else ", split at random in each trial"
        return [f"{wishes.data}: {rows:,} rows, {columns} columns{dealt}; label of {classes}"]
    lines = [f"shared by all parties: {count(rows, 'row')}; '{wishes.active}' is active, its label has {classes}"]
    lines += ["missing values are filled with medians; 'missing' selects another rule"] if gaps else []
    told = ("dropped", "counted as missing")
    return lines + [n for n in source.notes if n.startswith("model ") or any(words in n for words in told)]


# the plan as text


def _text(wishes: Wishes, folder: Path, source: Source, missing: str, share: float) -> str:
    """Every key with a comment; optional keys are commented out."""
    lines = [
        *_comment("The plan for `plumbob audit`. Every key has a default; docs/plan.md lists them all."),
        "",
        "data:",
    ]
    lines += _data_lines(wishes, folder, source, missing)
    threats = fitting_threats(wishes.kinds, wishes.active, tuple(wishes.parties))
    others = [name for name in fitting_protocols(wishes.threats) if name not in wishes.kinds]
    lines += ["", *_comment(f"How the parties train and predict together. Alternatives: {_or(others)}.")]
    lines += _protocol_lines(wishes, folder)
    lines += ["", *_comment("The threat model: who is curious, and what it knows beyond its messages:")]
    for name in dict.fromkeys((*wishes.threats, *threats)):
        lines += _comment(f"  {name}: {THREATS[name].summary}")
    lines += [f"threats: {_list(wishes.threats)}"]
    lines += ["", *_comment("Default: every applicable attack, except those that take many iterations.")]
    lines += ["# attacks: all"]
    lines += [
        "",
        *_comment("Defences to test: none, or sweep to try all and compare them; applicable here: "),
    ]
    lines[-1] = lines[-1].rstrip()
    lines += _comment(f"  {', '.join(fitting_defences(wishes))}")
    lines += _comment("Several are compared with each other. A combination is written a+b.")
    swept = wishes.defences == (sweep.NAME,)
    lines += [f"defences: {sweep.NAME if swept else _list(wishes.defences)}"]
    efforts = "; ".join(f"{name}: {e['trials']} trials, at most {e['rows']:,} rows" for name, e in EFFORTS.items())
    lines += [
        "",
        *_comment(f"How thorough. {efforts}. 'trials' and 'rows' override these."),
        f"effort: {wishes.effort}",
    ]
    lines += ["# trials: 5", "# rows: 2000"]
    lines += [
        "",
        *_comment("What could be learnt at most, beside what the attacks learn; see docs/ceiling.md."),
        "ceiling: true",
    ]
    if not wishes.parties:
        lines += ["", *_comment("Shares of the columns that the curious party does not have."), "# unknown: [0.1, 0.3]"]
    lines += [
        "",
        *_comment(_share_in_words(share, len(source.label))),
        f"train_share: {share:g}",
    ]
    lines += ["", *_comment("The same seed gives the same numbers."), "seed: 0"]
    lines += ["", *_comment("Gain over guessing that may go unseen where a column is called safe."), "# limit: 0.1"]
    lines += ["", *_comment("Most seconds and megabytes of one attack; one that needs more is reported as failed.")]
    lines += ["# attack_seconds: 3600", "# attack_memory_mb: 8000"]
    lines += ["", *_comment("Conditions for exit code 0, see docs/ci.md; they are checked for every defence above.")]
    lines += ["# gate: max_gain<0.2 and exact_columns==0"]
    lines += ["", *_comment("The purpose of the federation in one sentence, for the impact assessment.")]
    return "\n".join([*lines, "# purpose: we want to know who will default", ""])


def _share_in_words(share: float, rows: int) -> str:
    told = "Share of the rows used for training; the others are attacked."
    usual = Plan().train_share
    less = f" {usual:g} of {rows:,} rows would leave fewer than the {FEWEST} that a verdict needs."
    return told if share == usual else told + less


def _protocol_lines(wishes: Wishes, folder: Path) -> list[str]:
    if not wishes.models:
        return [f"protocols: {_list(wishes.protocols)}"]
    lines = _comment("An existing model is used for prediction, not trained; 'columns' lists its inputs in order.")
    lines += ["protocols:", *(f"  - {_scalar(name)}" for name in wishes.protocols)]
    for path in wishes.models:
        lines.append(f"  - model: {_scalar(os.path.relpath(path.resolve(), folder.resolve()))}")
        lines += [f"    columns: {_list(wishes.columns)}"] if wishes.columns else []
    return lines


def _data_lines(wishes: Wishes, folder: Path, source: Source, missing: str) -> list[str]:
    ignore = ["", *_comment("Columns to ignore, in any file.", 2), f"  ignore: {_list(wishes.ignore)}"]
    if wishes.sample is not None:
        ignore += ["", *_comment("Use a random sample of this many rows, the same people at every party.", 2)]
        ignore += [f"  sample: {wishes.sample}"]
    if not wishes.parties:
        note = "A data set from `plumbob data list`. For your own files: a 'file' per party under 'parties', 'id' and 'label'."
        return [*_comment(note, 2), f"  name: {_scalar(wishes.data)}", *ignore]
    lines = _comment("Each party and its file (CSV or Parquet), relative to this plan's folder.", 2) + ["  parties:"]
    for name, file in wishes.parties.items():
        lines.append(f"    {_scalar(name)}: {_scalar(os.path.relpath(file.resolve(), folder.resolve()))}")
    lines += [
        "",
        *_comment("The id column, the same in every file.", 2),
        f"  id: {_scalar(wishes.id)}",
    ]
    classes = f"The column that the model predicts; {len(source.classes)} classes here."
    lines += ["", *_comment(classes, 2), f"  label: {_scalar(wishes.label)}"]
    lines += _comment("A numeric label is binned into classes by quantiles:", 2)
    lines += [f"  label_bins: {wishes.label_bins}" if wishes.label_bins is not None else "  # label_bins: 4"]
    lines += ["", *_comment("The party that holds the label.", 2), f"  active: {_scalar(wishes.active)}"]
    align = "How rows are matched. psi: private set intersection; ids: the other parties reveal all their ids."
    lines += ["", *_comment(align, 2), "  align: psi", *ignore]
    lines += ["", *_comment("What to do with columns that are not plain numbers.", 2), "  rules:"]
    choices = {
        f"missing: {missing}": f"values; or {', '.join(w for w in CHOICES['missing'] if w != missing)}",
        "categories: ordinal": "one code per value; or onehot, drop",
        "dates: days": "since the earliest; or drop",
        "constant: drop": "or keep",
        "duplicates: first": "of several rows with one id; or last, refuse",
    }
    return lines + [f"    {rule}  # {words}" for rule, words in choices.items()]


def _comment(text: str, indent: int = 0) -> list[str]:
    mark = " " * indent + "# "
    inner = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(), WIDTH, initial_indent=mark + inner, subsequent_indent=mark + inner, break_on_hyphens=False
    )


def _or(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, names))}]"


def _scalar(text: str) -> str:
    """A text as one line of YAML: plain if that is unambiguous, else quoted."""
    if _PLAIN.fullmatch(text) and isinstance(yaml.safe_load(text), str):
        return text
    return in_yaml(text, default_style='"', width=10**9).strip()
