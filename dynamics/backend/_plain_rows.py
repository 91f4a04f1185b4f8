"""`dynamics.backend.lanes` in NumPy: in Python, or compiled by plain `numba.njit`."""

from __future__ import annotations

import numpy as np

from dynamics.backend._plain import primitive
from dynamics.backend.modes import LANES


@primitive
def load(array, i):
    return array.reshape(-1, LANES)[i].copy()


@primitive
def store(array, i, row):
    array.reshape(-1, LANES)[i] = row


@primitive
def load_at(array, i):
    return array[i : i + LANES].copy()


@primitive
def store_at(array, i, row):
    array[i : i + LANES] = row


@primitive
def filled(number):
    return np.full(LANES, number)


@primitive
def larger(a, b):
    return np.where(a > b, a, b)


@primitive
def where(mask, a, b):
    return np.where(mask > 0, a, b)


@primitive
def power_of_two(k):
    # The float with these bits. For k = nan it is arbitrary, but its factor is nan, and so is the product.
    return ((k.astype(np.int64) + 1023) << 52).view(np.float64)


@primitive
def total(a):
    half = a.size // 2
    while half > 0:
        a = a[:half] + a[half : 2 * half]
        half //= 2
    return a[0]


@primitive
def highest(a):
    half = a.size // 2
    while half > 0:
        a = larger(a[:half], a[half : 2 * half])
        half //= 2
    return a[0]


sqrt, floor, absolute = np.sqrt, np.floor, np.abs
