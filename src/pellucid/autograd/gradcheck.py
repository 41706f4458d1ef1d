"""`gradcheck` and `gradgradcheck`: compare derivatives with finite differences.

Central differences in double precision. In fast mode one random direction is compared instead of the whole Jacobian.
Complex inputs follow PyTorch's convention: the gradient is with respect to the conjugate. Here is what is asked of reverse
mode; forward mode and batches are checked by `autograd/gradcheck_forward.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.differentiate import grad as _grad
from pellucid.autograd.engine import run
from pellucid.autograd.finite_differences import (
    GradcheckError,
    Tolerances,
    along,
    differentiable,
    jacobian_rows,
    outputs_of,
    real_parts,
    tensors_in,
)
from pellucid.autograd.node import leaf_edge
from pellucid.core.tensor import Tensor, wrap

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def _analytical(output: Tensor, target: Tensor) -> list[np.ndarray]:
    """Rows of the transposed Jacobian: the gradient of the real (and imaginary) part of each output element."""
    rows = []
    for index in np.ndindex(output._array.shape):
        for unit in [1.0] if output._array.dtype.kind != "c" else [1.0, 1j]:
            seed = np.zeros_like(output._array)
            seed[index] = unit
            (g,) = _grad([output], [target], [wrap(seed)], retain_graph=True, allow_unused=True)
            rows.append(np.zeros_like(target._array) if g is None else g._array)
    return rows


def _check_constant(func, inputs, wanted, eps: float) -> None:
    """A function none of whose results require grad must not depend on its inputs."""
    for target in wanted:
        for row in jacobian_rows(func, inputs, target, eps):
            if any(np.any(change) for change in row):
                raise GradcheckError("Numerical gradient for function expected to be zero")


IMAGINARY, REAL = "imaginary", "real"


def _considered(output: Tensor) -> dict:
    """Which parts of an output are compared one after the other: their columns among `_real_parts`, and their unit."""
    if output._array.dtype.kind != "c":
        return {None: (slice(None), 1.0)}
    return {IMAGINARY: (slice(1, None, 2), 1j), REAL: (slice(0, None, 2), 1.0)}


def _mismatch(part: str | None, output: int, position: int, numerical, analytical, how: str = "") -> GradcheckError:
    prefix = "" if part is None else f"While considering the {part} part of complex outputs only, "
    return GradcheckError(
        f"{prefix}Jacobian mismatch for output {output} with respect to input {position}{how},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _compare(func, inputs, outputs, target: Tensor, position: int, tolerances: Tolerances) -> None:
    """The whole Jacobian of one input. Outputs that require no grad are not compared."""
    numerical = jacobian_rows(func, inputs, target, tolerances.eps)
    size = real_parts(target._array).size
    compared = [o for o, output in enumerate(outputs) if output.requires_grad]
    for number, o in enumerate(compared):
        columns = real_parts(outputs[o]._array).size
        n = np.array([real_parts(row[o]) for row in numerical]).reshape(size, columns)
        a = np.array([real_parts(g) for g in _analytical(outputs[o], target)]).reshape(columns, size).T
        for part, (chosen, _) in _considered(outputs[o]).items():
            if not np.allclose(a[:, chosen], n[:, chosen], rtol=tolerances.rtol, atol=tolerances.atol):
                raise _mismatch(part, number, position, n[:, chosen], a[:, chosen])


def _compare_fast(func, inputs, outputs, target: Tensor, position: int, tolerances: Tolerances) -> None:
    """One random direction u of the input and one v of the output: v^T J u both ways."""
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(target._array.shape)
    if target._array.dtype.kind == "c":
        direction = direction + 1j * rng.standard_normal(target._array.shape)
    direction = direction / max(np.linalg.norm(direction), 1e-300)
    changes = along(func, inputs, target, direction, tolerances.eps)
    compared = [o for o, output in enumerate(outputs) if output.requires_grad]
    for number, o in enumerate(compared):
        for part, (_, unit) in _considered(outputs[o]).items():
            v = np.asarray(rng.standard_normal(outputs[o]._array.shape) * unit, outputs[o]._array.dtype)
            n = float(np.real(np.sum(np.conj(v) * changes[o])))
            a = _along(outputs[o], target, v, direction)
            if not np.isclose(a, n, rtol=tolerances.rtol, atol=tolerances.atol):
                raise _mismatch(part, number, position, n, a, ", in fast mode")


def _along(output: Tensor, target: Tensor, v: np.ndarray, direction: np.ndarray) -> float:
    """The derivative of v^T output as the input moves in one direction, by backward."""
    (g,) = _grad([output], [target], [wrap(v)], retain_graph=True, allow_unused=True)
    return 0.0 if g is None else float(np.real(np.sum(np.conj(g._array) * direction)))


def _check_inputs(inputs) -> list[Tensor]:
    wanted = differentiable(inputs)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    for i, t in [(i, t) for i, value in enumerate(inputs) for t in differentiable(value)]:
        if t._array.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                "likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if 0 in t._array.strides and t._array.size > 1:
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping. Call .contiguous() on it first."
            )
    return wanted


def _check_undefined(func, inputs, wanted) -> None:
    """Backward must work where an output received no gradient, and must give zeros for a gradient of zeros."""
    outputs = [o for o in outputs_of(func, inputs) if o.requires_grad]
    targets = [leaf_edge(t) if t._edge is None else t._edge for t in wanted]
    for output in outputs:
        if output._edge is None:
            continue
        try:
            run((output._edge,), (None,), keep_graph=True, create_graph=False, targets=targets, accumulate=False)
        except Exception as error:
            warnings.warn(
                "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
                "break existing callers of this function. If this is true for you, you can call this function with "
                '"check_undefined_grad=False" to disable the feature',
                stacklevel=4,
            )
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: each grad output may be None."
            ) from error


def _check_multiplied(outputs, wanted) -> None:
    """A gradient of zeros must give zeros."""
    for output in outputs:
        if output.requires_grad:
            zeros = [wrap(np.zeros_like(output._array))]
            for g in _grad([output], wanted, zeros, retain_graph=True, allow_unused=True):
                if g is not None and np.any(np.nan_to_num(g._array)):
                    raise GradcheckError("backward not multiplied by grad_output")


def _check_deterministic(outputs, wanted, tol: float) -> None:
    for output in outputs:
        if output.requires_grad:
            seed = wrap(np.ones_like(output._array))
            first = _grad([output], wanted, [seed], retain_graph=True, allow_unused=True)
            second = _grad([output], wanted, [seed], retain_graph=True, allow_unused=True)
            for a, b in zip(first, second, strict=True):
                if a is not None and not np.allclose(a._array, b._array, rtol=0, atol=tol, equal_nan=True):
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                        f"times gives different values. The tolerance for nondeterminism was {tol}."
                    )


def gradcheck(func, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
              check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None) -> bool:  # fmt: skip
    """Whether the derivatives of `func` agree with central differences.

    Args:
        func: takes `inputs`, returns a tensor or several.
        inputs: a tensor or a tuple of arguments; those that require grad should be double precision.
        eps: step of the differences.
        atol, rtol: how far both may differ.
        raise_exception: raise GradcheckError instead of returning False.
        nondet_tol: how far two runs of backward may differ.
        check_undefined_grad: also run backward from single outputs, and forward mode with single tangents left out.
        check_grad_dtypes: also require that gradients have their inputs' dtypes, and tangents are complex where outputs are.
        check_batched_grad: also run backward for two vectors at once.
        check_batched_forward_grad: also run forward mode for two tangents at once.
        check_forward_ad: check forward mode.
        check_backward_ad: check reverse mode.
        fast_mode: compare one random direction instead of the whole Jacobian.
        masked: for sparse tensors, which there are none of.

    Raises:
        GradcheckError: a derivative is wrong.
        ValueError: no input requires grad.
        AssertionError: options that do not go together, or a function whose outputs change shape or dtype.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    tolerances, rng = Tolerances(eps, atol, rtol), np.random.default_rng(2)
    try:
        wanted = _check_inputs(inputs)
        outputs = outputs_of(func, inputs)
        if check_backward_ad:
            _compare_backward(func, inputs, outputs, wanted, tolerances, fast_mode)
        if check_forward_ad:
            from pellucid.autograd.gradcheck_forward import check_tangents

            check_tangents(func, inputs, tolerances, fast_mode, check_undefined_grad, check_grad_dtypes)
        if check_batched_forward_grad:
            from pellucid.autograd.gradcheck_forward import check_batched_tangents

            check_batched_tangents(func, inputs, rng)
        if check_backward_ad:
            if check_batched_grad:
                _check_batched(inputs, outputs, rng)
            _check_backward(func, inputs, outputs, wanted, nondet_tol, check_undefined_grad, check_grad_dtypes)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare_backward(func, inputs, outputs, wanted, tolerances: Tolerances, fast: bool) -> None:
    """Compare reverse mode with finite differences."""
    if not any(o.requires_grad for o in outputs):
        _check_constant(func, inputs, wanted, tolerances.eps)
        return
    for position, target in enumerate(wanted):
        (_compare_fast if fast else _compare)(func, inputs, outputs, target, position, tolerances)


def _check_batched(inputs, outputs, rng) -> None:
    """Backward for two vectors at once."""
    from pellucid.autograd.gradcheck_forward import check_batched_backward

    for number, output in enumerate(o for o in outputs if o.requires_grad):
        check_batched_backward(inputs, output, number, rng)


def _check_backward(func, inputs, outputs, wanted, nondet_tol: float, undefined: bool, dtypes: bool) -> None:
    """What else reverse mode must do than give the right numbers."""
    _check_multiplied(outputs, wanted)
    _check_deterministic(outputs, wanted, nondet_tol)
    if undefined:
        _check_undefined(func, inputs, wanted)
    if dtypes:
        _check_dtypes(outputs, wanted)


def _check_dtypes(outputs, wanted) -> None:
    for output in outputs:
        if output.requires_grad:
            for t, g in zip(
                wanted,
                _grad([output], wanted, [wrap(np.ones_like(output._array))], retain_graph=True, allow_unused=True),
                strict=True,
            ):
                if g is not None and g.dtype is not t.dtype:
                    raise GradcheckError(f"backward made a gradient of dtype {g.dtype} for an input of dtype {t.dtype}")


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the second derivatives of `func` agree with central differences of the first.

    Args:
        grad_outputs: where to start the first backward from; random if None.
        gen_non_contig_grad_outputs: make those gradients strided.
        check_fwd_over_rev: check the first derivative by forward mode.
        check_rev_over_rev: check it by reverse mode.

    The other arguments are those of `gradcheck`.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for option, is_set in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if is_set and not check_rev_over_rev:
            raise AssertionError(f"Setting {option}=True requires check_rev_over_rev to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = [o for o in outputs_of(func, inputs) if o.requires_grad]
    rng = np.random.default_rng(1)
    seeds = tensors_in(grad_outputs) if grad_outputs is not None else [_random_like(o, rng) for o in outputs]
    if gen_non_contig_grad_outputs:
        seeds = [wrap(np.repeat(s._array[..., None], 2, -1)[..., 0], True) for s in seeds]
    count = len(inputs)
    requiring = [isinstance(t, Tensor) and t.requires_grad for t in (*inputs, *seeds)]

    def first_derivative(*arguments):
        # forward mode is given inputs that require no grad: those that did must again
        given = [t.requires_grad_() if needs else t for t, needs in zip(arguments, requiring, strict=True)]
        produced = [o for o in outputs_of(func, given[:count]) if o.requires_grad]
        found = _grad(produced, differentiable(given[:count]), given[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first_derivative,
        (*inputs, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _random_like(output: Tensor, rng) -> Tensor:
    """A random gradient for a tensor, which requires grad itself."""
    array = output._array
    values = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(array.shape)
    return wrap(np.asarray(values, array.dtype), True)


# --- old names -------------------------------------------------------------------------------------------------------


def _deprecated(name: str, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. It is deprecated and kept for old "
        "programs alone: use gradcheck, or func.jacrev.",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0, got {grad_out}: multiply the Jacobian instead")


def get_numerical_jacobian(fn, inputs, target=None, eps: float = 1e-3, grad_out: float = 1.0) -> list[Tensor]:
    """Central differences of the first output of `fn(inputs)` with respect to real tensors; deprecated.

    Args:
        fn: takes the tuple of inputs.
        target: the tensors to differentiate with respect to; all inputs that require grad if None.

    Returns:
        For each target a matrix [elements of the target, elements of the output].

    Raises:
        ValueError: `grad_out` is not 1.
    """
    _deprecated("get_numerical_jacobian", grad_out)
    wanted = differentiable(inputs if target is None else target)
    return [
        wrap(np.array([row[0].reshape(-1) for row in jacobian_rows(lambda *given: fn(given), inputs, t, eps)]))
        for t in wanted
    ]


def get_analytical_jacobian(inputs, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0) -> tuple:
    """The Jacobian of a real output by backward; deprecated.

    Returns:
        For each input that requires grad a matrix [elements of the input, elements of the output]; then whether two
        runs of backward agree within `nondet_tol`, whether gradients have their inputs' shapes, and their dtypes.

    Raises:
        ValueError: `grad_out` is not 1.
    """
    _deprecated("get_analytical_jacobian", grad_out)
    wanted = differentiable(inputs)
    first, second = ([_analytical(output, t) for t in wanted] for _ in range(2))
    pairs = [(t, g) for t, rows in zip(wanted, first, strict=True) for g in rows]
    return (
        [wrap(np.array([g.reshape(-1) for g in rows]).T.copy()) for rows in first],
        all(np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True) for a, b in zip(first, second, strict=True)),
        all(g.shape == t._array.shape for t, g in pairs),
        all(g.dtype == t._array.dtype for t, g in pairs),
    )
