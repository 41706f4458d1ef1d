"""What `gradcheck` asks of forward mode, and of derivatives that are computed for several vectors at once.

Tangents are compared with finite differences of functions of real numbers: a complex input is two real ones, checked one
after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pellucid.autograd import declaration
from pellucid.autograd.batching import vmap_over
from pellucid.autograd.differentiate import grad
from pellucid.autograd.finite_differences import (
    GradcheckError,
    Tolerances,
    along,
    differentiable,
    jacobian_rows,
    outputs_of,
    tensors_in,
)
from pellucid.autograd.forward_ad import dual_level, make_dual, unpack_dual
from pellucid.core.tensor import Tensor, wrap

__all__ = ["check_batched_backward", "check_batched_tangents", "check_tangents"]

F = declaration.tensors


# --- tangents against finite differences -----------------------------------------------------------------------------


def check_tangents(func, inputs, tolerances: Tolerances, fast: bool, undefined: bool, dtypes: bool) -> None:
    """Compare forward mode with finite differences.

    Args:
        fast: along one random direction of each input instead of all.
        undefined: also let inputs have no tangent in turn, which must be like a tangent of zeros.
        dtypes: also require that tangents of real outputs are real.

    Raises:
        GradcheckError: they differ.
    """
    rng = np.random.default_rng(0)
    complex_inputs = [t.is_complex() for t in differentiable(inputs)]
    for part, real_func, real_inputs in _parts(func, inputs):
        compare = _compare_along if fast else _compare_all
        mismatch = compare(real_func, real_inputs, tolerances, dtypes, rng)
        if mismatch is not None:
            output, position, numerical, analytical = mismatch
            only = f"While considering the {part} part of complex inputs only, " if complex_inputs[position] else ""
            raise GradcheckError(
                f"{only}Jacobian computed with forward mode mismatch for output {output} with respect to input "
                f"{position},\nnumerical:{numerical}\nanalytical:{analytical}\n"
            )
    if undefined:
        for _, real_func, real_inputs in _parts(func, inputs):
            _check_undefined(real_func, real_inputs, rng)


def _parts(func, inputs):
    """The function as one of real inputs: of the imaginary parts of complex ones, then of the real parts."""
    if not any(isinstance(t, Tensor) and t.is_complex() for t in inputs):
        yield "", func, inputs
        return
    for part in ("imaginary", "real"):

        def of_part(*given, part=part):
            whole = [_whole(part, g, i) for g, i in zip(given, inputs, strict=True)]
            return func(*whole)

        yield part, of_part, tuple(_part(part, i) for i in inputs)


def _part(part: str, value: Any):
    if not (isinstance(value, Tensor) and value.is_complex()):
        return value
    whole: Any = value._array
    array = whole.imag if part == "imaginary" else whole.real
    return wrap(array.copy(), value.requires_grad)


def _whole(part: str, given, original):
    """A complex input of which one part is given."""
    if not (isinstance(original, Tensor) and original.is_complex()):
        return given
    value = original.detach()
    return value.real + given * 1j if part == "imaginary" else given + value.imag * 1j


class _Duals:
    """Inputs as dual tensors whose tangents can be set, all zeros at first."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.duals = [
            make_dual(t.detach(), F.zeros_as(t.detach())) if _is_wanted(t) else _plain(t) for t in inputs
        ]
        self.tangents: list[Any] = [
            unpack_dual(d).tangent for d, t in zip(self.duals, inputs, strict=True) if _is_wanted(t)
        ]

    def pushed(self, func) -> list[Tensor | None]:
        """The tangent of each output."""
        return [unpack_dual(o).tangent for o in outputs_of(func, self.duals)]


def _is_wanted(value) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _plain(value):
    return value.detach() if isinstance(value, Tensor) else value


def _tangent_arrays(func, duals: _Duals, dtypes: bool) -> list[np.ndarray]:
    found = []
    for output in outputs_of(func, duals.duals):
        tangent = unpack_dual(output).tangent
        if tangent is None:
            found.append(np.zeros_like(output._array))
            continue
        if dtypes and tangent.is_complex() != output.is_complex():
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        found.append(tangent._array.copy())
    return found


def _compare_all(func, inputs, tolerances: Tolerances, dtypes: bool, rng):
    """The first block of the Jacobian that differs: output, input, both blocks; None if none does."""
    requiring = [o.requires_grad for o in outputs_of(func, inputs)]
    numerical = [jacobian_rows(func, inputs, t, tolerances.eps) for t in differentiable(inputs)]
    if not any(requiring):
        _check_constant([row for rows in numerical for row in rows])
        return None
    analytical = []
    with dual_level():
        duals = _Duals(inputs)
        for tangent in duals.tangents:
            rows = []
            for index in np.ndindex(tangent._array.shape):
                tangent._array[index] = 1
                rows.append(_tangent_arrays(func, duals, dtypes))
                tangent._array[index] = 0
            analytical.append(rows)
    return _first_difference(analytical, numerical, requiring, tolerances, [1.0] * len(numerical))


def _compare_along(func, inputs, tolerances: Tolerances, dtypes: bool, rng):
    """As `_compare_all`, along one direction of each input."""
    requiring = [o.requires_grad for o in outputs_of(func, inputs)]
    wanted = differentiable(inputs)
    directions = [_direction(t, rng) for t in wanted]
    numerical = [[along(func, inputs, t, u, tolerances.eps)] for t, u in zip(wanted, directions, strict=True)]
    analytical = []
    with dual_level():
        duals = _Duals(inputs)
        for tangent, direction in zip(duals.tangents, directions, strict=True):
            tangent._array[...] = direction
            analytical.append([_tangent_arrays(func, duals, dtypes)])
            tangent._array[...] = 0
    return _first_difference(analytical, numerical, requiring, tolerances, [float(u.sum()) for u in directions])


def _direction(tensor: Tensor, rng) -> np.ndarray:
    """A random direction of non-negative numbers, of length 1."""
    drawn = rng.random(tensor._array.shape)
    return drawn / max(np.linalg.norm(drawn), 1e-300)


def _check_constant(rows) -> None:
    for row in rows:
        if any(np.any(change) for change in row):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def _first_difference(analytical, numerical, requiring, tolerances: Tolerances, scales):
    """Both sides are lists of inputs, of directions, of outputs; outputs that require no grad are not compared."""
    compared = [o for o, requires in enumerate(requiring) if requires]
    for number, output in enumerate(compared):
        for position, scale in enumerate(scales):
            a, n = (np.array([row[output].reshape(-1) for row in side[position]]) for side in (analytical, numerical))
            if not np.allclose(a, n, rtol=tolerances.rtol, atol=tolerances.atol * scale):
                return number, position, n, a
    return None


def _check_undefined(func, inputs, rng) -> None:
    """An input without a tangent must be like one with a tangent of zeros."""
    with dual_level():
        duals = _Duals(inputs)
        for tangent in duals.tangents:
            tangent._array[...] = _direction(tangent, rng)
        for position, value in enumerate(inputs):
            if not _is_wanted(value):
                continue
            whole, plain = duals.duals[position], value.detach()
            duals.duals[position] = make_dual(plain, F.zeros_as(plain))
            zeros = duals.pushed(func)
            duals.duals[position] = plain
            absent = duals.pushed(func)
            duals.duals[position] = whole
            for number, (a, b) in enumerate(zip(zeros, absent, strict=True)):
                if a is not None and b is not None and not np.allclose(a._array, b._array):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {number} when input: {value} has an undefined "
                        f"tangent value. Got: {b} but expected: {a}"
                    )


# --- several vectors at once -----------------------------------------------------------------------------------------

BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation: the derivative computed for two vectors at "
    "once, by vmap, must be that of each. What cannot be batched may be checked with `{option}=False`."
)


def check_batched_backward(inputs, output: Tensor, number: int, rng) -> None:
    """Backward for two vectors at once against backward for each.

    Raises:
        GradcheckError: they differ, or the former fails.
    """
    wanted = differentiable(inputs)

    def pull(v):
        found = grad([output], wanted, [v], retain_graph=True, allow_unused=True)
        return tuple(F.zeros_as(t.detach()) if g is None else g for g, t in zip(found, wanted, strict=True))

    _compare_batched(pull, output, number, "check_batched_grad", rng)


def check_batched_tangents(func, inputs, rng) -> None:
    """Forward mode for two tangents of an input at once against forward mode for each, for every input.

    Raises:
        GradcheckError: they differ, or the former fails.
    """
    for position, value in enumerate(inputs):
        if not _is_wanted(value):
            continue

        def push(tangent, position=position):
            given = [_plain(t) for t in inputs]
            with dual_level():
                given[position] = make_dual(given[position], tangent)
                unpacked = [unpack_dual(o) for o in tensors_in(func(*given))]
                return tuple(F.zeros_as(u.primal) if u.tangent is None else u.tangent for u in unpacked)

        _compare_batched(push, value, None, "check_batched_forward_grad", rng)


def _compare_batched(function, like: Tensor, number: int | None, option: str, rng) -> None:
    vectors = []
    for _ in range(2):
        drawn = rng.standard_normal(like._array.shape)
        if like.is_complex():
            drawn = drawn + 1j * rng.standard_normal(like._array.shape)
        vectors.append(wrap(np.asarray(drawn, like._array.dtype)))
    expected = [F.stack(list(each), 0) for each in zip(*map(function, vectors), strict=True)]
    explanation = BATCHED.format(option=option)
    try:
        results = vmap_over(function, [F.stack(vectors, 0)])
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{explanation}") from error
    for position, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if not np.allclose(result._array, wanted._array, rtol=1e-5, atol=1e-8):
            raise GradcheckError(
                f"For output {position if number is None else number} and input {position}:\n\n{explanation}\n\nGot:\n{result}\n\n"
                f"Expected:\n{wanted}"
            )
