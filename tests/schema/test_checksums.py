"""Checksums of data in parts."""

import zlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rhale_stats.schema.identity import joined_checksum, without_start


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(0, 2**32 - 1))
def test_parts_have_the_checksum_of_the_whole(parts, start):
    whole = b"".join(parts)
    found = joined_checksum([(zlib.crc32(part), len(part)) for part in parts], start)
    assert found == zlib.crc32(whole, start)
    assert without_start(found, len(whole), start) == zlib.crc32(whole)


def test_many_bytes():
    data = np.arange(1 << 18, dtype=np.float64)
    first, rest = data[:1000], data[1000:]
    parts = [(zlib.crc32(part.data), part.nbytes) for part in (first, rest)]
    assert joined_checksum(parts, 7) == zlib.crc32(data.data, 7)
