"""Pooling of images [I, D, H, W] over windows at regular steps; images of one or two dimensions have D, H = 1.

All run along rows of windows: for each place of the kernel, one loop over what all windows of a row see there, which is vector
code. Images are shared out among the threads, so that gradients of overlapping windows need no locks. `geometry` is [4, 3]:
kernel, stride, padding, dilation for D, H, W. What calls these, and the plain forms: `kernels/pooling.py`.
"""

from __future__ import annotations

import numpy as np

from . import serial
from .sharing import share

__all__ = ["average", "average_gradient", "maxima", "maxima_gradient", "maxima_indices"]


@serial
def _seen(row, offset, stride, windows):
    """The windows c that see something of a row at c * stride + offset, from the first on: (first, stop, the row from there)."""
    first = max(0, -(offset // stride))
    stop = max(first, min(windows, (row.size - 1 - offset) // stride + 1))
    return first, stop, row[first * stride + offset :] if stop > first else row[:0]


@serial
def _take_larger(best, row, offset, stride):
    """Each of `best` becomes what its window sees, where that is larger or NaN."""
    first, stop, row = _seen(row, offset, stride, best.size)
    best = best[first:stop]
    if stride == 1:  # strides known to the compiler are vector code
        for c in range(best.size):
            value = row[c]
            best[c] = value if value > best[c] or value != value else best[c]
    elif stride == 2:
        for c in range(best.size):
            value = row[2 * c]
            best[c] = value if value > best[c] or value != value else best[c]
    else:
        for c in range(best.size):
            value = row[stride * c]
            best[c] = value if value > best[c] or value != value else best[c]


@serial
def _chosen(value, best, new, old):
    """`new` where the value is the best (NaN is equal to NaN), else `old`: all four are there, so that loops are vector code."""
    return new if (value == best) | ((value != value) & (best != best)) else old


@serial
def _note(found, best, row, offset, stride, start):
    """In `found`, start + c * stride + offset for each window c that sees its maximum there (NaN is equal to NaN)."""
    first, stop, row = _seen(row, offset, stride, best.size)
    found, best, start = found[first:stop], best[first:stop], start + first * stride + offset
    if stride == 1:
        for c in range(best.size):
            found[c] = _chosen(row[c], best[c], np.int32(start + c), found[c])
    elif stride == 2:
        for c in range(best.size):
            found[c] = _chosen(row[2 * c], best[c], np.int32(start + 2 * c), found[c])
    else:
        for c in range(best.size):
            found[c] = _chosen(row[stride * c], best[c], np.int32(start + stride * c), found[c])


@serial
def _firsts(found, x, best, p, q, geometry):
    """In `found`, for a row of windows, where in the image (as one row) each has its first maximum; -1 where nowhere."""
    kernel, stride, padding, dilation = geometry[0], geometry[1], geometry[2], geometry[3]
    for c in range(found.size):
        found[c] = -1
    for k in range(kernel[0] - 1, -1, -1):  # backwards: what is noted last is the first
        z = p * stride[0] - padding[0] + k * dilation[0]
        for j in range(kernel[1] - 1 if 0 <= z < x.shape[0] else -1, -1, -1):
            y = q * stride[1] - padding[1] + j * dilation[1]
            if 0 <= y < x.shape[1]:
                row, start = x[z, y], (z * x.shape[1] + y) * x.shape[2]
                for i in range(kernel[2] - 1, -1, -1):
                    _note(found, best, row, i * dilation[2] - padding[2], stride[2], start)


@serial
def _first_of_four(grad, best, upper, lower, above, below, rest):
    """Each gradient at the first of four elements that is its maximum, zero at the others; two rows of an image.

    rest: the gradients whose maximum is none of the four, zero for the others.
    """
    for c in range(best.size):
        g, value, zero = grad[c], best[c], grad.dtype.type(0)
        broken = value != value
        a, b, d, e = upper[2 * c], upper[2 * c + 1], lower[2 * c], lower[2 * c + 1]
        first = (a == value) | (broken & (a != a))
        second = (b == value) | (broken & (b != b))
        third = (d == value) | (broken & (d != d))
        above[2 * c] = g if first else zero
        above[2 * c + 1] = g if second & (not first) else zero
        below[2 * c] = g if third & (not (first | second)) else zero
        fourth = (e == value) | (broken & (e != e))
        below[2 * c + 1] = g if fourth & (not (first | second | third)) else zero
        rest[c] = zero if first | second | third | fourth else g


@serial
def _add(total, row, offset, stride):
    """What windows see is added to `total`."""
    first, stop, row = _seen(row, offset, stride, total.size)
    total = total[first:stop]
    if stride == 1:
        for c in range(total.size):
            total[c] += row[c]
    elif stride == 2:
        for c in range(total.size):
            total[c] += row[2 * c]
    else:
        for c in range(total.size):
            total[c] += row[stride * c]


@serial
def _spread(share, row, offset, stride):
    """The transpose of `_add`."""
    first, stop, row = _seen(row, offset, stride, share.size)
    share = share[first:stop]
    if stride == 1:
        for c in range(share.size):
            row[c] += share[c]
    else:
        for c in range(share.size):
            row[stride * c] += share[c]


@serial
def _maxima_of(image, images, geometry, results):
    x, best = images[image], results[image]
    kernel, stride, padding, dilation = geometry[0], geometry[1], geometry[2], geometry[3]
    for p in range(best.shape[0]):
        for q in range(best.shape[1]):
            row = best[p, q]
            row[:] = -np.inf
            for k in range(kernel[0]):
                z = p * stride[0] - padding[0] + k * dilation[0]
                for j in range(kernel[1] if 0 <= z < x.shape[0] else 0):
                    y = q * stride[1] - padding[1] + j * dilation[1]
                    for i in range(kernel[2] if 0 <= y < x.shape[1] else 0):
                        _take_larger(row, x[z, y], i * dilation[2] - padding[2], stride[2])


@serial
def _larger(a, b):
    """The larger of two, NaN if one is; the first of equals, so that a zero keeps its sign."""
    return a if (a >= b) | (a != a) else b


@serial
def _maxima_of_fours(image, images, planes, results):
    """For windows of 2 x 2 side by side, in one plane or in two."""
    x, best = images[image], results[image]
    for p in range(best.shape[0]):
        for q in range(best.shape[1]):
            row, upper, lower = best[p, q], x[p * planes, 2 * q], x[p * planes, 2 * q + 1]
            for c in range(row.size):
                row[c] = _larger(_larger(upper[2 * c], upper[2 * c + 1]), _larger(lower[2 * c], lower[2 * c + 1]))
            if planes == 2:
                upper, lower = x[p * planes + 1, 2 * q], x[p * planes + 1, 2 * q + 1]
                for c in range(row.size):
                    row[c] = _larger(row[c], _larger(_larger(upper[2 * c], upper[2 * c + 1]), _larger(lower[2 * c], lower[2 * c + 1])))


@serial
def _indices_of(image, images, results, geometry, notes, indices):
    x, best, found = images[image], results[image], notes[image]
    for p in range(best.shape[0]):
        for q in range(best.shape[1]):
            _firsts(found, x, best[p, q], p, q, geometry)
            target = indices[image, p, q]
            for c in range(found.size):
                target[c] = max(found[c], 0)


@serial
def _gradient_of(image, grads, images, results, geometry, notes, gradients):
    x, best, found, flat = images[image], results[image], notes[image], gradients[image].reshape(-1)
    flat[:] = 0
    for p in range(best.shape[0]):
        for q in range(best.shape[1]):
            _firsts(found, x, best[p, q], p, q, geometry)
            grad = grads[image, p, q]
            for c in range(found.size):
                if found[c] >= 0:
                    flat[np.uint32(found[c])] += grad[c]


@serial
def _gradient_of_fours(image, grads, images, results, planes, rests, gradients):
    """For windows of 2 x 2 side by side, the commonest, in one plane or in two."""
    grad, x, best, made = grads[image], images[image], results[image], gradients[image]
    if best.shape[0] * planes < x.shape[0] or best.shape[1] * 2 < x.shape[1] or best.shape[2] * 2 < x.shape[2]:
        made.reshape(-1)[:] = 0
    for p in range(best.shape[0]):
        for q in range(best.shape[1]):
            given = grad[p, q]
            for i in range(planes):
                plane, target, rest = x[p * planes + i], made[p * planes + i], rests[image, i]
                _first_of_four(given, best[p, q], plane[2 * q], plane[2 * q + 1], target[2 * q], target[2 * q + 1], rest)
                given = rest


@serial
def _average_of(image, images, geometry, counts, results):
    x, made = images[image], results[image]
    kernel, stride, padding = geometry[0], geometry[1], geometry[2]
    for p in range(made.shape[0]):
        for q in range(made.shape[1]):
            total, by = made[p, q], counts[p, q]
            total[:] = 0
            for z in range(max(0, p * stride[0] - padding[0]), min(x.shape[0], p * stride[0] - padding[0] + kernel[0])):
                for y in range(max(0, q * stride[1] - padding[1]), min(x.shape[1], q * stride[1] - padding[1] + kernel[1])):
                    for i in range(kernel[2]):
                        _add(total, x[z, y], i - padding[2], stride[2])
            for c in range(total.size):
                total[c] /= by[c]


@serial
def _average_gradient_of(image, grads, geometry, counts, gradients):
    grad, made = grads[image], gradients[image]
    kernel, stride, padding = geometry[0], geometry[1], geometry[2]
    share = np.empty(grad.shape[2], grad.dtype)
    made.reshape(-1)[:] = 0
    for p in range(grad.shape[0]):
        for q in range(grad.shape[1]):
            row, by = grad[p, q], counts[p, q]
            for c in range(share.size):
                share[c] = row[c] / by[c]
            for z in range(max(0, p * stride[0] - padding[0]), min(made.shape[0], p * stride[0] - padding[0] + kernel[0])):
                for y in range(max(0, q * stride[1] - padding[1]), min(made.shape[1], q * stride[1] - padding[1] + kernel[1])):
                    for i in range(kernel[2]):
                        _spread(share, made[z, y], i - padding[2], stride[2])


# --- all images -----------------------------------------------------------------------------------------------------


@serial
def maxima(threads, x, geometry, planes, best):
    """best [I, P, Q, R]: the largest value of each window, NaN if there is one.

    planes: if `geometry` is windows of 2 x 2 side by side, in how many planes (1 or 2); 0 for others.
    Traffic: x read, `best` written. One comparison for each place of each window. Plain form: `kernels.pooling.maxima`.
    """
    if planes:
        share(len(x), threads, _maxima_of_fours, (x, planes, best))
    else:
        share(len(x), threads, _maxima_of, (x, geometry, best))


@serial
def maxima_indices(threads, x, best, geometry, indices):
    """indices [I, P, Q, R], int64: where in its image the first maximum of each window is.

    Traffic: x and `best` read, `indices` written. One comparison for each place of each window. Plain form: the function of
    that name in `kernels.pooling`.
    """
    notes = np.empty((len(x), best.shape[3]), np.int32)
    share(len(x), threads, _indices_of, (x, best, geometry, notes, indices))


@serial
def maxima_gradient(threads, grad, x, best, geometry, planes, made):
    """made [I, D, H, W]: each gradient at the first maximum of its window.

    planes: if `geometry` is windows of 2 x 2 side by side, in how many planes (1 or 2); 0 for others.

    Traffic: grad, x and `best` read, `made` written. One comparison for each place of each window, one addition for each
    window. Plain form: `kernels.pooling.maxima_gradient`.
    """
    if planes:
        rests = np.empty((len(x), planes, best.shape[3]), x.dtype)
        share(len(x), threads, _gradient_of_fours, (grad, x, best, planes, rests, made))
    else:
        notes = np.empty((len(x), best.shape[3]), np.int32)
        share(len(x), threads, _gradient_of, (grad, x, best, geometry, notes, made))


@serial
def average(threads, x, geometry, counts, made):
    """made [I, P, Q, R]: the sum of each window over counts [P, Q, R].

    Traffic: x read, `made` written. One addition for each place of each window. Plain form: `kernels.pooling.average`.
    """
    share(len(x), threads, _average_of, (x, geometry, counts, made))


@serial
def average_gradient(threads, grad, geometry, counts, made):
    """made [I, D, H, W]: each gradient, over its count [P, Q, R], added to all places of its window.

    Traffic: grad read, `made` written. One addition for each place of each window. Plain form:
    `kernels.pooling.average_gradient`.
    """
    share(len(made), threads, _average_gradient_of, (grad, geometry, counts, made))
