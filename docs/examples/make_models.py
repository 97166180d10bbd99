"""Make scorer.json and scorer.onnx: models of bank.csv and shop.csv, as other libraries save them.

Needs xgboost and skl2onnx, which Plumbob does not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent
COLUMNS = ["age", "income", "basket", "visits", "returns"]


def main() -> None:
    import xgboost
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    people = pd.read_csv(FOLDER / "bank.csv").merge(pd.read_csv(FOLDER / "shop.csv"), on="id")
    rows, label = people[COLUMNS].astype(float), people["default"]
    boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=3, learning_rate=0.3)
    boosted.fit(rows, (label == "yes").astype(int)).save_model(FOLDER / "scorer.json")
    line = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows.to_numpy(), label)
    saved = to_onnx(line, rows.to_numpy()[:1].astype(np.float32))
    (FOLDER / "scorer.onnx").write_bytes(saved.SerializeToString())


if __name__ == "__main__":
    main()
