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
    "li2022opboost": "Li et al., *OpBoost: A Vertical Federated Tree Boosting Framework Based on Order-Preserving "
    "Desensitization*, VLDB 2022",
    "zhu2019": "Zhu et al., *Deep Leakage from Gradients*, NeurIPS 2019",
    "zhu2025": "Zhu et al., *Passive Inference Attacks on Split Learning via Adversarial Regularization*, NDSS 2025",
    "li2022": "Li et al., *Label Leakage and Protection in Two-party Split Learning*, ICLR 2022",
    "fu2022": "Fu et al., *Label Inference Attacks Against Vertical Federated Learning*, USENIX Security 2022",
    "ghazi2021": "Ghazi et al., *Deep Learning with Label Differential Privacy*, NeurIPS 2021",
    "zou2022": "Zou et al., *Defending Batch-Level Label Inference and Replacement Attacks in Vertical Federated Learning*, "
    "IEEE Transactions on Big Data 2022",
    "zou2023": "Zou et al., *Mutual Information Regularization for Vertical Federated Learning*, 2023",
    "sun2022": "Sun et al., *Label Leakage and Protection from Forward Embedding in Vertical Federated Learning*, 2022",
    "vepakomma2020": "Vepakomma et al., *NoPeek: Information Leakage Reduction to Share Activations in Distributed Deep "
    "Learning*, 2020",
    "gu2023": "Gu et al., *FedPass: Privacy-Preserving Vertical Federated Deep Learning with Adaptive Obfuscation*, IJCAI 2023",
    "huang2020": "Huang et al., *InstaHide: Instance-hiding Schemes for Private Distributed Learning*, ICML 2020",
    "liu2026": "Liu et al., arXiv 2603.18680, 2026",
    "pasquini2021": "Pasquini et al., *Unleashing the Tiger: Inference Attacks on Split Learning*, CCS 2021",
    "rassouli2022": "Rassouli et al., *Privacy Against Inference Attacks in Vertical Federated Learning*, arXiv 2207.11788, 2022",
    "bonawitz2017": "Bonawitz et al., *Practical Secure Aggregation for Privacy-Preserving Machine Learning*, CCS 2017",
}


def cited(paper: str) -> str:
    """The paper as cited; a paper that is not listed here by the name that the class gives it."""
    if paper in (OURS, ""):
        return "ours"
    return f"{CITATIONS[paper]} ({paper})" if paper in CITATIONS else paper
