"""Jacobians, Hessians and their products with vectors, of a function at a point (`torch.autograd.functional`).

`pellucid.func` has the same as functions of functions that nest.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd import declaration, forward_ad
from pellucid.autograd.batching import vmap_over
from pellucid.autograd.differentiate import grad
from pellucid.autograd.grad_mode import set_grad_enabled
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

F = declaration.tensors
OUTPUTS = "outputs of the user-provided function"
STRATEGIES = ("forward-mode", "reverse-mode")


# --- what goes in and comes out --------------------------------------------------------------------------------------


def _as_tuple(value, what: str, name: str) -> tuple[bool, tuple]:
    """Whether a tensor or tuple of tensors is a tuple, and the tuple; TypeError for anything else."""
    is_tuple = isinstance(value, tuple)
    tensors = value if is_tuple else (value,)
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            culprit = f"the value at index {index} has type" if is_tuple else f"the given {what} has type"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but {culprit} {type(tensor)}."
            )
    return is_tuple, tensors


def _as_given(values, is_tuple: bool):
    """A tuple where the caller gave or returned a tuple, else its one member."""
    return tuple(values) if is_tuple else values[0]


def _block_as_given(rows, rows_are_tuple: bool, columns_are_tuple: bool):
    """A tuple of tuples with the nesting of what the caller gave."""
    return _as_given([_as_given(row, columns_are_tuple) for row in rows], rows_are_tuple)


def _prepared(tensors, create_graph: bool, need_graph: bool = True) -> tuple:
    """New tensors in the place of the caller's, so that only uses as arguments count: tied to them under `create_graph`."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph) for t in tensors
    )


def _finished(tensors, create_graph: bool) -> tuple:
    """Results without a history, unless it is asked for."""
    return tuple(tensors) if create_graph else tuple(t.detach() for t in tensors)


def _checked_vector(v, others, others_are_tuple: bool, create_graph: bool, name: str) -> tuple:
    """The vector of a product, prepared; RuntimeError if it is not of the sizes of what it is multiplied with."""
    v = _prepared(_as_tuple(v, "v", name)[1], create_graph, need_graph=False)
    if len(v) != len(others):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}."
            if others_are_tuple
            else f"The given v should contain a single Tensor. Got {len(v)}."
        )
    for index, (vector, other) in enumerate(zip(v, others, strict=True)):
        if vector.shape != other.shape:
            entry = f"Entry {index} in " if others_are_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {vector.shape}.")
    return v


def _check_single(tensors, what: str) -> None:
    """RuntimeError where the vector of a product may not be left out."""
    if len(tensors) != 1 or tensors[0].numel() != 1:
        raise RuntimeError(f"The vector v can only be None if {what} a single Tensor with a single element.")


# --- strict mode -----------------------------------------------------------------------------------------------------

INDEPENDENT = "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
NO_HISTORY = {
    "outputs": "Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {i} is independent of the inputs of the user-provided function. This "
    "is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} "
    "is independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for example).",
}
ABSENT = {
    "back": INDEPENDENT,
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the "
    "double backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict "
    "mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is "
    "not allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}
UNRECORDED = (
    "The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
    "create_graph=True."
)


def _check_strict(tensors, kind: str, strict: bool) -> None:
    """In strict mode: RuntimeError for what is not there, or depends on nothing."""
    for i, tensor in enumerate(tensors if strict else ()):
        if tensor is None:
            raise RuntimeError(INDEPENDENT.format(i=i))
        if not tensor.requires_grad:
            raise RuntimeError(NO_HISTORY[kind].format(i=i))


def _with_zeros(found, references, stage: str, strict: bool, create_graph: bool) -> tuple:
    """Zeros in the place of absent gradients, which strict mode does not allow."""
    filled = []
    for i, (g, reference) in enumerate(zip(found, references, strict=True)):
        if g is None and strict:
            raise RuntimeError(ABSENT[stage].format(i=i))
        if g is not None and strict and create_graph and not g.requires_grad:
            raise RuntimeError(UNRECORDED.format(i=i, what="hessian" if "double" in stage else "jacobian"))
        filled.append(F.zeros_as(reference).detach() if g is None else g)
    return tuple(filled)


def _pull(outputs, inputs, vectors=None, **options) -> tuple:
    """Vector-Jacobian products; outputs that are None or have no history contribute nothing."""
    vectors = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outputs, vectors = zip(*pairs, strict=True)
    return grad(outputs, inputs, vectors, allow_unused=True, **options)


# --- products with the Jacobian --------------------------------------------------------------------------------------


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a function and the product of a vector with its Jacobian, v^T J.

    Args:
        func: takes `inputs`, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the shapes of the outputs; may be left out for a single output of one element.
        create_graph: record both results, so that they can be differentiated with respect to inputs and v.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Returns:
        `(outputs, product)`, the product in the shapes of the inputs.

    Raises:
        TypeError: inputs, outputs or v are not tensors.
        RuntimeError: v does not fit; in strict mode, something is independent of something.
    """
    with set_grad_enabled(True):
        inputs_are_tuple, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _prepared(inputs, create_graph)
        outputs_are_tuple, outputs = _as_tuple(func(*inputs), OUTPUTS, "vjp")
        _check_strict(outputs, "outputs", strict)
        if v is None:
            _check_single(outputs, "the user-provided function returns")
        else:
            v = _checked_vector(v, outputs, outputs_are_tuple, create_graph, "vjp")
    with set_grad_enabled(create_graph or modes.grad_enabled):
        product = _with_zeros(_pull(outputs, inputs, v, create_graph=create_graph), inputs, "back", strict, create_graph)
    outputs, product = _finished(outputs, create_graph), _finished(product, create_graph)
    return _as_given(outputs, outputs_are_tuple), _as_given(product, inputs_are_tuple)


def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a function and the product of its Jacobian with a vector, J v.

    Reverse mode twice: v^T J is linear in v, and its derivative with respect to v is J. `pellucid.func.jvp` does it in one
    forward pass.

    Args:
        func: takes `inputs`, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the shapes of the inputs; may be left out for a single input of one element.
        create_graph: record both results, so that they can be differentiated with respect to inputs and v.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Returns:
        `(outputs, product)`, the product in the shapes of the outputs.

    Raises:
        TypeError: inputs, outputs or v are not tensors.
        RuntimeError: v does not fit; in strict mode, something is independent of something.
    """
    with set_grad_enabled(True):
        inputs_are_tuple, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _prepared(inputs, create_graph)
        if v is None:
            _check_single(inputs, "the input to the user-provided function is")
        else:
            v = _checked_vector(v, inputs, inputs_are_tuple, create_graph, "jvp")
        outputs_are_tuple, outputs = _as_tuple(func(*inputs), OUTPUTS, "jvp")
        _check_strict(outputs, "outputs", strict)
        covectors = tuple(F.zeros_as(o).detach().requires_grad_() for o in outputs)
        pulled = _pull(outputs, inputs, covectors, create_graph=True)
        _check_strict(pulled, "grad_inputs", strict)
    with set_grad_enabled(create_graph or modes.grad_enabled):
        found = _pull(pulled, covectors, v, create_graph=create_graph)
        product = _with_zeros(found, outputs, "back_trick", strict, create_graph)
    outputs, product = _finished(outputs, create_graph), _finished(product, create_graph)
    return _as_given(outputs, outputs_are_tuple), _as_given(product, outputs_are_tuple)


# --- the Jacobian ----------------------------------------------------------------------------------------------------


def jacobian(func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode"):  # fmt: skip
    """The Jacobian of a function.

    Args:
        func: takes `inputs`, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the Jacobian, so that it can be differentiated.
        strict: raise where an output does not depend on an input, instead of giving zeros.
        vectorize: compute all rows (or columns) at once, batched.
        strategy: "reverse-mode" computes rows, "forward-mode" columns; the latter needs `vectorize`.

    Returns:
        For each output (nested as they are) and each input (nested as they are) a tensor of shape [*output, *input].

    Raises:
        TypeError: inputs or outputs are not tensors.
        RuntimeError: options that do not go together; in strict mode, something is independent of something.
        NotImplementedError: forward mode without `vectorize` or with `create_graph`.
    """
    _check_strategy(strategy)
    if strategy == "forward-mode":
        for option, is_set, error in (("create_graph", create_graph, NotImplementedError), ("strict", strict, RuntimeError)):
            if is_set:
                raise error(
                    f"torch.autograd.functional.jacobian: `{option}=True` and `strategy=\"forward-mode\"` are not supported "
                    f'together (yet). Please either set `{option}=False` or `strategy="reverse-mode"`.'
                )
        return _forward_jacobian(func, inputs, vectorize)
    with set_grad_enabled(True):
        inputs_are_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _prepared(inputs, create_graph)
        outputs_are_tuple, outputs = _as_tuple(func(*inputs), OUTPUTS, "jacobian")
        _check_strict(outputs, "outputs", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
                "either set `strict=False` or `vectorize=False`."
            )
        if vectorize:
            blocks = _all_rows(outputs, inputs, create_graph)
        else:
            blocks = [_rows(i, output, inputs, create_graph, strict) for i, output in enumerate(outputs)]
    finished = [_finished(block, create_graph) for block in blocks]
    return _block_as_given(finished, outputs_are_tuple, inputs_are_tuple)


def _check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        raise AssertionError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". Got {strategy!r}. Hint: If your function has '
            'more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )


def _rows(number: int, output: Tensor, inputs, create_graph: bool, strict: bool) -> list[Tensor]:
    """The blocks of one output, row by row."""
    rows = []
    for j in range(output.numel()):
        found = _pull((output.reshape(-1)[j],), inputs, retain_graph=True, create_graph=create_graph)
        for k, g in enumerate(found if strict else ()):
            if g is None:
                raise RuntimeError(
                    f"Output {number} of the user-provided function is independent of input {k}. This is not allowed in "
                    "strict mode."
                )
            if create_graph and not g.requires_grad:
                raise RuntimeError(UNRECORDED.format(what="jacobian", i=number))
        rows.append([F.zeros_as(x).detach() if g is None else g for g, x in zip(found, inputs, strict=True)])
    shapes = [(*output.shape, *x.shape) for x in inputs]
    if not rows:
        return [wrap(np.zeros(shape, x._array.dtype)) for shape, x in zip(shapes, inputs, strict=True)]
    columns = zip(*rows, strict=True)
    return [F.stack(list(column), 0).reshape(shape) for column, shape in zip(columns, shapes, strict=True)]


def _all_rows(outputs, inputs, create_graph: bool) -> list[list[Tensor]]:
    """The blocks of all outputs by one batched backward."""
    counts = [o.numel() for o in outputs]
    flat = [o.reshape(-1) for o in outputs]
    basis = _construct_standard_basis_for(outputs, counts)
    found = _pull(flat, inputs, basis, create_graph=create_graph, is_grads_batched=True)
    whole = [
        F.zeros_as(x).detach().expand(sum(counts), *x.shape) if g is None else g for g, x in zip(found, inputs, strict=True)
    ]
    parts = [column.split(counts, 0) for column in whole]
    return [
        [part[i].reshape(*o.shape, *x.shape) for part, x in zip(parts, inputs, strict=True)] for i, o in enumerate(outputs)
    ]


def _forward_jacobian(func, inputs, vectorize: bool):
    """The Jacobian by forward mode: all columns in one batched pass."""
    inputs_are_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
        )
    counts = [x.numel() for x in inputs]
    returned: list = []

    def push(*columns):
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x, column.view_as(x)) for x, column in zip(inputs, columns, strict=True)]
            outputs_are_tuple, outputs = _plain_tuple(func(*duals))
            unpacked = [forward_ad.unpack_dual(o) for o in outputs]
        returned.extend((outputs_are_tuple, [tuple(o.shape) for o in outputs]))
        return [F.zeros_as(u.primal).detach() if u.tangent is None else u.tangent for u in unpacked]

    pushed = vmap_over(push, _construct_standard_basis_for(inputs, counts))
    outputs_are_tuple, shapes = returned
    blocks = []
    for columns, shape in zip(pushed, shapes, strict=True):  # [all inputs' elements, *output]
        parts = columns.split(counts, 0)
        blocks.append([p.movedim(0, -1).reshape(*shape, *x.shape) for p, x in zip(parts, inputs, strict=True)])
    return _block_as_given(blocks, outputs_are_tuple, inputs_are_tuple)


def _plain_tuple(value) -> tuple[bool, tuple]:
    """A tensor, tuple or list as a tuple, and whether it was more than a tensor."""
    return (True, tuple(value)) if isinstance(value, (tuple, list)) else (False, (value,))


def _construct_standard_basis_for(tensors, tensor_numels) -> tuple[Tensor, ...]:
    """The identity matrix of all elements of some tensors, split into the columns of each, in its dtype."""
    if len(tensors) != len(tensor_numels):
        raise AssertionError(
            "Expected tensors and tensor_numels to have the same length, but got "
            f"{len(tensors)} and {len(tensor_numels)}"
        )
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    total, start, chunks = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        chunks.append(wrap(np.eye(total, count, -start).astype(tensor._array.dtype)))
        start += count
    return tuple(chunks)


# --- the Hessian and products with it --------------------------------------------------------------------------------


def hessian(func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode"):  # fmt: skip
    """The Hessian of a function with one number as its result: the Jacobian of its gradient.

    Args:
        func: takes `inputs`, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the Hessian, so that it can be differentiated.
        strict: raise where the gradient does not depend on an input, instead of giving zeros.
        vectorize: compute all rows (or columns) of it at once, batched.
        outer_jacobian_strategy: "reverse-mode", or "forward-mode" (needs `vectorize`) over the gradient, which is always
            computed in reverse mode.

    Returns:
        For each input and each input (nested as they are) a tensor of shape [*input, *input].

    Raises:
        TypeError: inputs or the output are not tensors.
        RuntimeError: the output has not one element; in strict mode, something is independent of something.
        NotImplementedError: forward mode without `vectorize`.
    """
    inputs_are_tuple, inputs = _as_tuple(inputs, "inputs", "hessian")
    _check_strategy(outer_jacobian_strategy)

    def value(*given):
        output = _checked_scalar(func(*given), "hessian", strict)
        return output.reshape(())

    def gradient(*given):
        if outer_jacobian_strategy == "forward-mode":
            given = tuple(x.requires_grad_() for x in given)  # else they would be cut off, and their tangents with them
        found = jacobian(value, given, create_graph=True)
        _check_strict(found, "jacobian", strict)
        return found

    found = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return _block_as_given(found, inputs_are_tuple, inputs_are_tuple)


def _checked_scalar(output, name: str, strict: bool) -> Tensor:
    """The output of a function that must be a single tensor of one element."""
    is_tuple, outputs = _as_tuple(output, OUTPUTS, name)
    _check_strict(outputs, "outputs", strict)
    if is_tuple:
        raise RuntimeError(f"The function given to {name} should return a single Tensor: got a tuple")
    if output.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element: got shape "
            f"{tuple(output.shape)}"
        )
    return output


class _Gradient:
    """The gradient of a scalar function at a point, recorded, and the vector it is to be multiplied with."""

    def __init__(self, func, inputs, v, create_graph: bool, strict: bool, name: str):
        self.is_tuple, inputs = _as_tuple(inputs, "inputs", name)
        self.inputs = _prepared(inputs, create_graph)
        if v is None:
            _check_single(self.inputs, "the input to the user-provided function is")
            self.v = None
        else:
            self.v = _checked_vector(v, self.inputs, self.is_tuple, create_graph, name)
        self.output = _checked_scalar(func(*self.inputs), name, strict)
        self.value = _pull((self.output,), self.inputs, create_graph=True)
        _check_strict(self.value, "jacobian", strict)

    def results(self, product, create_graph: bool):
        """What the caller gets."""
        (output,) = _finished((self.output,), create_graph)
        return output, _as_given(_finished(product, create_graph), self.is_tuple)


def vhp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a scalar function and the product of a vector with its Hessian, v^T H.

    Args:
        func: takes `inputs`, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the shapes of the inputs; may be left out for a single input of one element.
        create_graph: record both results, so that they can be differentiated with respect to inputs and v.
        strict: raise where the gradient does not depend on an input, instead of giving zeros.

    Returns:
        `(output, product)`, the product in the shapes of the inputs.

    Raises:
        TypeError: inputs, the output or v are not tensors.
        RuntimeError: the output has not one element, v does not fit; in strict mode, something is independent of something.
    """
    with set_grad_enabled(True):
        gradient = _Gradient(func, inputs, v, create_graph, strict, "vhp")
    with set_grad_enabled(create_graph or modes.grad_enabled):
        found = _pull(gradient.value, gradient.inputs, gradient.v, create_graph=create_graph)
        product = _with_zeros(found, gradient.inputs, "double_back", strict, create_graph)
    return gradient.results(product, create_graph)


def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a scalar function and the product of its Hessian with a vector, H v.

    Where the function is twice continuously differentiable that is `vhp`, which is much faster.

    Args:
        func: takes `inputs`, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the shapes of the inputs; may be left out for a single input of one element.
        create_graph: record both results, so that they can be differentiated with respect to inputs and v.
        strict: raise where the gradient does not depend on an input, instead of giving zeros.

    Returns:
        `(output, product)`, the product in the shapes of the inputs.

    Raises:
        TypeError: inputs, the output or v are not tensors.
        RuntimeError: the output has not one element, v does not fit; in strict mode, something is independent of something.
    """
    with set_grad_enabled(True):
        gradient = _Gradient(func, inputs, v, create_graph, strict, "hvp")
        covectors = tuple(F.zeros_as(x).detach().requires_grad_() for x in gradient.inputs)
        pulled = _pull(gradient.value, gradient.inputs, covectors, create_graph=True)  # linear in the covectors
    with set_grad_enabled(create_graph or modes.grad_enabled):
        found = _pull(pulled, covectors, gradient.v, create_graph=create_graph)
        product = _with_zeros(found, gradient.inputs, "double_back_trick", strict, create_graph)
    return gradient.results(product, create_graph)
