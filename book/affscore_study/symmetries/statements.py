"""What the paper prints about intertwiners and about measures of similarity, statement by statement.

Source: Godfrey, Brown, Emerson, Kvinge, "On the Symmetries of Deep Learning Models and their Internal
Representations", NeurIPS 2022, table 1, lemmas 3.1, 5.1, E.7, E.10, E.12, theorem E.14, definitions 5.2 and
5.3, remarks 5.5 and E.6, figures 26 to 28.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.kit.networks import myrtle, resnet20
from affscore_book.kit.tables import Table
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes
from affscore_book.symmetries.lemmas import (
    aligned_draws,
    ignored_draws,
    least_eigenvalue,
    passes,
    slope_gap,
    unit_values,
)
from affscore_book.symmetries.table import defect, intertwiner
from affscore_study.kit.claims import Claim, near, side_by_side

__all__ = ["lemma_table", "similarity_claims", "size_claims", "wording_claims"]

DRAWS = (10, 10)
P_NORMS = (1.5, 3, 4, 8)
MEASURES = {
    "Procrustes as printed": lambda x, y: procrustes(x, y, centred=False, null=0).value,
    "Procrustes centred": lambda x, y: procrustes(x, y, null=0).value,
    "G_ReLU-CKA": lambda x, y: cka(x, y, "max", null=0).value,
}


def lemma_table() -> Table:
    """Five lemmas on every activation of the catalogue, against groups that were derived otherwise.

    Columns: checked, the lemma; cases; right, how many of them.
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
        # exp overflows beyond 700, and infinity less infinity is no zero
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
    """Lemma 5.1, definitions 5.2 and 5.3, remarks 5.5 and E.6: measures that a layer's symmetries should not change."""
    generator = torch.Generator().manual_seed(0)
    independent = torch.randn(10, 2, 50, 4, generator=generator, dtype=torch.float64)
    bounded = sum(0 <= MEASURES["G_ReLU-CKA"](x, y) <= 1 for x, y in independent)
    outside = torch.linspace(1, 3, 50)  # functions that are 0 here: does x -> k x keep them?
    kept = sum(bool(((1 - k * outside).clamp(min=0) == 0).all()) for k in (2, 0.5))
    positive = sum(least_eigenvalue(p) >= 0 for p in P_NORMS)
    shifts, moved = "ignores shifts too, of 10 draws", "1 for Y = XA + 1v, of 10 draws"
    printed, centred, max_kernel = MEASURES.values()
    own: dict[str, Any] = {"kind": "own"}
    return [
        Claim(f"Procrustes as printed: {shifts}", "Symmetries, Lemma 5.1", '"Then, (i) holds"',
              ignored_draws(printed, translations=True), DRAWS),
        Claim(f"Procrustes centred: {shifts}", "ours, of Lemma 5.1", "all",
              ignored_draws(centred, translations=True), DRAWS, **own),
        Claim(f"Procrustes as printed: {moved}", "Symmetries, Definition 5.2", '"equals 1 if"',
              aligned_draws(printed), DRAWS),
        Claim(f"Procrustes centred: {moved}", "ours, of Definition 5.2", "all", aligned_draws(centred), DRAWS, **own),
        Claim(f"G_ReLU-CKA: {moved}", "Symmetries, Definition 5.3", '"= 1 if the condition" (ii) "is met"',
              aligned_draws(max_kernel), DRAWS),
        Claim("G_ReLU-CKA of independent features: in [0, 1], of 10 draws", "Symmetries, Definition 5.3",
              '"ensures" that it is "in [0, 1]"', bounded, DRAWS),
        Claim("kernels of other norms with no negative eigenvalue, of p = 1.5, 3, 4, 8",
              "Symmetries, Remark 5.5, other norms", '"We suspect"', positive, (4, 4)),
        Claim("x to 2x, and back: both keep the functions that are 0 outside [-1, 1]", "Symmetries, Remark E.6",
              '"this is always a subgroup"', kept, (2, 2)),
    ]  # fmt: skip


def wording_claims() -> list[Claim]:
    """Table 1 on LeakyReLU and Theorem E.14 (i), each as it is worded and as its proof has it: the wording decides."""
    mix = torch.tensor([[2.0, -1.0], [-0.5, 1.5]], dtype=torch.float64)
    curved = [name for name in CATALOGUE if name != "identity" and unit_values(name, 2)[1]]
    mixed = sum(passes(name, mix) for name in curved)
    # passes() looks at huge values, where rounding of x + 1 shows; nearer to 0 it does not.
    line = defect(lambda x: x + 1, mix, mix, reach=10.0) <= 1e-10
    slopes = {
        "slope not 1, as worded": (-2, -1, -0.5, 0.01, 0.5, 2),
        "positive and small, as proved": (0.001, 0.01, 0.02, 0.05, 0.1, 0.2),
    }
    alike = {
        reading: Claim("LeakyReLU: slopes with the group of ReLU, of 6", "Symmetries, Table 1", '"Same as ReLU"',
                       sum(intertwiner(nn.LeakyReLU(s)) == intertwiner("relu") for s in values), (6, 6))
        for reading, values in slopes.items()
    }  # fmt: skip
    mixing = {
        reading: Claim(f"functions that a mixing matrix passes, of {len(curved) + extra}", "Symmetries, E.14 (i)",
                       '"Every A" is "of the form PD"', mixed + extra * line, (0, 0))
        for reading, extra in (("not linear, as worded", 1), ("not affine, as proved", 0))
    }  # fmt: skip
    return [*side_by_side("the wording", alike), *side_by_side("the wording", mixing)]


def size_claims() -> list[Claim]:
    """Numbers of parameters (Figures 26 to 28). The paper has biases before batch norm, and without it in the first
    layer only."""
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
    printed = [
        ("Myrtle CNN", "Figure 26", 1_558_026),
        ("Myrtle CNN without norm", "Figure 26", 1_555_200),
        ("ResNet20", "Figure 27", 269_722),
        ("ResNet18 (torchvision's)", "Figure 28", 11_173_962),
    ]
    return [
        Claim(f"{name}: parameters", f"Symmetries, {figure}", f"{theirs:,}", ours, near(theirs, 0))
        for (name, figure, theirs), ours in zip(printed, sizes, strict=True)
    ]
