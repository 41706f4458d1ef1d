"""Windows that slide over images: sizes and steps as users give them, checked, and how many places there are."""

from __future__ import annotations

from pellucid.kernels import pooling as kernel

__all__ = ["check_image", "geometry", "window"]

_WORDS = {1: "one int", 2: "two ints", 3: "three ints"}


def window(function: str, name: str, value, count: int) -> tuple:
    """A size or step as a tuple; RuntimeError for one with another number of dimensions."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return (int(value[0]),) * count
        if len(value) != count:
            if count == 1:
                raise RuntimeError(f"{function}() {name} must be an int, list of ints or tuple of ints of size 1 but got size {len(value)}")
            raise RuntimeError(f"{function}: {name} must either be a single int, or a tuple of {_WORDS[count]}: got {tuple(value)}")
        return tuple(int(v) for v in value)
    return (int(value),) * count


def check_image(function: str, input, count: int) -> None:
    """Refuse inputs without the right rank, or with nothing in a dimension other than the batch."""
    shape = input._array.shape
    good = len(shape) in (count + 1, count + 2) and all(shape[1:]) and (len(shape) == count + 2 or shape[0])
    if good:
        return
    if len(shape) not in (count + 1, count + 2) and count > 1:
        raise RuntimeError(f"non-empty {count + 1}D or {count + 2}D (batch mode) tensor expected for input: {function} got shape {list(shape)}")
    start = f"{function}: " if count == 1 else ""
    raise RuntimeError(f"{start}Expected {count + 1}D or {count + 2}D (batch mode) tensor with optional 0 dim batch size for "
                       f"input, but got:{list(shape)}")


def _check_window(function: str, size: tuple, stride: tuple, padding: tuple, dilation: tuple, single: bool) -> None:
    if any(s <= 0 for s in stride) or any(k <= 0 for k in size):
        text = f"{function}() kernel_size and stride must be greater than zero" if single else "stride should not be zero"
        raise RuntimeError(f"{text}: got kernel_size={size}, stride={stride}")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got dilation={dilation}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"pad must be non-negative, but got pad: {min(padding)}" if not single else
                           f"{function}() padding must be non-negative, but got {min(padding)}")  # fmt: skip
    for p, k, d in zip(padding, size, dilation, strict=True):
        if p > (d * (k - 1) + 1) // 2:
            if single:
                raise RuntimeError(f"{function}() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}")
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")


def geometry(function: str, count: int, input, kernel_size, stride, padding, dilation, ceil_mode: bool):
    """Everything about the windows, checked: (places, size, stride, padding, dilation)."""
    size = window(function, "kernel_size", kernel_size, count)
    stride = size if stride is None or stride in ([], ()) else window(function, "stride", stride, count)
    padding = window(function, "padding", padding, count)
    dilation = window(function, "dilation", dilation, count)
    check_image(function, input, count)
    _check_window(function, size, stride, padding, dilation, function == "max_pool1d")
    shape = input._array.shape
    places = kernel.output_size(shape[-count:], size, stride, padding, dilation, ceil_mode)
    if any(q < 1 for q in places):
        channels = shape[-count - 1]
        raise RuntimeError(f"Given input size: ({'x'.join(map(str, shape[-count - 1 :]))}). Calculated output size: "
                           f"({channels}x{'x'.join(str(max(q, 0)) for q in places)}). Output size is too small")
    return places, size, stride, padding, dilation
