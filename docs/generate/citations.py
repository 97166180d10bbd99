"""The papers that attacks and defences name, as pages cite them."""

from __future__ import annotations

OURS = "plumbob"
CITATIONS = {
    "luo2021": "Luo et al., *Feature Inference Attack on Model Predictions in Vertical Federated Learning*, ICDE 2021",
    "jiang2022": "Jiang et al., *Comprehensive Analysis of Privacy Leakage in Vertical Federated Learning During Prediction*, "
    "PoPETs 2022",
    "weng2022": "Weng et al., *Practical Privacy Attacks on Vertical Federated Learning*, 2022",
    "ye2022": "Ye et al., *Feature Reconstruction Attacks and Countermeasures of DNN Training in Vertical Federated Learning*, "
    "2022",
    "jin2021": "Jin et al., *CAFE: Catastrophic Data Leakage in Vertical Federated Learning*, NeurIPS 2021",
    "takahashi2023": "Takahashi et al., *Eliminating Label Leakage in Tree-Based Vertical Federated Learning*, 2023",
    "zhu2019": "Zhu et al., *Deep Leakage from Gradients*, NeurIPS 2019",
    "zhu2025": "Zhu et al., *Passive Inference Attacks on Split Learning via Adversarial Regularization*, NDSS 2025",
    "bonawitz2017": "Bonawitz et al., *Practical Secure Aggregation for Privacy-Preserving Machine Learning*, CCS 2017",
}


def cited(paper: str) -> str:
    """The paper as cited; a paper that is not listed here by the name that the class gives it."""
    if paper in (OURS, ""):
        return "ours"
    return f"{CITATIONS[paper]} ({paper})" if paper in CITATIONS else paper
