"""The text of a tensor, as PyTorch prints it, and the options that govern it.

Arrays in, text out: what a tensor adds (`requires_grad=True`, `grad_fn=<...>`) comes as ready suffixes.
Only the numbers that appear are formatted, so a large array prints as fast as a small one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from .dtype import dtype_of

__all__ = ["PrintOptions", "format_array", "get_printoptions", "printoptions", "set_printoptions", "tensor_text"]


@dataclass(frozen=True)
class PrintOptions:
    """How tensors print.

    Attributes:
        precision: digits after the point.
        threshold: an array of more elements than this is summarised.
        edgeitems: how many items a summary shows at each end of a dimension.
        linewidth: where lines of numbers wrap.
        sci_mode: scientific notation: always (True), never (False), or where the magnitudes ask for it (None).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_current = PrintOptions()


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Change how tensors print from here on; what is None stays, except `sci_mode`, which becomes None.

    Args:
        precision, threshold, edgeitems, linewidth, sci_mode: see `PrintOptions`.
        profile: "default", "short" or "full" sets all but `sci_mode`; the other arguments override it.
    """
    global _current
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes = dict(_PROFILES.get(profile or "", {}))
    changes.update((name, value) for name, value in given.items() if value is not None)
    _current = replace(_current, **changes, sci_mode=sci_mode)


def get_printoptions() -> dict:
    """The options in force, as keyword arguments of `set_printoptions`."""
    return asdict(_current)


@contextlib.contextmanager
def printoptions(**options) -> Iterator[None]:
    """Print with other options inside a `with` block; takes the arguments of `set_printoptions`."""
    global _current
    before = _current
    set_printoptions(**options)
    try:
        yield
    finally:
        _current = before


def tensor_text(
    array: np.ndarray,
    *,
    suffixes: Iterable[str] = (),
    prefix: str = "tensor(",
    heading: str = "",
    default_dtype=np.float32,
    options: PrintOptions | None = None,
) -> str:
    """The text of a tensor, such as `tensor([1., 2.], dtype=torch.float64, requires_grad=True)`.

    Args:
        array: the values, of any shape and tensor dtype.
        suffixes: what follows the size and the dtype, in order: `grad_fn=<AddBackward0>`, `requires_grad=True`.
        prefix: what stands before the values and indents their further lines.
        heading: text before all, such as `Parameter containing:` and a line break.
        default_dtype: the default dtype, as NumPy's; an array of this type does not name it.
        options: the options to print with; those in force if not given.
    """
    options = options or _current
    own = _size_and_dtype(array, np.dtype(default_dtype), options)
    body = prefix + format_array(array, indent=len(prefix), options=options)
    return heading + _with_suffixes(body, [*own, *suffixes], len(prefix), options.linewidth)


def format_array(array: np.ndarray, *, indent: int = 0, options: PrintOptions | None = None) -> str:
    """The numbers of an array in brackets, such as `[[1., 2.],\\n [3., 4.]]`.

    Args:
        array: any shape and tensor dtype.
        indent: how far lines after the first are indented.
        options: the options to print with; those in force if not given.
    """
    options = options or _current
    if array.size == 0:
        return "[]"
    summarised = array.size > options.threshold
    shown = _plain(_edges(array, options.edgeitems) if summarised else array)
    numbers = (_ComplexNumbers if shown.dtype.kind == "c" else _Numbers)(shown, options)
    return _nested(shown, indent, numbers, options, array.shape if summarised else None)


# ---- around the numbers ---------------------------------------------------------------------------------------------


def _size_and_dtype(array: np.ndarray, default: np.dtype, options: PrintOptions) -> list[str]:
    """The suffixes that say what the numbers do not show."""
    size = f"size={tuple(array.shape)}"
    dtype = f"dtype={dtype_of(array.dtype)}"
    if array.size == 0:
        return ([size] if array.ndim != 1 else []) + ([dtype] if array.dtype != default else [])
    default_complex = np.complex128 if default == np.float64 else np.complex64
    evident = array.dtype in (default, default_complex, np.int64, np.bool_)
    return ([size] if not options.edgeitems else []) + ([] if evident else [dtype])


def _with_suffixes(body: str, suffixes: list[str], indent: int, linewidth: int) -> str:
    """`body` and its suffixes up to the closing parenthesis; one that would pass the line's end starts a new line."""
    pieces = [body]
    used = len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > linewidth:
            pieces.append(",\n" + " " * indent + suffix)
            used = indent + len(suffix)
        else:
            pieces.append(", " + suffix)
            used += len(suffix) + 2
    return "".join(pieces) + ")"


# ---- the numbers in brackets ----------------------------------------------------------------------------------------


def _plain(array: np.ndarray) -> np.ndarray:
    """The same numbers in a type whose elements Python knows: the 16-bit floats become float64."""
    return array if array.dtype.kind in "biuc" else array.astype(np.float64)


def _edges(array: np.ndarray, edgeitems: int) -> np.ndarray:
    """The items that a summary shows, in an array of the same number of dimensions."""
    for dim, length in enumerate(array.shape):
        if length > 2 * edgeitems:
            ends = [*range(edgeitems), *range(length - edgeitems, length)]
            array = array.take(ends, axis=dim)
    return array


def _nested(array: np.ndarray, indent: int, numbers, options: PrintOptions, whole: tuple | None = None) -> str:
    """`array` in brackets; where it holds only the ends of an array of shape `whole`, dots stand for the middle."""
    if array.ndim == 0:
        return numbers.text(array.item())
    gap = options.edgeitems if whole is not None and whole[0] > 2 * options.edgeitems else None
    if array.ndim == 1:
        items = [numbers.text(value) for value in array.tolist()]
        if gap is not None:
            items.insert(gap, " ..." if gap else "...")
        return _wrapped(items, indent, numbers.width, options.linewidth)
    rows = [_nested(row, indent + 1, numbers, options, whole and whole[1:]) for row in array]
    if gap is not None:
        rows.insert(gap, "...")
    between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(rows) + "]"


def _wrapped(items: list[str], indent: int, width: int, linewidth: int) -> str:
    """Items in brackets, as many on a line as fit."""
    per_line = max(1, (linewidth - indent) // (width + 2))
    lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


# ---- one number -----------------------------------------------------------------------------------------------------


class _Numbers:
    """How the real numbers of one tensor are written: all in one notation, padded to one width."""

    def __init__(self, values: np.ndarray, options: PrintOptions):
        self.width = 1
        self._suffix = ""
        if values.dtype.kind != "f":
            self._spec = ""
            self._set_width(values)
            return
        # Zeros and what is not finite do not count, for the notation as for the width.
        counted = values[np.isfinite(values) & (values != 0)]
        self._choose_notation(np.abs(counted), options)
        self._set_width(counted)

    def text(self, value) -> str:
        return self._unpadded(value).rjust(self.width)

    def _choose_notation(self, magnitudes: np.ndarray, options: PrintOptions) -> None:
        whole = bool((magnitudes == np.ceil(magnitudes)).all())
        if magnitudes.size and _is_scientific(magnitudes, options.sci_mode):
            self._spec = f".{options.precision}e"
        elif whole:
            self._spec, self._suffix = ".0f", "."
        else:
            self._spec = f".{options.precision}f"

    def _set_width(self, values: np.ndarray) -> None:
        self.width = max((len(self._unpadded(value)) for value in values.ravel().tolist()), default=1)

    def _unpadded(self, value) -> str:
        if not self._spec:
            return str(value)
        text = format(value, self._spec)
        return text + self._suffix if math.isfinite(value) else text


def _is_scientific(magnitudes: np.ndarray, sci_mode: bool | None) -> bool:
    if sci_mode is not None:
        return sci_mode
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4


class _ComplexNumbers:
    """How complex numbers are written: real and imaginary parts each in a notation of their own."""

    def __init__(self, values: np.ndarray, options: PrintOptions):
        self._real = _Numbers(np.real(values).astype(np.float64), options)
        self._imaginary = _Numbers(np.imag(values).astype(np.float64), options)
        self.width = self._real.width + self._imaginary.width + 1

    def text(self, value: complex) -> str:
        imaginary = self._imaginary.text(value.imag).lstrip() + "j"
        sign = "" if imaginary[0] in "+-" else "+"
        return self._real.text(value.real) + sign + imaginary
