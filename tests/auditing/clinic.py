"""A clinic's table that nobody tuned for: eight whole-number and decimal columns of 700 people, two classes, two parties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROWS = 700


def tables(seed: int = 5) -> dict[str, pd.DataFrame]:
    """The practice holds the diagnosis and four columns, the laboratory four others of the same people."""
    rng = np.random.default_rng(seed)
    weight, frail = rng.standard_normal(ROWS), rng.standard_normal(ROWS)
    age = np.clip(np.round(45 + 14 * frail + 6 * rng.standard_normal(ROWS)), 18, 92)
    mass = np.round(np.clip(27 + 4.5 * weight + rng.standard_normal(ROWS), 16, 55), 1)
    pressure = np.round(np.clip(76 + 5 * weight + 4 * frail + 8 * rng.standard_normal(ROWS), 40, 120))
    visits = rng.poisson(np.exp(0.8 + 0.3 * frail))
    glucose = np.round(np.clip(115 + 12 * weight + 8 * frail + 24 * rng.standard_normal(ROWS), 60, 240))
    insulin = np.round(np.exp(4.4 + 0.25 * weight + 0.5 * rng.standard_normal(ROWS)))
    fat = np.round(np.clip(5.2 + 0.4 * weight + 0.8 * rng.standard_normal(ROWS), 2.0, 11.0), 1)
    dose = np.round(2 * np.clip(1.5 + 0.6 * frail + 0.8 * rng.standard_normal(ROWS), 0, 6)) / 2
    risk = 0.05 * (glucose - 115) + 0.12 * (mass - 27) + 0.03 * (age - 45) + 0.4 * (fat - 5.2) - 0.9
    label = (rng.random(ROWS) < 1 / (1 + np.exp(-risk))).astype(int)
    person = {"id": np.arange(ROWS)}
    practice = {"age": age, "mass": mass, "pressure": pressure, "visits": visits, "diabetes": label}
    laboratory = {"glucose": glucose, "insulin": insulin, "fat": fat, "dose": dose}
    return {"practice": pd.DataFrame(person | practice), "laboratory": pd.DataFrame(person | laboratory)}


def plan(folder: Path, **more: Any) -> dict[str, Any]:
    """The files, and a plan of a logistic regression on them."""
    for name, table in tables().items():
        table.to_csv(folder / f"{name}.csv", index=False)
    parties = {name: str(folder / f"{name}.csv") for name in ("practice", "laboratory")}
    data = {"parties": parties, "id": "id", "label": "diabetes"}
    return {"data": data, "protocols": "logistic_regression", "effort": "quick", "trials": 2} | more
