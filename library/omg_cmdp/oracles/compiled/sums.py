"""Long sums at full speed, in an order that is written here.

A plain loop adds one number after the other, because the compiler may not reorder a sum. This one has sixteen sums side
by side, which are vectors on any machine, and adds these up at the end: the bits are the same everywhere.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from omg_cmdp.jit import in_plain_python

LANES = 16


@intrinsic
def _dot(typing_context, x, y):
    """Return Σ x·y of two contiguous vectors."""

    def generate(context, builder, signature, arguments):
        left, right = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        size = builder.extract_value(left.shape, 0)
        number, lanes = ir.DoubleType(), ir.VectorType(ir.DoubleType(), LANES)
        # Rounded down to a multiple of the lanes; the rest is added one by one.
        whole = builder.and_(size, ir.Constant(size.type, -LANES))

        def add_products(kind, total, begin, end, step):
            with cgutils.for_range_slice(builder, begin, end, ir.Constant(size.type, step), size.type) as (i, _):
                one, other = (
                    builder.load(builder.bitcast(builder.gep(each.data, [i]), kind.as_pointer()), align=8)
                    for each in (left, right)
                )
                builder.store(builder.fadd(builder.load(total), builder.fmul(one, other)), total)
            return builder.load(total)

        zero = ir.Constant(number, 0.0)
        sums = cgutils.alloca_once_value(builder, ir.Constant(lanes, [zero] * LANES))
        rest = cgutils.alloca_once_value(builder, zero)
        found = add_products(lanes, sums, ir.Constant(size.type, 0), whole, LANES)
        parts = [builder.extract_element(found, ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
        # Pairwise, in a fixed order: the bits are the same on every machine.
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(parts[i], parts[half + i]) for i in range(half)]
        return builder.fadd(parts[0], add_products(number, rest, whole, size, 1))

    return types.float64(x, y), generate


dot = np.dot if in_plain_python() else _dot
