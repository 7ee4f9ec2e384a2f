"""Messages of protocol buffers, as far as recordings and summaries need them."""

from __future__ import annotations

import struct
from collections.abc import Iterator


def _varint(data: bytes, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, place
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of every field of a protocol buffer message; values are integers or bytes."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield number, value
        elif kind == 2:
            size, place = _varint(data, place)
            if place + size > len(data):
                raise ValueError("truncated message")
            yield number, data[place : place + size]
            place += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            yield number, struct.unpack("<q" if kind == 1 else "<i", data[place : place + size])[0]
            place += size
        else:
            raise ValueError(f"wire type {kind}")
