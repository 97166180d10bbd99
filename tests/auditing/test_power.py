"""The detection limit that `--estimate` promises against the one that the audit then states."""

import json
from pathlib import Path
from statistics import median

import pytest
import yaml

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.running.finding import read_findings
from tests.commands import plumbob

FACTOR = 1.5
PLAN = {
    "protocols": ["logistic_regression"],
    "attacks": ["posterior_mean", "equation_solving"],
    "defences": [{"name": "noise", "settings": {"sigma": 1}}],  # nothing is left to find
    "unknown": [0.3],
    "trials": 2,
    "rows": 1_000,
}


def predicted_and_found(folder: Path, data: str) -> tuple[float, float]:
    """The limit before the run, and the median over columns of what the verdicts say may have gone unseen."""
    (folder / "plan.yaml").write_text(yaml.safe_dump(PLAN | {"data": data}))
    told = plumbob("audit", "plan.yaml", "--estimate", "--json", cwd=folder)
    assert told.returncode == 0, told.stderr
    done = plumbob("audit", "plan.yaml", "--out", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    (judged,) = conclude(read_findings(folder / "out" / "findings.jsonl")).situations
    unseen = [one.verdict.unseen for one in judged.standings if one.verdict.unseen is not None]
    assert len(unseen) > len(judged.standings) / 2  # noise this large leaves nothing to find
    return float(json.loads(told.stdout)["power"]["limit"]), float(median(unseen))


@pytest.mark.parametrize(
    "data",
    [
        "breast",
        pytest.param("credit", marks=pytest.mark.needs_data("credit")),
        pytest.param("satellite", marks=[pytest.mark.needs_data("satellite"), pytest.mark.slow]),
        pytest.param("bank", marks=[pytest.mark.needs_data("bank"), pytest.mark.slow]),
    ],
)
def test_the_limit_that_is_found_is_within_half_of_what_was_predicted(data: str, tmp_path: Path) -> None:
    predicted, found = predicted_and_found(tmp_path, data)
    print(f"{data}: predicted {predicted:.4f}, found {found:.4f}")
    assert predicted / FACTOR <= found <= predicted * FACTOR
