"""Einstein summation: an equation is taken apart, operands are contracted two at a time, each pair by one batched matrix product.

Because every step is an operator, derivatives of any order follow.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.core.tensor import Tensor
from pellucid.ops.products import bmm

__all__ = ["einsum"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ELLIPSIS = "..."


def _sublists(args) -> tuple[str, list[Tensor]]:
    """The form einsum(operand, [0, 1], operand, [1, 2], [0, 2]) as an equation and its operands."""
    operands, terms = list(args[0 : len(args) // 2 * 2 : 2]), list(args[1::2])
    output = args[-1] if len(args) % 2 else None

    def text(sublist) -> str:
        parts = []
        for item in sublist:
            if item is Ellipsis:
                parts.append(ELLIPSIS)
            elif isinstance(item, int) and 0 <= item < 52:
                parts.append(LETTERS[item])
            else:
                raise ValueError(f"einsum(): subscript in subscript list is not within the valid range [0, 52): got {item!r}")
        return "".join(parts)

    equation = ",".join(map(text, terms))
    return (equation if output is None else f"{equation}->{text(output)}"), operands


def _letters(term: str, equation: str, start: int) -> list[str]:
    """The subscripts of one term, an ellipsis as one of them; RuntimeError for anything else."""
    found, i = [], 0
    while i < len(term):
        c = term[i]
        if c == ".":
            if term[i : i + 3] != ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' at index {start + i} of {equation!r} that is not part of any ellipsis")
            if ELLIPSIS in found:
                raise RuntimeError(f"einsum(): found '.' in {equation!r} for which an ellipsis was already found")
            found.append(ELLIPSIS)
            i += 3
            continue
        if c != " ":
            if c not in LETTERS:
                raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be in "
                                   f"[a-zA-Z]: got {c!r} in {equation!r}")  # fmt: skip
            found.append(c)
        i += 1
    return found


def _parse(equation: str, operands: list[Tensor]) -> tuple[list[list], list]:
    """Labels of each operand's dimensions and of the result's; the dimensions of an ellipsis are labelled by number."""
    left, arrow, right = equation.partition("->")
    terms, start, parsed = left.split(","), 0, []
    if len(terms) != len(operands):
        few = "fewer" if len(operands) < len(terms) else "more"
        raise RuntimeError(f"einsum(): {few} operands were provided than specified in the equation: {equation!r} has {len(terms)} terms, "
                           f"got {len(operands)} operands")  # fmt: skip
    for term in terms:
        parsed.append(_letters(term, equation, start))
        start += len(term) + 1
    hidden = 0
    for number, (term, operand) in enumerate(zip(parsed, operands, strict=True)):
        ndim, named = operand._array.ndim, len([t for t in term if t != ELLIPSIS])
        if ELLIPSIS in term:
            if named > ndim:
                raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions "
                                   f"({ndim}) for operand {number}")  # fmt: skip
            hidden = max(hidden, ndim - named)
        elif named != ndim:
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                               f"({ndim}) for operand {number} and no ellipsis was given")  # fmt: skip
    labels = [_expanded(t, o._array.ndim - len(t) + 1, hidden) for t, o in zip(parsed, operands, strict=True)]
    return labels, _output(right if arrow else None, labels, hidden, equation, len(left) + 2)


def _expanded(term: list, width: int, hidden: int) -> list:
    return [label for t in term for label in (range(hidden - width, hidden) if t == ELLIPSIS else [t])]


def _output(text: str | None, labels: list[list], hidden: int, equation: str, start: int) -> list:
    if text is None:
        every = [label for term in labels for label in term if isinstance(label, str)]
        return [*range(hidden), *sorted({x for x in every if every.count(x) == 1}, key=LETTERS.index)]
    wanted = _letters(text, equation, start)
    for label in wanted:
        if label == ELLIPSIS:
            continue
        if wanted.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if not any(label in term for term in labels):
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand")
    return _expanded(wanted, hidden, hidden)


def _sizes(labels: list[list], operands: list[Tensor]) -> dict:
    sizes: dict = {}
    for number, (term, operand) in enumerate(zip(labels, operands, strict=True)):
        for label, size in zip(term, operand._array.shape, strict=True):
            known = sizes.get(label, 1)
            if size != known and 1 not in (size, known):
                raise RuntimeError(f"einsum(): subscript {label} has size {size} for operand {number} which does not broadcast with "
                                   f"previously seen size {known}: operands are {[list(o.shape) for o in operands]}")  # fmt: skip
            sizes[label] = max(known, size) if 0 not in (size, known) else 0
    return sizes


def _without_repeats(number: int, operand: Tensor, term: list) -> tuple[Tensor, list]:
    """The operand with repeated subscripts reduced to diagonals."""
    term = list(term)
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            if operand._array.shape[first] != operand._array.shape[second]:
                raise RuntimeError(f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't match, "
                                   f"{operand._array.shape[second]} != {operand._array.shape[first]}")  # fmt: skip
            operand = operand.diagonal(dim1=first, dim2=second)
            term = [x for i, x in enumerate(term) if i not in (first, second)] + [label]
    return operand, term


def _summed(operand: Tensor, term: list, kept: set) -> tuple[Tensor, list]:
    """The operand summed over subscripts that nobody else needs."""
    gone = [i for i, label in enumerate(term) if label not in kept]
    if gone:
        operand = operand.sum(gone)
    return operand, [label for label in term if label in kept]


def _contract(a: Tensor, left: list, b: Tensor, right: list, kept: set) -> tuple[Tensor, list]:
    """Two operands to one: subscripts of both are batches if kept, else summed over in a matrix product."""
    a, left = _summed(a, left, kept | set(right))
    b, right = _summed(b, right, kept | set(left))
    wide = {x: max(a._array.shape[left.index(x)], b._array.shape[right.index(x)]) for x in left if x in right}
    for label, size in wide.items():
        if label not in kept and a._array.shape[left.index(label)] != b._array.shape[right.index(label)]:
            if a._array.shape[left.index(label)] < size:
                b = b.sum(right.index(label), keepdim=True)
            else:
                a = a.sum(left.index(label), keepdim=True)
    batch = [x for x in left if x in right and x in kept]
    inner = [x for x in left if x in right and x not in kept]
    rows, columns = [x for x in left if x not in right], [x for x in right if x not in left]
    lead = [wide[x] for x in batch]
    x, m = _matrices(a, left, batch, lead, rows, inner)
    y, n = _matrices(b, right, batch, lead, inner, columns, second=True)
    return bmm(x, y).reshape(lead + m + n), batch + rows + columns


def _matrices(t: Tensor, term: list, batch: list, lead: list[int], rows: list, columns: list, second: bool = False):
    """The operand as a batch of matrices [B, rows, columns], and the sizes of what is not summed over."""
    t = t.permute([term.index(x) for x in batch + rows + columns])
    shape = t._array.shape
    split = len(batch) + len(rows)
    if list(shape[: len(batch)]) != lead:
        t = t.expand(lead + list(shape[len(batch) :]))
    r, c = list(shape[len(batch) : split]), list(shape[split:])
    return t.reshape(math.prod(lead), math.prod(r), math.prod(c)), c if second else r


def _order(labels: list[list], sizes: dict, output: list) -> list[tuple[int, ...]]:
    """Which operands to contract next, by NumPy's search for a cheap path."""
    if len(labels) <= 2:
        return [(0, 1)] * (len(labels) - 1)
    names = {label: LETTERS[i] for i, label in enumerate(sizes)} if len(sizes) <= 52 else None
    if names is None:
        return [(0, 1)] * (len(labels) - 1)
    equation = ",".join("".join(names[x] for x in term) for term in labels) + "->" + "".join(names[x] for x in output)
    shapes = [np.broadcast_to(np.float32(0), [sizes[x] for x in term]) for term in labels]
    path = np.einsum_path(equation, *shapes, optimize="greedy")[0][1:]
    steps = []
    for step in path:  # NumPy may take several at once: two at a time here
        step = sorted(step)
        steps.append(tuple(step[:2]))
        steps += [(step[i] - i, -1) for i in range(2, len(step))]
    return steps


@composite()
def einsum(equation, *operands):
    """Sums of products of elements, as Einstein's notation says: einsum("bij,bjk->bik", x, y) is a batched matrix product.

    equation: one term of letters for each operand, then "->" and the letters of the result (those that occur once, in
    alphabetical order, if it is left out); "..." stands for further dimensions, which broadcast. A letter that is repeated
    in a term takes a diagonal. operands: tensors, or one list of them. The form einsum(x, [0, 1], y, [1, 2], [0, 2]) is
    understood too. Returns the result's dimensions in the order asked for.
    Raises: RuntimeError for an equation that does not fit its operands.
    """
    if isinstance(equation, Tensor):
        equation, operands = _sublists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    tensors = list(operands)
    if not tensors:
        raise ValueError("einsum(): must provide at least one operand")
    labels, output = _parse(equation, tensors)
    sizes = _sizes(labels, tensors)
    pairs = [_without_repeats(n, t, term) for n, (t, term) in enumerate(zip(tensors, labels, strict=True))]
    for step in _order([term for _, term in pairs], sizes, output):
        second, first = pairs.pop(step[1]), pairs.pop(step[0])
        kept = set(output).union(*[term for _, term in pairs])
        pairs.append(_contract(*first, *second, kept))
    made, term = _summed(*pairs[0], set(output))
    return made.permute([term.index(label) for label in output])
