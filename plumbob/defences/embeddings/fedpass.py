"""FedPass (gu2023): secret passports scale and shift the first fully connected layer below the cut, with `top` also above it.

    out = gamma * (W x) + beta,   gamma = mean over passports of D(E(W s)),   beta likewise from other passports, both at most 2
The passports s are drawn once, each party's in secret: s ~ N(m, 1), m uniform in (-reach, 0). W, E and D are trained. For given
weights gamma and beta are the same for all rows. So below a linear cut the outputs are a linear map of the columns plus a shift,
and the gradient of a row at the cut is one matrix times what it was.
"""

from __future__ import annotations

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.errors import boolean, positive, whole
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours

MOST = 2.0  # of a scale or a shift: unbounded, training with steps of the usual size runs away


class FedPass(EmbeddingDefence):
    """So many `passports` at each party, with means down to minus `reach`; with `top` at the active party too."""

    name = "fedpass"
    identity = "FedPass(passports, reach, top)"
    aliases = ("FedPass",)
    summary = (
        "passive parties scale and shift what their first layer puts out by numbers that follow from secret passports"
    )
    paper = "gu2023"
    sources = {
        "passports": ours("the paper averages over several"),
        "reach": ours("the paper compares several ranges of the passports' means"),
        "top": ours(
            "the paper has both; above the cut, steps of the usual size often end in a model that learns nothing"
        ),
    }

    def __init__(self, *, passports: int = 5, reach: float = 5.0, top: bool = False) -> None:
        self.passports = whole("fedpass: passports", passports, 1, 1_000)
        self.reach = positive("fedpass: reach", reach)
        self.top = boolean("fedpass: top", top)  # passports of the active party too

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[FedPass]:
        return _Passed(self)


class _Passed(LabelGuard[FedPass]):
    def bottom(self, party: str, module: torch.nn.Module, columns: int) -> torch.nn.Module:
        return with_passports(module, self.defence.passports, self.defence.reach)

    def top(self, module: torch.nn.Module) -> torch.nn.Module:
        if not self.defence.top:
            return module
        return with_passports(module, self.defence.passports, self.defence.reach)


def with_passports(module: torch.nn.Module, passports: int, reach: float) -> torch.nn.Module:
    """The module with passports at its first fully connected layer; one that has none stays as it is."""
    if isinstance(module, nn.Linear):
        return _passport_layer(module, passports, reach)
    for part in module.modules():
        for name, child in part.named_children():
            if isinstance(child, nn.Linear):
                setattr(part, name, _passport_layer(child, passports, reach))
                return module
    return module


def _passport_layer(linear: torch.nn.Linear, passports: int, reach: float) -> torch.nn.Module:
    """Passports are drawn as torch draws in this training: first weights are drawn in the same way."""
    kind, outputs = linear.weight.dtype, linear.out_features
    hidden = max(1, outputs // 4)

    class Passported(nn.Module):
        secret: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.linear = linear
            means = -reach * torch.rand(2, passports, 1)
            self.register_buffer("secret", (means + torch.randn(2, passports, linear.in_features)).to(kind))
            self.encode = nn.Linear(outputs, hidden, bias=False).to(kind)
            self.decode = nn.Linear(hidden, outputs, bias=False).to(kind)
            with torch.no_grad():  # scales start at 1 on average: smaller ones would let nothing through
                self.decode.weight /= self.told()[0].pow(2).mean().sqrt().clamp_min(1e-6)

        def told(self) -> torch.Tensor:
            hidden = nn.functional.leaky_relu(self.encode(self.secret @ self.linear.weight.T))
            mean: torch.Tensor = self.decode(hidden).mean(dim=1)
            return mean

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            gamma, beta = MOST * torch.tanh(self.told() / MOST)
            out: torch.Tensor = gamma * self.linear(values) + beta
            return out

    return Passported()
