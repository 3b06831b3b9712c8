"""Read matrices and struct fields of a MATLAB level 5 file, with every length checked against the file.

A general reader trusts the sizes and dimensions that a file claims, so a damaged file can make it allocate gigabytes or
crash. This one knows just enough of the format for `ECG.data` and `val`.
"""

import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_MATRIX, _COMPRESSED = 14, 15
_STRUCT_CLASS, _NUMERIC_CLASSES = 2, range(6, 16)
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_UNPACKED_BYTES = 256 << 20


class MatError(Exception):
    """The file is damaged or holds something else."""


def struct_field(content: bytes, variable: str, field: str) -> NDArray[np.float32]:
    """The matrix `variable.field` of a file's content."""
    return _variable(content, variable).field(field).numbers()


def matrix(content: bytes, variable: str) -> NDArray[np.float32]:
    """The matrix `variable` of a file's content."""
    return _variable(content, variable).numbers()


def variables(content: bytes) -> list[str]:
    """The names of a file's variables."""
    return [found.name for found in _matrices(content)]


def _variable(content: bytes, variable: str) -> "_Matrix":
    for found in _matrices(content):
        if found.name == variable:
            return found
    raise MatError(f"there is no variable {variable}")


def _matrices(content: bytes) -> Iterator["_Matrix"]:
    if content[126:128] not in (b"IM", b"MI"):
        raise MatError("it is no MATLAB level 5 file")
    order = "<" if content[126:128] == b"IM" else ">"
    position = 128
    while position < len(content):
        kind, body, position = _element(content, position, order)
        if kind == _COMPRESSED:
            kind, body, _ = _element(_inflate(body), 0, order)
        if kind == _MATRIX:
            yield _Matrix(body, order)


class _Matrix:
    """A matrix element: flags, dimensions, name, and the rest as it comes."""

    def __init__(self, body: bytes, order: str) -> None:
        self._body, self._order = body, order
        _, flags, position = _element(body, 0, order)
        _, dims, position = _element(body, position, order)
        _, name, self._rest = _element(body, position, order)
        if len(flags) < 4 or len(dims) % 4:
            raise MatError("a matrix has no flags or dimensions")
        self._class = struct.unpack(f"{order}I", flags[:4])[0] & 0xFF
        self._dims = struct.unpack(f"{order}{len(dims) // 4}i", dims)
        self.name = name.rstrip(b"\0").decode("latin-1")

    def field(self, name: str) -> "_Matrix":
        """A field of a 1 x 1 struct."""
        if self._class != _STRUCT_CLASS or math.prod(self._dims) != 1:
            raise MatError(f"{self.name} is no struct")
        _, length, position = _element(self._body, self._rest, self._order)
        _, names, position = _element(self._body, position, self._order)
        width = struct.unpack(f"{self._order}i", length)[0] if len(length) == 4 else 0
        if width < 1 or len(names) % width:
            raise MatError("the struct's field names are damaged")
        for start in range(0, len(names), width):
            kind, body, position = _element(self._body, position, self._order)
            if kind == _MATRIX and names[start : start + width].split(b"\0")[0] == name.encode():
                return _Matrix(body, self._order)
        raise MatError(f"{self.name} has no field {name}")

    def numbers(self) -> NDArray[np.float32]:
        """The matrix itself."""
        kind, body, _ = _element(self._body, self._rest, self._order)
        if self._class not in _NUMERIC_CLASSES or kind not in _NUMBERS:
            raise MatError("the field holds no numbers")
        dtype = np.dtype(self._order + _NUMBERS[kind])
        if len(self._dims) != 2 or min(self._dims) < 1 or math.prod(self._dims) * dtype.itemsize != len(body):
            raise MatError(f"{len(body)} bytes do not make a matrix of {' x '.join(map(str, self._dims))}")
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite: a missing sample
            return np.frombuffer(body, dtype).reshape(self._dims, order="F").astype(np.float32)


def _element(content: bytes, position: int, order: str) -> tuple[int, bytes, int]:
    """Kind and body of the element at `position`, and where the next one begins."""
    if position + 8 > len(content):
        raise MatError("it ends in the middle of an element")
    kind, size = struct.unpack_from(f"{order}II", content, position)
    if kind >> 16:  # a small element: its size in the upper half of the first word, its body in the second
        kind, size = kind & 0xFFFF, kind >> 16
        if size > 4:
            raise MatError("a small element is too large")
        return kind, content[position + 4 : position + 4 + size], position + 8
    start = position + 8
    if start + size > len(content):
        raise MatError(f"an element of {size} bytes goes beyond its end")
    padding = 0 if kind == _COMPRESSED else -size % 8
    return kind, content[start : start + size], start + size + padding


def _inflate(compressed: bytes) -> bytes:
    inflate = zlib.decompressobj()
    try:
        body = inflate.decompress(compressed, _UNPACKED_BYTES)
    except zlib.error as error:
        raise MatError(f"it cannot be unpacked ({error})") from error
    if inflate.unconsumed_tail:
        raise MatError(f"it unpacks to more than {_UNPACKED_BYTES} bytes")
    return body
