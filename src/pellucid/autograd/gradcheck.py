"""`gradcheck` and `gradgradcheck`: compare derivatives with finite differences.

Central differences in double precision. In fast mode one random direction is compared instead of the whole Jacobian.
Complex inputs follow PyTorch's convention: the gradient is with respect to the conjugate.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pellucid.autograd.differentiate import grad as _grad
from pellucid.autograd.engine import run
from pellucid.autograd.node import leaf_edge
from pellucid.core.tensor import Tensor, wrap

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative that finite differences do not confirm."""


def _tensors(values) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, (tuple, list)):
        return [t for v in values for t in _tensors(v)]
    return []


def _differentiable(values) -> list[Tensor]:
    return [t for t in _tensors(values) if t.requires_grad]


def _outputs(func, inputs) -> list[Tensor]:
    return [t for t in _tensors(func(*inputs)) if t._array.dtype.kind in "fc"]


def _numerical(func, inputs, target: Tensor, eps: float) -> list[list[np.ndarray]]:
    """For each output, its change along each real (and imaginary) direction of one input, divided by the step."""
    array = target._array
    rows: list[list[np.ndarray]] = []
    steps = [eps] if array.dtype.kind != "c" else [eps, 1j * eps]
    for index in np.ndindex(array.shape):
        for step in steps:
            before = array[index]
            array[index] = before + step  # past autograd: the function may itself differentiate
            high = [o._array.copy() for o in _outputs(func, inputs)]
            array[index] = before - step
            low = [o._array.copy() for o in _outputs(func, inputs)]
            array[index] = before
            _same_kind(high, low)
            rows.append([(up - down) / (2 * eps) for up, down in zip(high, low, strict=True)])
    return rows


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


def _same_kind(high, low) -> None:
    """The two perturbed results must be of one shape and type."""
    for up, down in zip(high, low, strict=True):
        for what in ("shape", "dtype"):
            if getattr(up, what) != getattr(down, what):
                raise AssertionError(
                    f"Expected `fn` to return outputs with the same {what} when inputs are perturbed, but got: "
                    f"{getattr(up, what)} and {getattr(down, what)}"
                )


def _check_constant(func, inputs, wanted, eps: float, atol: float) -> None:
    """A function none of whose results require grad must not depend on its inputs."""
    for target in wanted:
        for row in _numerical(func, inputs, target, eps):
            if any(np.abs(change).max(initial=0) > atol for change in row):
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _real_parts(array) -> np.ndarray:
    """A complex array as its real and imaginary parts, flattened."""
    value: Any = np.asarray(array).reshape(-1)
    return np.stack([value.real, value.imag], 1).reshape(-1) if value.dtype.kind == "c" else value


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


def _compare(func, inputs, outputs, target: Tensor, position: int, eps, atol, rtol) -> None:
    numerical = _numerical(func, inputs, target, eps)
    for number, output in enumerate(outputs):
        size = _real_parts(target._array).size
        columns = _real_parts(output._array).size
        n = np.array([_real_parts(row[number]) for row in numerical]).reshape(size, columns)
        a = (
            np.array([_real_parts(g) for g in _analytical(output, target)]).reshape(columns, size).T
            if output.requires_grad
            else np.zeros_like(n)
        )
        for part, (chosen, _) in _considered(output).items():
            if not np.allclose(a[:, chosen], n[:, chosen], rtol=rtol, atol=atol):
                raise _mismatch(part, number, position, n[:, chosen], a[:, chosen])


def _compare_fast(func, inputs, outputs, target: Tensor, position: int, eps, atol, rtol) -> None:
    """One random direction u of the input and one v of the output: v^T J u both ways."""
    rng = np.random.default_rng(0)
    array = target._array
    direction = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        direction = direction + 1j * rng.standard_normal(array.shape)
    direction = direction / max(np.linalg.norm(direction), 1e-300)
    before = array.copy()
    array[...] = before + eps * direction
    high = [o._array.copy() for o in _outputs(func, inputs)]
    array[...] = before - eps * direction
    low = [o._array.copy() for o in _outputs(func, inputs)]
    array[...] = before
    _same_kind(high, low)
    for number, (output, up, down) in enumerate(zip(outputs, high, low, strict=True)):
        change = (up - down) / (2 * eps)
        for part, (_, unit) in _considered(output).items():
            v = np.asarray(rng.standard_normal(output._array.shape) * unit, output._array.dtype)
            n = float(np.real(np.sum(np.conj(v) * change)))
            a = _along(output, target, v, direction)
            if not np.isclose(a, n, rtol=rtol, atol=atol):
                raise _mismatch(part, number, position, n, a, ", in fast mode")


def _along(output: Tensor, target: Tensor, v: np.ndarray, direction: np.ndarray) -> float:
    """The derivative of v^T output as the input moves in one direction, by backward."""
    if not output.requires_grad:
        return 0.0
    (g,) = _grad([output], [target], [wrap(v)], retain_graph=True, allow_unused=True)
    return 0.0 if g is None else float(np.real(np.sum(np.conj(g._array) * direction)))


def _check_inputs(inputs) -> list[Tensor]:
    wanted = _differentiable(inputs)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    for i, t in enumerate(wanted):
        if t._array.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will "
                "likely fail if all the inputs are not of double precision floating point or complex.", stacklevel=4,
            )  # fmt: skip
        if 0 in t._array.strides and t._array.size > 1:
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping."
            )
    return wanted


def _check_undefined(func, inputs, wanted) -> None:
    """Backward must work where an output received no gradient, and must give zeros for a gradient of zeros."""
    outputs = [o for o in _outputs(func, inputs) if o.requires_grad]
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
                        "times gives different values."
                    )


def gradcheck(func, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              fast_mode: bool = False) -> bool:  # fmt: skip
    """Whether the derivatives of `func` agree with central differences.

    Args:
        func: takes `inputs`, returns a tensor or several.
        inputs: a tensor or a tuple of arguments; those that require grad should be double precision.
        eps: step of the differences.
        atol, rtol: how far both may differ.
        raise_exception: raise GradcheckError instead of returning False.
        nondet_tol: how far two runs of backward may differ.
        check_undefined_grad: also run backward from single outputs.
        check_grad_dtypes: also require that gradients have their inputs' dtypes.
        fast_mode: compare one random direction instead of the whole Jacobian.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    try:
        wanted = _check_inputs(inputs)
        outputs = _outputs(func, inputs)
        compare = _compare_fast if fast_mode else _compare
        if not any(o.requires_grad for o in outputs):
            _check_constant(func, inputs, wanted, eps, atol)
            return True
        for position, target in enumerate(wanted):
            compare(func, inputs, outputs, target, position, eps, atol, rtol)
        _check_multiplied(outputs, wanted)
        _check_deterministic(outputs, wanted, nondet_tol)
        if check_undefined_grad:
            _check_undefined(func, inputs, wanted)
        if check_grad_dtypes:
            _check_dtypes(outputs, wanted)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


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
    fast_mode: bool = False,
) -> bool:
    """Whether the second derivatives of `func` agree with central differences of the first.

    Args:
        grad_outputs: where to start the first backward from; random if None.
        gen_non_contig_grad_outputs: make those gradients strided.

    The other arguments are those of `gradcheck`.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = [o for o in _outputs(func, inputs) if o.requires_grad]
    rng = np.random.default_rng(1)
    seeds = _tensors(grad_outputs) if grad_outputs is not None else [_random_like(o, rng) for o in outputs]
    if gen_non_contig_grad_outputs:
        seeds = [wrap(np.repeat(s._array[..., None], 2, -1)[..., 0], True) for s in seeds]
    count = len(inputs)

    def first_derivative(*arguments):
        given, seed = arguments[:count], arguments[count:]
        produced = [o for o in _outputs(func, given) if o.requires_grad]
        wanted = _differentiable(given)
        found = _grad(produced, wanted, list(seed), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None and g.requires_grad)

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
    wanted = _differentiable(inputs if target is None else target)
    return [
        wrap(np.array([row[0].reshape(-1) for row in _numerical(lambda *given: fn(given), inputs, t, eps)]))
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
    wanted = _differentiable(inputs)
    first, second = ([_analytical(output, t) for t in wanted] for _ in range(2))
    pairs = [(t, g) for t, rows in zip(wanted, first, strict=True) for g in rows]
    return (
        [wrap(np.array([g.reshape(-1) for g in rows]).T.copy()) for rows in first],
        all(np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True) for a, b in zip(first, second, strict=True)),
        all(g.shape == t._array.shape for t, g in pairs),
        all(g.dtype == t._array.dtype for t, g in pairs),
    )
