"""CRC-32 of data that follow each other, from those of the parts (math [96])."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

# The polynomial of CRC-32, lowest power in the highest bit, and x^0.
_POLYNOMIAL, _ONE = 0xEDB88320, 1 << 31


def joined_checksum(parts: Iterable[tuple[int, int]], start: int = 0) -> int:
    """Checksum of all parts in a row, from (checksum, bytes) of each; ``start`` as of zlib."""
    for checksum, n_bytes in parts:
        start = shifted(start, n_bytes) ^ checksum
    return start


def shifted(checksum: int, n_bytes: int) -> int:
    """What a checksum adds to that of ``n_bytes`` which follow: times x^(8 n), modulo."""
    return _times(_power(8 * n_bytes), checksum)


def without_start(checksum: int, n_bytes: int, start: int) -> int:
    """Checksum of data without the value that it was started from."""
    return checksum ^ shifted(start, n_bytes)


@lru_cache(maxsize=64)
def _power(n: int) -> int:
    """x^n modulo the polynomial."""
    result, square = _ONE, _ONE >> 1
    while n:
        if n & 1:
            result = _times(square, result)
        square, n = _times(square, square), n >> 1
    return result


def _times(a: int, b: int) -> int:
    """Product of two polynomials over GF(2), modulo that of CRC-32."""
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product
