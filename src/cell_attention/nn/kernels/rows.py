"""Rows of matrices inside kernels: inner products, scaled sums, and sums over incidences.

The first two are in explicit vector instructions. The compiler's own vector loops take dozens of
numbers at a time, more than an attention head often has, and check each time whether two arrays
overlap; these take eight and do not check.
Loops whose length is known when they are compiled take half the time: kernels with an argument
`known` are compiled once for any heads, and once for those of the default network.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from cell_attention.topology.compiled import compiled_sums

_LANES = 8
_FLAGS = ("contract", "reassoc")
_INDEX = types.uint64
USUAL = (0,) * 4, (0,) * 16
"""Tuples as long as the default network has heads, and a head features: for numba, the length of a
tuple is part of its type, and so is known when a kernel is compiled."""


@intrinsic  # type: ignore[untyped-decorator]
def add_scaled(
    _: Any, into: Any, e: Any, to: Any, weight: Any, source: Any, k: Any, at: Any, size: Any
) -> Any:
    """into[e, to : to + size] += weight · source[k, at : at + size]; indices are unsigned."""
    signature = types.void(into, _INDEX, _INDEX, into.dtype, source, _INDEX, _INDEX, _INDEX)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        into, e, to, weight, source, k, at, size = args
        target = _Row(context, builder, signature.args[0], into, e, to)
        given = _Row(context, builder, signature.args[4], source, k, at)
        for lanes, i in _steps(builder, size):
            repeated = target.filled(weight, lanes)
            product = builder.fmul(repeated, given.load(i, lanes), flags=_FLAGS)
            target.store(i, builder.fadd(target.load(i, lanes), product, flags=_FLAGS), lanes)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def inner(_: Any, left: Any, e: Any, to: Any, right: Any, k: Any, at: Any, size: Any) -> Any:
    """⟨left[e, to : to + size], right[k, at : at + size]⟩; indices are unsigned."""
    signature = left.dtype(left, _INDEX, _INDEX, right, _INDEX, _INDEX, _INDEX)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        left, e, to, right, k, at, size = args
        one = _Row(context, builder, signature.args[0], left, e, to)
        other = _Row(context, builder, signature.args[3], right, k, at)
        zero = ir.Constant(one.real, 0.0)
        sums = {
            lanes: cgutils.alloca_once_value(builder, one.filled(zero, lanes))
            for lanes in (_LANES, 1)
        }
        for lanes in sums:  # reset: allocated once, but used in a loop
            builder.store(one.filled(zero, lanes), sums[lanes])
        for lanes, i in _steps(builder, size):
            product = builder.fmul(one.load(i, lanes), other.load(i, lanes), flags=_FLAGS)
            total = builder.fadd(builder.load(sums[lanes]), product, flags=_FLAGS)
            builder.store(total, sums[lanes])
        many, half = builder.load(sums[_LANES]), _LANES // 2
        while half:
            turned = [(lane + half) % _LANES for lane in range(_LANES)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), turned)
            many = builder.fadd(many, builder.shuffle_vector(many, many, mask), flags=_FLAGS)
            half //= 2
        first = builder.extract_element(many, ir.IntType(32)(0))
        return builder.fadd(first, builder.load(sums[1]), flags=_FLAGS)

    return signature, generate


class _Row:
    """A slice of a row of a contiguous matrix, read and written `lanes` numbers at a time."""

    def __init__(
        self, context: Any, builder: ir.IRBuilder, kind: Any, array: Any, row: Any, column: Any
    ) -> None:
        matrix = context.make_array(kind)(context, builder, array)
        _, width = cgutils.unpack_tuple(builder, matrix.shape, 2)
        self.builder, self.real = builder, context.get_data_type(kind.dtype)
        self.bytes = context.get_abi_sizeof(self.real)
        self.start = builder.gep(matrix.data, [builder.add(builder.mul(row, width), column)])

    def _at(self, i: Any, lanes: int) -> Any:
        place = self.builder.gep(self.start, [i])
        if lanes == 1:
            return place
        return self.builder.bitcast(place, ir.VectorType(self.real, lanes).as_pointer())

    def load(self, i: Any, lanes: int) -> Any:
        return self.builder.load(self._at(i, lanes), align=self.bytes)

    def store(self, i: Any, values: Any, lanes: int) -> None:
        self.builder.store(values, self._at(i, lanes), align=self.bytes)

    def filled(self, value: Any, lanes: int) -> Any:
        """The same number in every lane."""
        if lanes == 1:
            return value
        many = ir.Constant(ir.VectorType(self.real, lanes), ir.Undefined)
        for lane in range(lanes):
            many = self.builder.insert_element(many, value, ir.IntType(32)(lane))
        return many


def _steps(builder: ir.IRBuilder, size: Any) -> Iterator[tuple[int, Any]]:
    """Loop over 0…size, first in steps of _LANES, then one by one; yield width and index."""
    whole = builder.and_(size, size.type(-_LANES % 2**64))
    for lanes, start, stop in ((_LANES, size.type(0), whole), (1, whole, size)):
        with cgutils.for_range_slice(builder, start, stop, size.type(lanes)) as (i, _):
            yield lanes, i


def known_heads(heads: int, width: int) -> tuple[Any, ...]:
    """Return `USUAL` for the heads that kernels are compiled for, else an empty tuple."""
    return USUAL if (heads, width // heads) == tuple(map(len, USUAL)) else ()


@compiled_sums
def heads_of(known: Any, heads: int, width: int) -> Any:
    """Return the number of heads and the width of each: constants if they are known."""
    if len(known) > 0:
        return np.uint64(len(known[0])), np.uint64(len(known[1]))
    return np.uint64(heads), np.uint64(width) // np.uint64(heads)


@compiled_sums
def columns_of(known: Any, width: int) -> Any:
    """Return the width of all heads together: a constant if it is known."""
    if len(known) > 0:
        return np.uint64(len(known[0])) * np.uint64(len(known[1]))
    return np.uint64(width)


@compiled_sums
def gather(values: Any, column: int, of: Any, to: Any, total: Any, known: Any) -> None:
    """Add a block of columns of the cells `of` to the cells `to`."""
    width = columns_of(known, total.shape[1])
    for i in range(np.uint64(of.size)):
        k, e = np.uint64(of[i]), np.uint64(to[i])
        for f in range(width):
            total[e, f] += values[k, np.uint64(column) + f]


@compiled_sums
def scatter(grad: Any, to: Any, of: Any, back: Any, column: int, known: Any) -> None:
    """Add the gradient of the cells `to` to a block of columns of the cells `of`."""
    width = columns_of(known, grad.shape[1])
    for i in range(np.uint64(of.size)):
        k, e = np.uint64(of[i]), np.uint64(to[i])
        for f in range(width):
            back[k, np.uint64(column) + f] += grad[e, f]
