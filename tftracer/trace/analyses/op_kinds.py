"""Maps variants of op types to one name (`_FusedMatMul`, `_MklNativeMatMul` -> `MatMul`), and recognizes matrix ops, elementwise
ops and reductions."""

from __future__ import annotations

import re

from tftracer.trace.analyses.flop_formulas import FORMULAS

_PREFIXES = re.compile(r"_?(?:ITEX|Mkl|Native|OneDnn|Fused|Quantized|PadWith|Eager)+(?=[A-Z])")
_BATCH_NORM = re.compile(r"_?(?:Mkl|Native)*_?FusedBatchNorm")

_SUFFIX = re.compile(r"(?:V\d+|With\w+|And\w+|BiasActivation)?")
_OTHER_NAMES = {
    "MatMulGrad": "MatMul",
    "XlaEinsum": "Einsum",
    "DepthwiseConv2D": "DepthwiseConv2dNative",
    "DepthwiseConv2d": "DepthwiseConv2dNative",
}
#: Names of matrix ops, without the suffixes for versions and for fused ops (`WithBias`).
_LONGEST_FIRST = sorted((*FORMULAS, *_OTHER_NAMES), key=len, reverse=True)

#: Matrix ops without a FLOP formula: their FLOPs are unknown, never 0.
UNCOUNTED = frozenset(
    [
        *(f"CudnnRNN{suffix}" for suffix in ("", "V2", "V3", "Backprop", "BackpropV2", "BackpropV3")),
        *("SparseMatrixMatMul", "SparseMatrixSparseMatMul", "FusedPadConv2D", "FusedResizeAndPadConv2D"),
        *("XlaDot", "XlaDotV2", "XlaConv", "XlaConvV2", "XlaLaunch", "_XlaRun", "XlaLaunchV2", "TPUExecute"),
        *("Cholesky", "MatrixInverse", "MatrixSolve", "MatrixTriangularSolve", "Qr", "Svd", "SelfAdjointEigV2", "Lu"),
    ]
)

#: Op types that call a Python function.
PYTHON_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))
#: Kinds of ops that compute each element of their output from one element of each input.
ELEMENTWISE = re.compile(
    r"Abs|Add(N|V2)?|Cast|Cos|Div(NoNan)?|Equal|Erf|Exp|Expm1|Floor(Div|Mod)?|(Greater|Less)(Equal)?|Log|Log1p"
    r"|Logical(And|Not|Or)|Maximum|Minimum|Mul(NoNan)?|Neg|Pow|RealDiv|Reciprocal|SelectV2|Sign|Sin|Square|SquaredDifference"
    r"|Sub|Tan|(Relu|Relu6|Elu|Selu|Rsqrt|Sigmoid|Softplus|Sqrt|Tanh)(Grad)?"
)
#: Kinds of ops that reduce several elements to one, such as by adding or comparing them.
REDUCTIONS = re.compile(r"BiasAddGrad|Sum|Mean|Max|Min|ArgMax|ArgMin|Prod|All|Any|EuclideanNorm|L2Loss")
#: Other kinds that XLA fuses with elementwise ops and reductions.
_ALSO_FUSED = re.compile(r"BiasAdd|LeakyRelu(Grad)?|Softplus|Softsign(Grad)?|UnaryOpsComposition|Xdivy|Xlogy|Erfc|Inv")


def canonical(op: str) -> str:
    """Return the op type without prefixes of libraries and of fusion, and for matrix ops without the version.

    ``_MklNativeFusedMatMul`` -> ``MatMul``, ``BatchMatMulV2`` -> ``BatchMatMul``, ``_FusedBatchNormEx`` -> ``FusedBatchNorm``.
    """
    if op in UNCOUNTED:
        return op
    norm = _BATCH_NORM.match(op)
    if norm:
        return "FusedBatchNorm" + op[norm.end() :].removesuffix("Ex")
    plain = _PREFIXES.sub("", op, count=1) if _PREFIXES.match(op) else op
    for kind in _LONGEST_FIRST:
        if plain.startswith(kind) and _SUFFIX.fullmatch(plain[len(kind) :]):
            return _OTHER_NAMES.get(kind, kind)
    return plain if plain != op and op.startswith("_") else op


def is_named(op: str, name: str) -> bool:
    """Return whether a user who writes ``name`` means ``op``: ``MatMul`` also means ``_MklMatMul`` and ``_FusedMatMul``."""
    return name in (op, canonical(op))


def is_matrix_op(op: str) -> bool:
    kind = canonical(op)
    return kind in FORMULAS or kind in UNCOUNTED


def family(op: str) -> str:
    """Return the group of similar matrix ops that an op belongs to: "convolutions" or "products"; "" for other ops."""
    kind = canonical(op)
    if "Conv" in kind:
        return "convolutions" if kind in FORMULAS else ""
    return "products" if kind in ("MatMul", "BatchMatMul", "Einsum") else ""


def is_elementwise(kind: str) -> bool:
    """Return whether XLA fuses ops of this kind (``canonical``), because they compute little for each element that they read."""
    return any(kinds.fullmatch(kind) for kinds in (ELEMENTWISE, REDUCTIONS, _ALSO_FUSED))
