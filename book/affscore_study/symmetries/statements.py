"""Tests of the paper's statements about intertwiners and about measures of similarity, one by one.

``claims.toml`` has the statements and the rules.
"""

from __future__ import annotations

import torch
from torch import nn

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.networks import myrtle, resnet20
from affscore_book.kit.tables import Table
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes
from affscore_book.symmetries.table import intertwiner
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged
from affscore_study.symmetries.lemmas import (
    aligned_draws,
    defect,
    ignored_draws,
    least_eigenvalue,
    passes,
    slope_gap,
    unit_values,
)

__all__ = ["lemma_table", "similarity_claims", "size_claims", "wording_claims"]

P_NORMS = (1.5, 3, 4, 8)
MEASURES = {
    "Procrustes as printed": lambda x, y: procrustes(x, y, centred=False, null=0).value,
    "Procrustes centred": lambda x, y: procrustes(x, y, null=0).value,
    "G_ReLU-CKA": lambda x, y: cka(x, y, "max", null=0).value,
}


def lemma_table() -> Table:
    """A table of five lemmas, checked for every activation of the catalogue with groups that were derived otherwise.

    Columns: checked, the lemma; cases, their number; right, the number of cases in which the lemma holds.
    """
    units = {(name, n): unit_values(name, n) for name in CATALOGUE for n in range(2, 7)}
    singular = sorted({name for (name, _), (_, invertible) in units.items() if not invertible})
    cycle = torch.eye(4, dtype=torch.float64).roll(1, 0)
    formula, products, permuted, slopes = [], [], [], []
    for name, sigma in CATALOGUE.items():
        group = intertwiner(name)
        a, b = group.sample(4, 2), group.sample(4, 3)
        if name not in singular:
            unit = sigma(torch.eye(4, dtype=torch.float64))
            formula.append(torch.allclose(sigma(a) @ unit.inverse(), group.phi(a)))
        products.append(torch.allclose(group.phi(a @ b), group.phi(a) @ group.phi(b)))
        # exp overflows beyond 700, and infinity minus infinity is not 0
        permuted.append(group.contains(cycle) and defect(name, cycle, cycle, reach=10.0) == 0)
        slopes.append(slope_gap(name, a, group.phi(a)) < 1e-10)
    checks = {
        "Lemma E.7: two numbers tell whether sigma(I) is invertible": [one == other for one, other in units.values()],
        "Lemma 3.1: its formula gives our phi": formula,
        "Lemma 3.1: phi(A B) = phi(A) phi(B)": products,
        "Lemma E.10: a permutation passes as itself": permuted,
        "Lemma E.12: slopes obey the rule": slopes,
    }
    rows = [{"checked": name, "cases": len(right), "right": sum(right)} for name, right in checks.items()]
    return Table.from_rows(rows, notes=[f"sigma(I) is singular for: {', '.join(singular)}."])


def similarity_claims() -> list[Claim]:
    """Tests of Lemma 5.1, definitions 5.2 and 5.3, and remarks 5.5 and E.6 on measures invariant to symmetries."""
    generator = torch.Generator().manual_seed(0)
    independent = torch.randn(10, 2, 50, 4, generator=generator, dtype=torch.float64)
    bounded = sum(0 <= MEASURES["G_ReLU-CKA"](x, y) <= 1 for x, y in independent)
    outside = torch.linspace(1, 3, 50)  # the functions are 0 here, and x -> k x should keep this
    kept = sum(bool(((1 - k * outside).clamp(min=0) == 0).all()) for k in (2, 0.5))
    positive = sum(least_eigenvalue(p) >= 0 for p in P_NORMS)
    printed, centred, max_kernel = MEASURES.values()
    found = {
        "shifts_printed": ignored_draws(printed, translations=True),
        "shifts_centred": ignored_draws(centred, translations=True),
        "moved_printed": aligned_draws(printed),
        "moved_centred": aligned_draws(centred),
        "moved_cka": aligned_draws(max_kernel),
        "bounded": bounded,
        "norms": positive,
        "subgroup": kept,
    }
    return judged("symmetries", "measures", found)


def wording_claims() -> list[Claim]:
    """Tests of Table 1 on LeakyReLU and of Theorem E.14 (i), each as it is worded and as it is proved."""
    mix = torch.tensor([[2.0, -1.0], [-0.5, 1.5]], dtype=torch.float64)
    curved = [name for name in CATALOGUE if name != "identity" and unit_values(name, 2)[1]]
    mixed = sum(passes(name, mix) for name in curved)
    # passes() tests huge values, for which x + 1 is rounded; nearer to 0 the rounding is too small to matter.
    line = defect(lambda x: x + 1, mix, mix, reach=10.0) <= 1e-10
    slopes = {
        "slope not 1, as worded": (-2, -1, -0.5, 0.01, 0.5, 2),
        "positive and small, as proved": (0.001, 0.01, 0.02, 0.05, 0.1, 0.2),
    }
    alike = {
        reading: sum(intertwiner(nn.LeakyReLU(s)) == intertwiner("relu") for s in values)
        for reading, values in slopes.items()
    }
    mixing = {
        reading: Worded(mixed + extra * line, {"functions": str(len(curved) + extra)})
        for reading, extra in (("not linear, as worded", 1), ("not affine, as proved", 0))
    }
    return judged("symmetries", "wording", {"alike": alike, "mixing": mixing})


def size_claims() -> list[Claim]:
    """Tests of the numbers of parameters (Figures 26 to 28).

    The paper has biases before batch norm, and without batch norm only in the first layer.
    """
    from torchvision.models import resnet18

    with torch.device("meta"):
        deep = resnet18(num_classes=10)
        deep.conv1 = nn.Conv2d(3, 64, 3, bias=False)
        sizes = [
            sum(parameter.numel() for parameter in network.parameters())
            for network in (myrtle(), myrtle(norm=False), resnet20(), deep)
        ]
    sizes[0] += 64 + 128 + 256 + 512
    sizes[1] -= 128 + 256 + 512 + 10
    names = ("Myrtle CNN", "Myrtle CNN without norm", "ResNet20", "ResNet18 (torchvision's)")
    return judged("symmetries", "sizes", {"parameters": dict(zip(names, sizes, strict=True))})
