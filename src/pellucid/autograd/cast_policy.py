"""Which functions autocast runs in the low precision, which in float32, and which in the widest type of their operands.

The lists are those of PyTorch for CPUs. Operators are looked up by name when they are called. A function composed of
operators must be cast as a whole, since some of its operators are on no list: `guard_functions` sees to that once
autocast is first used. The casting is done in `autocast.py`.
"""

from __future__ import annotations

import types
from enum import Enum
from typing import Any

from pellucid.autograd.operator import PUBLIC
from pellucid.core.modes import modes

__all__ = ["FUNCTIONS", "OPERATORS", "Policy", "guard_functions"]


class Policy(Enum):
    """In which type a function computes inside an autocast block."""

    LOW = 0  # the block's type
    FULL = 1  # float32
    WIDEST = 2  # float32 if an operand has it, else the block's type
    GIVEN = 3  # in the types it is given


_OPERATORS = {
    Policy.LOW: "mm bmm addmm addbmm baddbmm matmul linear _convolution _convolution_transposed prelu_kernel",
    Policy.FULL: """grid_sampler_2d grid_sampler_3d trace view_as_complex prod_all prod_dim _cdist geqrf ormqr reflect_pad1d
        reflect_pad2d replicate_pad1d replicate_pad2d replicate_pad3d""",
    Policy.WIDEST: "cat stack index_copy",
}
OPERATORS = {name: policy for policy, names in _OPERATORS.items() for name in names.split()}

# public module -> functions composed of operators
FUNCTIONS = {
    Policy.LOW: {
        "torch": "matmul conv_tbc inner tensordot",
        "linalg": "matmul vecdot",
        "nn.functional": """conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d prelu
            scaled_dot_product_attention affine_grid""",
    },
    Policy.FULL: {
        "torch": """cdist cholesky cholesky_inverse cholesky_solve inverse lu_solve nanquantile orgqr pinverse polar qr
            quantile stft svd triangular_solve""",
        "linalg": """cholesky cholesky_ex cond eig eigh eigvals eigvalsh householder_product inv inv_ex lstsq lu_solve
            matrix_rank qr solve svd svdvals tensorinv tensorsolve""",
        "fft": """fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2
            rfftn""",
        "nn.functional": """adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool3d
            binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss
            fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
            fractional_max_pool3d_with_indices hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss
            max_pool3d max_unpool1d max_unpool2d max_unpool3d mse_loss multi_margin_loss
            multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss""",
    },
}

_guarded: set[int] = set()


def guard_functions() -> None:
    """Let each function of `FUNCTIONS` ask `modes.autocast`, from now on: programs without autocast pay nothing for it."""
    for policy, modules in FUNCTIONS.items():
        for module, names in modules.items():
            for name in names.split():
                function = PUBLIC.get(module, {}).get(name)
                if function is not None and not hasattr(function, "operator") and id(function) not in _guarded:
                    _guarded.add(id(function))
                    _guard(function, policy)


def _guard(function, policy: Policy) -> None:
    """Put new code into the function object that everybody holds; its own goes into a copy, which the new code calls."""
    plain = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    plain.__kwdefaults__ = function.__kwdefaults__

    def call(*args: Any, **kwargs: Any) -> Any:
        autocast = modes.autocast
        if autocast is None:
            return plain(*args, **kwargs)
        indices = kwargs.get("return_indices") and function.__name__ == "max_pool3d"  # another function in PyTorch
        return autocast.call(Policy.GIVEN if indices else policy, plain, *args, **kwargs)

    function.__code__ = _forwarding(function.__code__.co_freevars)
    function.__defaults__, function.__kwdefaults__ = None, {"_call": call}
    function.__wrapped__ = plain  # whose signature is shown


def _forwarding(free: tuple[str, ...]) -> types.CodeType:
    """Code that forwards arguments to `_call`. It names the free variables of the code it replaces, whose cells it gets."""
    source = [
        f"def around({', '.join(free)}):",
        "    def guarded(*args, _call, **kwargs):",
        "        return _call(*args, **kwargs)",
        f"        ({', '.join([*free, ''])})" if free else "",
        "    return guarded",
    ]
    scope: dict[str, Any] = {}
    exec(compile("\n".join(source), "<pellucid autocast>", "exec"), scope)
    return scope["around"](*free).__code__
