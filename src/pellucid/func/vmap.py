"""`vmap`: a function of one example, called on a batch of them at once.

The function runs once, on tensors that hide the batch; what each operator does with it is in `autograd/batching.py`.
"""

from __future__ import annotations

import functools

from pellucid.autograd import declaration
from pellucid.autograd.batching import BatchedTensor, BatchLevel, batch_of, with_batch
from pellucid.autograd.transforms import opened
from pellucid.core.tensor import Tensor
from pellucid.func.trees import broadcast_prefix, flatten, unflatten

__all__ = ["vmap"]

F = declaration.tensors
RANDOMNESS = ("error", "different", "same")


def vmap(func, in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size: int | None = None):
    """A function that maps `func` over a dimension of its arguments, all examples in one go.

    Args:
        func: takes one example and returns tensors (nested as you like). It may contain other transforms.
        in_dims: which dimension of each argument counts the examples; None for an argument that is the same for all. One
            value for all arguments, or a structure like theirs.
        out_dims: where the results are to have that dimension.
        randomness: what random operations inside do: "error", "different" for each example, or the "same" for all.
        chunk_size: how many examples to compute at once; None for all.

    Returns:
        The function of a batch.

    Raises:
        ValueError: `in_dims` does not fit the arguments, no argument has a batch, or the sizes of batches differ.
        RuntimeError: a random operation under "error", or values asked for that differ between examples.

    >>> import pellucid as torch
    >>> from pellucid.func import vmap
    >>> vmap(torch.dot)(torch.ones(3, 5), torch.ones(3, 5))
    tensor([5., 5., 5.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness!r}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args, **kwargs):
        leaves, shape, dims, size = _checked(func, in_dims, args)
        if chunk_size is not None and size > chunk_size:
            return _in_chunks(func, leaves, shape, dims, size, out_dims, randomness, chunk_size, kwargs)
        return _run(func, leaves, shape, dims, size, out_dims, randomness, kwargs)

    return batched


def _name(func) -> str:
    return getattr(func, "__name__", repr(func))


def _checked(func, in_dims, args):
    """The leaves of the arguments, their batch dimensions, and the size of the batch."""
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, shape = flatten(args)
    prefix = tuple(in_dims) if isinstance(in_dims, list) and len(in_dims) == len(args) else in_dims
    dims = broadcast_prefix(prefix, args)
    if dims is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure {flatten(in_dims)[1]} "
            f"but inputs has structure {shape}."
        )
    dims = [_checked_dim(where, dim, leaf) for dim, leaf in zip(dims, leaves, strict=True)]
    sizes = [leaf._array.shape[dim] for dim, leaf in zip(dims, leaves, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(
            f"{where}: Got no `Tensor` to vmap over: in_dims are None for all of them. Give at least one tensor a dimension."
        )
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return leaves, shape, dims, sizes[0]


def _checked_dim(where: str, dim, leaf) -> int | None:
    """The batch dimension of one leaf, not negative."""
    if dim is not None and not isinstance(dim, int):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if dim is None:
        return None
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
            "arguments, please use None as the respective in_dim"
        )
    rank = leaf._array.ndim
    if not -rank <= dim < rank:
        raise ValueError(
            f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so expected "
            f"in_dim to satisfy -{rank} <= in_dim < {rank}."
        )
    return dim % rank


def _run(func, leaves, shape, dims, size: int, out_dims, randomness: str, kwargs):
    level = BatchLevel(size, randomness)
    given = [
        leaf if dim is None else batch_of(leaf if dim == 0 else leaf.movedim(dim, 0), level)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    with opened(level):
        result = func(*unflatten(given, shape), **kwargs)
    outputs, out_shape = flatten(result)
    places = _places(func, out_dims, result, outputs)
    return unflatten([_taken_out(func, o, level, p) for o, p in zip(outputs, places, strict=True)], out_shape)


def _places(func, out_dims, result, outputs) -> list:
    """Where each output is to have the batch."""
    places = broadcast_prefix(out_dims, result)
    if places is None and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1 and len(outputs) == 1:
        places = list(out_dims)
    if places is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {flatten(out_dims)[1]} but outputs has structure {flatten(result)[1]}."
        )
    return places


def _taken_out(func, output, level: BatchLevel, place):
    """One output as the caller gets it: with the batch at its place."""
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(output)} as a return value."
        )
    mine = output.__class__ is BatchedTensor and output._level is level
    if place is None:
        if mine and output._batched:
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None: this output "
                "differs from example to example."
            )
        return output._value if mine else output
    value = with_batch(output, level.size) if mine else F.expand(F.unsqueeze(output, 0), (level.size, *output.shape))
    rank = value._array.ndim
    if not -rank <= place < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {place}): out_dims of "
            f"vmap({_name(func)}, ...)"
        )
    return value if place % rank == 0 else value.movedim(0, place)


def _in_chunks(func, leaves, shape, dims, size: int, out_dims, randomness: str, chunk_size: int, kwargs):
    """The same in several runs; results are joined along their batch dimensions."""
    runs = []
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        part = [
            leaf if dim is None else F.narrow(leaf, dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        runs.append(flatten(_run(func, part, shape, dims, count, out_dims, randomness, kwargs)))
    out_shape = runs[0][1]
    places = _places(func, out_dims, unflatten(runs[0][0], out_shape), runs[0][0])
    columns = zip(*(outputs for outputs, _ in runs), strict=True)
    joined = [c[0] if p is None else F.cat(list(c), p) for c, p in zip(columns, places, strict=True)]
    return unflatten(joined, out_shape)
