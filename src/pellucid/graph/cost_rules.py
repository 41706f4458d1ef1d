"""What each operator costs in floating-point operations: one table, with the rule in words beside the rule in code.

Conventions, the same for all:

- A multiplication with the addition that follows it, in a product or convolution, is one MAC and two FLOPs. Sums start
  at zero or at the bias, so a sum of k products is k MACs; a bias and its gradient cost nothing beside the product.
- Elsewhere an addition, multiplication, division or comparison of two numbers is one FLOP, and so is one evaluation of
  an elementary or special function (`sqrt`, `exp`, `tanh`, `erf`, ...). What a fused operator does is counted by its
  formula.
- A reduction of n numbers to one costs n.
- Moving, copying, selecting, converting and filling cost nothing; nor does drawing random numbers.
- Only floating-point arithmetic counts: on integers and truth values everything is free.
- Complex numbers: products count four times, everything else twice.
- A convolution counts its padding as if it were data.

The derivative of an operator is counted by what its formula computes, by the same rules (`cost.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pellucid.autograd.declaration import OPERATORS, Operator
from pellucid.graph.cost_formulas import (
    adaptive_pool,
    attended,
    attended_back,
    convolution,
    convolution_transposed,
    convolution_weight,
    ctc,
    fourier,
    matrices,
    norm,
    normalising,
    normalising_gradients,
    outer,
    pairs,
    pairs_of_products,
    product,
    recurrent,
    resize,
    rows_product,
    scaled_sum,
    sorting,
    var,
    windows,
)

__all__ = ["RULES", "Call", "Rule", "cost_of", "rule_of", "rule_text"]


class Call:
    """One call of an operator: its arguments by name, as arrays and canonical attributes, and its results.

    derivative: whether it is part of the derivative of another operator.
    """

    def __init__(self, op: Operator, raw: list, results: list, derivative: bool = False):
        self.arguments = dict(zip((p.name for p in op.parameters), raw, strict=True))
        self.results, self.derivative = results, derivative

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def out(self) -> Any:
        """The first result."""
        return self.results[0]

    @property
    def input(self) -> Any:
        """The first operand."""
        return next(iter(self.arguments.values()))

    def arrays(self) -> list[np.ndarray]:
        """All arrays among the arguments."""
        found = []
        for value in self.arguments.values():
            items = value if isinstance(value, (list, tuple)) else [value]
            found += [item for item in items if isinstance(item, np.ndarray)]
        return found


class Rule(NamedTuple):
    """The rule of an operator: in words, and as a function of a call that gives (MACs, other FLOPs)."""

    text: str
    count: Callable[[Call], tuple[int, int]]


def rule_of(op: Operator) -> Rule | None:
    """The rule of an operator: that of the table, or what follows from its declaration; None if there is none."""
    rule = RULES.get(op.name)
    if rule is None and (op.view or op.multi_view):
        return VIEW
    if rule is None and not any(p.kind in ("array", "arrays") for p in op.operands):
        return INDICES
    return rule


def cost_of(op: Operator, call: Call) -> tuple[int, int] | None:
    """MACs and FLOPs of a call, MACs included in the FLOPs twice; None if the operator has no rule."""
    rule = rule_of(op)
    if rule is None:
        return None
    kinds = {array.dtype.kind for array in (*call.arrays(), *call.results)}
    if not kinds & set("fcV"):
        return 0, 0
    macs, others = rule.count(call)
    if "c" in kinds:
        macs, others = 4 * macs, 2 * others
    return int(macs), int(2 * macs + others)


def rule_text(name: str) -> str:
    """The rule of an operator in words; empty if it has none."""
    rule = rule_of(OPERATORS[name]) if name in OPERATORS else None
    return "" if rule is None else rule.text


VIEW = Rule("0: a view", lambda call: (0, 0))
INDICES = Rule("0: works on indices", lambda call: (0, 0))

# --- the table --------------------------------------------------------------------------------------------------------

RULES: dict[str, Rule] = {}


def _names(text: str) -> list[str]:
    return text.split()


def _each(flops: int, text: str, names: str) -> None:
    """So many FLOPs for each element of the result."""
    for name in _names(names):
        RULES[name] = Rule(f"{flops} per element: {text}", lambda call: (0, flops * call.out.size))


def _of_input(flops: int, text: str, names: str) -> None:
    """So many FLOPs for each element of the first operand."""
    for name in _names(names):
        RULES[name] = Rule(f"{flops} per element of the operand: {text}", lambda call: (0, flops * call.input.size))


def _rule(text: str, count: Callable, names: str) -> None:
    for name in _names(names):
        RULES[name] = Rule(text, count)


_rule("0: moves, selects, converts or fills", lambda call: (0, 0), """
    assemble basic_backward block_diag cat channel_shuffle circular_pad1d circular_pad2d circular_pad3d clone
    complex complex_of conj conj_physical constant_pad_nd copied_beside copy corner_of diag_embed diagonal_backward
    embedding expand_all expand_reduced fill_diagonal_of fill_number fill_tensor flip gather grid_gather hide_later im2col
    imag_copy _image_gather imaginary_of index index_at index_copy index_fill_number index_put index_select
    index_zero into_corner isin kept_slices masked_fill masked_fill_tensor masked_place masked_scatter
    masked_scatter_backward masked_select masked_select_backward _max_pool_picked pixel_shuffle pixel_unshuffle
    place_along real_copy reflect_pad1d reflect_pad2d reflect_pad3d refusing_zeros repeat repeated_padding
    replicate_pad1d replicate_pad2d replicate_pad3d reshape reshape_copy reshape_to restride roll scatter_src
    scatter_value single_zeros stack take take_along _to_copy tril triu unsafe_split unsafe_split_with_sizes
    upper_triangle where zero zeros_as
""")  # fmt: skip
_rule("0: draws random numbers", lambda call: (0, 0), "bernoulli binomial multinomial normal poisson _sample_dirichlet _standard_gamma")

# --- element by element
_each(1, "one operation or comparison", """
    abs all_dim any_dim bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil
    clamp_number copysign count_nonzero deg2rad div_rounded eq floor fmax fmin frac frexp gcd ge gt heaviside
    isclose isfinite isinf isnan isneginf isposinf isreal lcm ldexp le logical_and logical_not logical_or
    logical_xor lt maximum minimum mul nan_as_zero nan_to_num ne neg nextafter pair_differences pass_above rad2deg
    reciprocal relu rmul round scaled_pairs sgn share sign signbit threshold_kernel times_power_of_two true_divide
    trunc
""")  # fmt: skip
_rule("1 per element, 2 with a factor alpha", scaled_sum, "add radd sub rsub")
_each(1, "one evaluation of the function", """
    acos acosh airy_ai angle asin asinh atan atan2 atanh bessel_j0 bessel_j1 bessel_y0 bessel_y1
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w cos cosh digamma
    _dirichlet_grad erf erfc erfcx erfinv exp exp2 expm1 hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e
    igamma igammac laguerre_polynomial_l legendre_polynomial_p lgamma log log10 log1p log2 log_ndtr
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri polygamma_of pow_scalar
    pow_tensor scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sin sinh
    spherical_bessel_j0 sqrt _standard_gamma_grad tan tanh zeta
""")  # fmt: skip
_each(2, "two comparisons", "clamp_tensor hardshrink hardtanh_kernel pass_inside pass_outside within aminmax")
_each(2, "a division and a rounding", "floor_divide fmod remainder")
_each(2, "two operations", "rsqrt entr leaky_relu prelu_kernel rrelu_kernel slope_below xlogy xlog1py pow_less_one pow_vanishes")
_each(3, "three operations", "at_least lerp sinc softshrink logit tanh_backward tanh_curvature sigmoid_backward addcmul addcdiv")
_each(4, "two squares, their sum, the root", "hypot")
_each(4, "minus, exp, plus, division", "sigmoid")
_each(4, "comparison, exp, minus, times", "elu_kernel")
_each(4, "plus, two comparisons, division", "hardsigmoid_kernel")
_each(5, "hard sigmoid (4) and a product", "hardswish_kernel")
_each(5, "sigmoid (4) and a product", "silu")
_each(5, "x * 0.5 * (1 + erf(x * c))", "gelu_exact")
_each(9, "0.5 * x * (1 + tanh(c * (x + a * x * x * x)))", "gelu_tanh")
_each(4, "exp, log1p, tanh, product", "mish")
_each(5, "product, exp, log1p, division, comparison", "softplus")
_each(5, "min, abs, exp, log1p, minus", "log_sigmoid")
_each(5, "max, difference, exp, log1p, plus", "logaddexp logaddexp2")
_each(3, "two products and a difference", "linalg_cross")
_each(4, "comparison, exp or result, two products", "elu_backward")
_each(5, "two comparisons, factor, sum, product", "hardswish_backward")
_each(5, "minus, exp, plus, division, product", "log_sigmoid_backward")
_each(6, "product, comparison, exp, plus, division, product", "softplus_backward")
_each(9, "sigmoid (4), complement, product, plus, two products", "silu_backward")
_each(11, "0.5 * (1 + erf(x * c)) + x * k * exp(-x * x / 2), and a product", "gelu_backward")
_each(13, "exp, log1p, tanh, sigmoid (4), square, complement, two products, sum, product", "mish_backward")
_each(18, "argument (5), tanh, half of 1 + t (2), slope of t (2), of the argument (3), three products, sum, product", "gelu_tanh_backward")
_of_input(1, "a comparison with the one before", "unique_consecutive")

# --- reductions and scans
_of_input(1, "one addition, product or comparison each", """
    amax amin argmax argmin cummax cummin cumprod cumsum max max_all min min_all
    pair_differences_backward prod_all prod_dim prod_others repeat_backward repeated_padding_backward sum_all
    sum_dim sum_off_diagonal sum_to_size trace unfold_backward
""")  # fmt: skip
_of_input(1, "adds each element to its place", """
    col2im embedding_dense_backward gather_backward _image_scatter index_at_backward index_backward
    index_select_backward _max_pool_backward scatter_counts sum_bags trace_backward
""")  # fmt: skip
_rule("1 for each column of each chosen row", lambda call: (0, call["indices"].size * call.input.shape[-1]), "bag_sums")
_of_input(3, "a comparison, a count and a division each", "gather_ties spread_ties embedding_shares")
_of_input(3, "difference, product, count", "histc histogram")
_of_input(5, "five operations each", "logcumsumexp scaled_sums")
_of_input(3, "two products and a sum each", "cumprod_back")
_rule("1 per element added", lambda call: (0, call["src"].size), "scatter_add scatter_reduce index_reduce scatter_factors")
_rule("1 per element added", lambda call: (0, call["source"].size), "index_add")
_rule("1 per element of the operand and 1 per result", lambda call: (0, call.input.size + call.out.size), "mean_all mean_dim")
_rule("4 per element of the operand (sum, difference, square, sum), 2 per result", var, "var std var_mean std_mean")
_rule("4 per element of the operand (max, difference, exp, sum), 2 per result",
      lambda call: (0, 4 * call.input.size + 2 * call.out.size), "logsumexp")  # fmt: skip
_rule("2 per element for order 2 (square, sum), else 3 (abs, power, sum); 1 per result", norm, "vector_norm")
_rule("n log2 n comparisons for each row of n", sorting, "sort topk kthvalue median median_all nanmedian nanmedian_all mode _unique2 unique_dim")
_rule("log2 n comparisons for each result, in a row of n",
      lambda call: (0, call.out.size * (max(call.input.shape[-1] - 1, 0)).bit_length()), "searchsorted")  # fmt: skip

# --- softmax and losses
_each(5, "max, difference, exp, sum, quotient or difference", "softmax safe_softmax log_softmax")
_each(4, "two products, sum, difference", "softmax_backward")
_each(4, "sum, exp, product, difference", "log_softmax_backward")
_of_input(3, "difference, square, sum", "mse_loss")
_of_input(6, "difference, abs, comparison, square, factor, sum", "smooth_l1_loss huber_loss")
_of_input(9, "two logarithms, two complements, two products, sum, sign, sum", "binary_cross_entropy")
_of_input(9, "max, product, difference, abs, minus, exp, log1p, plus, sum", "binary_cross_entropy_with_logits")
_of_input(5, "two products, exp, log1p, sum", "soft_margin_loss")
_rule("2 per target: sign and sum", lambda call: (0, 2 * call["target"].size), "nll_loss")
_rule("1 per target", lambda call: (0, call["target"].size), "nll_loss_backward")
_rule("5 per score as in log-softmax, 2 per target: sign and sum; 1 per score more where labels are smoothed",
      lambda call: (0, (5 + bool(call["label_smoothing"])) * call.input.size + 2 * call["target"].size), "cross_entropy")  # fmt: skip
_rule("4 per score as in the derivative of log-softmax, 1 per target", lambda call: (0, 4 * call.out.size + call["target"].size),
      "cross_entropy_backward")  # fmt: skip
_rule("2 per target: share and factor", lambda call: (0, 2 * call["target"].size), "cross_entropy_factors")
_rule("10 per step and state of the lattice (2 L + 1 states for L labels)", ctc, "ctc_loss ctc_loss_backward")

# --- normalising
_rule("mean and variance 4 per element (none in a derivative, which has them), normalising 2, weight 1, bias 1; mean square 2 and 1",
      normalising, "normalised normalised_batch normalised_groups normalised_squares")  # fmt: skip
_rule("10 per element for the input (see `normalised_backward`), 4 for the weight (normalised value 2, product, sum), 1 for the bias",
      normalising_gradients, "normalised_gradients")  # fmt: skip
_each(2, "a factor and a term for each channel; what is done once for a channel is not counted", "normalised_fixed")
_each(2, "a difference and a product", "normalised_unit")
_each(10, "two sums, weight, normalised value (2), three products, two differences", "normalised_backward")

# --- products: MACs
_rule("m n k MACs for [m, k] @ [k, n], for each matrix of a batch; a bias is where the sums start", product,
      "mm bmm mv dot matmul linear addmm addmv baddbmm addbmm")  # fmt: skip
_rule("m n MACs for each of the rows: [rows, m]^T @ [rows, n]", rows_product, "gram")
_rule("L S (E + EV) MACs, 1 per element of the queries (scaling), 5 for each of the L S scores as in softmax", attended, "dot_product_attention")
_rule("L S (3 E + 2 EV) MACs, 4 for each of the L S scores (difference, exp, difference, product), 2 per element of the gradient",
      attended_back, "dot_product_attention_backward")  # fmt: skip
_rule("gates * hidden * (input + hidden) MACs for each row (LSTM 4 gates, GRU 3, RNN 1); for each row and state 22 for an LSTM, 16 for a "
      "GRU, 2 for an RNN: functions of the gates, sums and products", recurrent, "recurrent_layer")  # fmt: skip
_rule("m n MACs", outer, "addr")
_rule("MACs: each result, times channels of a group, times kernel size; a bias is where the sums start", convolution, "_convolution")
_rule("MACs: each element of the operand, times channels of a group, times kernel size", convolution_transposed, "_convolution_transposed")
_rule("MACs: each element of the gradient, times channels of a group, times kernel size", convolution_weight, "_convolution_weight")

# --- images
_rule("one comparison for each place of each window", windows, "_max_pool")
_rule("one addition for each place of each window, 1 per result", lambda call: (0, windows(call)[1] + call.out.size), "_avg_pool")
_rule("one addition for each place of each window, 1 per window",
      lambda call: (0, call.input.size * (math.prod(call["size"]) + 1)), "_avg_pool_backward")  # fmt: skip
_rule("one addition for each place of each window, 1 per window", adaptive_pool, "_adaptive_avg_pool _adaptive_avg_pool_backward")
_rule("for each result and dimension: nearest 0, linear 3, cubic 7, Lanczos 11", resize, """
    resample upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d upsample_bilinear2d_aa
    upsample_lanczos2d_aa upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d upsample_trilinear3d
""")  # fmt: skip
_rule("a product and a sum for each corner, 4 or 8 per result; weights 3 per point and corner",
      lambda call: (0, 8 * call.out.size + 12 * call["grid"].size // 2), "grid_sampler_2d")  # fmt: skip
_rule("a product and a sum for each corner, 4 or 8 per result; weights 3 per point and corner",
      lambda call: (0, 16 * call.out.size + 24 * call["grid"].size // 3), "grid_sampler_3d")  # fmt: skip
_each(3, "a weight for each corner", "grid_weights")
_of_input(2, "a product and a sum", "grid_scatter grid_weigh")

# --- distances
_rule("3 for each pair and coordinate", pairs, "_cdist _pdist")
_rule("MACs: each pair of vectors, times coordinates and 2", pairs_of_products, "euclidean_dist")

# --- linear algebra: leading terms from Golub and Van Loan, Matrix Computations, 4th edition
_rule("n^3 / 3 for each matrix", lambda call: matrices(call, lambda m, n: n**3 / 3), "linalg_cholesky")
_rule("2 n^3 / 3 for each matrix", lambda call: matrices(call, lambda m, n: 2 * n**3 / 3),
      "linalg_lu_packed linalg_det linalg_slogdet")  # fmt: skip
_rule("2 n^3 for each matrix", lambda call: matrices(call, lambda m, n: 2 * n**3), "linalg_inv cofactors")
_rule("2 n^3 / 3 + 2 n^2 for each right-hand side",
      lambda call: (0, matrices(call, lambda m, n: 2 * n**3 / 3)[1] + 2 * call.input.shape[-1] * call.out.size),
      "linalg_solve")  # fmt: skip
_rule("4 (m n^2 - n^3 / 3) for each matrix, R and Q", lambda call: matrices(call, lambda m, n: 4 * (m * n * n - n**3 / 3)), "linalg_qr")
_rule("2 (m n^2 - n^3 / 3) for each matrix, R and reflectors", lambda call: matrices(call, lambda m, n: 2 * (m * n * n - n**3 / 3)), "geqrf")
_rule("4 for each reflector and element of the other matrix", lambda call: (0, 4 * call["tau"].shape[-1] * call.out.size), "ormqr")
_rule("n^3 / 3 for each matrix", lambda call: matrices(call, lambda m, n: n**3 / 3), "linalg_ldl_factor_ex")
_rule("2 n^2 for each right-hand side", lambda call: (0, 2 * call.input.shape[-1] * call.out.size), "linalg_ldl_solve")
_rule("9 n^3 for each matrix", lambda call: matrices(call, lambda m, n: 9 * n**3), "linalg_eigh")
_rule("25 n^3 for each matrix", lambda call: matrices(call, lambda m, n: 25 * n**3), "linalg_eig")
_rule("14 m n^2 + 8 n^3 for each matrix", lambda call: matrices(call, lambda m, n: 14 * m * n * n + 8 * n**3), "linalg_svd linalg_pinv")
_rule("20 n^3 for each matrix: products and one solution", lambda call: matrices(call, lambda m, n: 20 * n**3), "linalg_matrix_exp")
_rule("5 N log2 N for each complex transform of N numbers, half of it for real ones", fourier, "fft_c2c fft_r2c fft_c2r")
