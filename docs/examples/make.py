"""Make bank.csv and shop.csv: people who do not exist, from a fixed seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent
PEOPLE, EACH = 500, 400  # a person is in one file or in both


def people(rng: np.random.Generator) -> pd.DataFrame:
    """Everybody, with the columns of both files; the label depends on columns of both."""
    age = rng.integers(18, 80, PEOPLE)
    wealth = rng.normal(size=PEOPLE)
    income = np.round(np.exp(10.3 + 0.4 * wealth + 0.004 * age), -2).astype(int)
    basket = np.round(np.exp(3.3 + 0.5 * wealth + 0.3 * rng.normal(size=PEOPLE)), 2)
    visits = rng.poisson(6, PEOPLE)
    returns = rng.binomial(visits, 0.15)
    member = np.where(rng.random(PEOPLE) < 0.2 + 0.05 * visits, "yes", "no")
    risk = -1.2 - 1.1 * wealth - 0.02 * (age - 45) + 0.9 * returns + 0.6 * (member == "no")
    return pd.DataFrame(
        {
            "id": [f"c{i:04d}" for i in range(PEOPLE)],
            "age": age,
            "income": income,
            "city": rng.choice(["Bergen", "Oslo", "Tromsø"], PEOPLE, p=[0.3, 0.5, 0.2]),
            "default": np.where(rng.random(PEOPLE) < 1 / (1 + np.exp(-risk)), "yes", "no"),
            "basket": basket,
            "visits": visits,
            "returns": returns,
            "member": member,
        }
    )


def main() -> None:
    rng = np.random.default_rng(2021)
    everybody = people(rng)
    files = {
        "bank.csv": ["id", "age", "income", "city", "default"],
        "shop.csv": ["id", "basket", "visits", "returns", "member"],
    }
    for name, columns in files.items():
        rows = rng.permutation(PEOPLE)[:EACH]
        everybody.loc[rows, columns].to_csv(FOLDER / name, index=False)


if __name__ == "__main__":
    main()
