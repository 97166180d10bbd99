"""A claim of a paper that Plumbob does not know."""

from plumbob.papers.claims import CheckResult, Claim, Scale


def _check(scale: Scale, seed: int) -> CheckResult:
    return CheckResult(True, {"answer": 42}, "42", 1)


E1 = Claim("example2026", "E1", "Section 1", "the answer is 42", _check)
