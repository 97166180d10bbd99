"""Split learning in plain PyTorch between a shop and a bank, in a loop of its own; `main` puts the tap around it."""

from __future__ import annotations

import pandas as pd
import torch
from torch import nn

WIDTH = 16  # numbers that the shop sends the bank for each person


def load(bank_file: str = "bank.csv", shop_file: str = "shop.csv") -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """The shop's columns, the bank's columns and the label, a row for each client of both."""
    both = pd.read_csv(bank_file).merge(pd.read_csv(shop_file), on="id").sort_values("id", ignore_index=True)
    shop = both[["basket", "visits", "returns"]].assign(member=both["member"] == "yes").astype("float32")
    bank = both[["age", "income"]].join(pd.get_dummies(both["city"], prefix="city")).astype("float32")
    return shop, bank, both["default"]


def standardised(frame: pd.DataFrame) -> torch.Tensor:
    return torch.tensor(((frame - frame.mean()) / frame.std()).to_numpy())


def networks(shop_columns: int, bank_columns: int) -> tuple[nn.Module, nn.Module, nn.Module]:
    """The shop's bottom, the bank's bottom, and the bank's top."""
    top = nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 2))
    return nn.Linear(shop_columns, WIDTH), nn.Linear(bank_columns, WIDTH), top


def train(
    shop_bottom: nn.Module,
    bank_bottom: nn.Module,
    top: nn.Module,
    shop_rows: torch.Tensor,
    bank_rows: torch.Tensor,
    label: torch.Tensor,
    epochs: int = 30,
) -> None:
    """An ordinary loop. Between the two lines marked so, numbers of the shop go to the bank, and gradients come back."""
    parameters = [*shop_bottom.parameters(), *bank_bottom.parameters(), *top.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(epochs):
        for batch in torch.randperm(len(label)).split(32):
            sent = shop_bottom(shop_rows[batch])  # the shop
            scores = top(sent + bank_bottom(bank_rows[batch]))  # the bank
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, label[batch]).backward()
            optimizer.step()


def main() -> None:
    import plumbob

    torch.manual_seed(0)
    shop, bank, default = load()
    shop_rows, bank_rows, label = standardised(shop), standardised(bank), torch.tensor(default == "yes").long()
    shop_bottom, bank_bottom, top = networks(shop_rows.shape[1], bank_rows.shape[1])
    columns, inputs = {"bank": bank, "shop": shop}, {"shop": shop_rows}
    with plumbob.tap(
        active="bank", passive={"shop": shop_bottom}, columns=columns, inputs=inputs, label=default
    ) as tap:
        train(shop_bottom, bank_bottom, top, shop_rows, bank_rows, label)
    tap.transcript.save("run.zip")
    print(*tap.remarks, sep="\n")


if __name__ == "__main__":
    main()
