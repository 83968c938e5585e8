"""The derivative of the affine images, which torch cannot take by itself where singular values are equal."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from affscore.affine import Cloud
from affscore.arrays import on_one_thread

__all__ = ["affine_image"]


class _Image(torch.autograd.Function):
    """``R_X A`` for roots of the covariances, ``S = R^T R``, and Z and sigma of ``map_factor``, ``A = Z Z^T``.

    It equals ``W^T R_Y`` with the polar factor ``W = U V^T`` of ``R_Y R_X^T = U diag(sigma) V^T``: the affine image
    only re-mixes the rows of R_Y. The derivative of a polar factor divides by sums of singular values, not by their
    differences, so equal ones do no harm.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, z: Tensor, sigma: Tensor) -> Tensor:
        ctx.save_for_backward(x, y, z, sigma)
        return (x @ z) @ z.T

    @staticmethod
    @once_differentiable
    @on_one_thread
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, y, z, sigma = ctx.saved_tensors
        v = (x @ z) / sigma.sqrt()
        u = y @ (x.T @ v) / sigma
        uy, vx, vg = u.T @ y, v.T @ x, v.T @ grad
        inner = uy @ vg.T
        inner = (inner - inner.T) / (sigma[:, None] + sigma)
        uy_, vg_ = uy / sigma[:, None], vg / sigma[:, None]
        # The gradient of G = y x^T is U inner V^T + U uy_ (grad - V vg)^T + (y - U uy) vg_^T V^T.
        grad_y = u @ (inner @ vx + uy_ @ (grad - v @ vg).T @ x) + (y - u @ uy) @ (vg_.T @ vx)
        grad_x = v @ (inner.T @ uy + vg_ @ ((y - u @ uy).T @ y)) + (grad - v @ vg) @ (uy_.T @ uy)
        return grad_x, u @ vg + grad_y, None, None


def affine_image(x: Cloud, y: Cloud, z: Tensor, sigma: Tensor) -> Tensor:
    """The images of the samples of x under the affine map ``A = Z Z^T``, with their derivative in x and y."""
    return _Image.apply(x.root(), y.root(), z, sigma)[: len(x.samples)] / x.weight.sqrt()
