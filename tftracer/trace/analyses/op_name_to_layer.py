"""Finds an op's layer and phase by the op's name alone.

The path of an op is its name scope without the parts that TensorFlow and Keras insert:

- ``gradients/dense/MatMul_grad``, ``gradients_1/...``, ``gradient_tape/...``: the backward pass of ``dense/MatMul``.
- ``Adam/update_dense/kernel``: the optimizer's work for ``dense/kernel``.
- ``rnn/while/body/_12/rnn/while/cell``, ``cond/then/_3/cond``: bodies of loops and branches, which repeat the path.
- ``StatefulPartitionedCall/model/dense``, ``replica_1/model/dense``, ``ConstantFolding/dense``: a function's call, a replica, an
  op that TensorFlow's graph optimizer (Grappler) rewrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tftracer.contract.layers import LayerPhase

#: Deeper scopes count as the scope at this depth.
MAX_DEPTH = 64
_MAX_PARTS = 2 * MAX_DEPTH  # maximum number of a name's parts that are examined
_MAX_COMPARED = 8  # maximum number of positions in a path that are compared with a body's repeated path

_OPTIMIZER = (
    "Adadelta|Adafactor|Adagrad(?:DA)?|Adam|Adamax|AdamW|AdamWeightDecay|Ftrl|GradientDescent|Lamb|LARS|Lion|LossScaleOptimizer"
    "|Momentum|Muon|Nadam|Proximal(?:Adagrad|GradientDescent)|RMS[Pp]rop|SGD|SyncReplicas|loss_scale_optimizer"
)
_OPTIMIZER_NAME = rf"(?:Distributed)?(?:{_OPTIMIZER})(?:Optimizer)?(?:V2)?(?:_\d+)?"
_NAMED_OPTIMIZER = re.compile(_OPTIMIZER_NAME)
#: Keras 3 writes the names of optimizers in lower case. A model's own scopes may have such names, so this is only used for the
#: first part of a path.
_ANY_OPTIMIZER = re.compile(_OPTIMIZER_NAME, re.IGNORECASE)
_ALLREDUCE = re.compile(r"Distributed\w+_Allreduce(_\d+)?|DistributedGradientTape\w*")
_UPDATING_OP = re.compile(r"(Resource)?(Sparse)?Apply\w+")
_UPDATE = "update_"

_GRADIENTS = re.compile(r"(gradients|gradient_tape)(_\d+)?")
_DIFFERENTIATED = re.compile(r"(.+)_grad(_\d+)?")
_CALL = re.compile(r"(Stateful)?PartitionedCall(_\d+)?|RemoteCall(_\d+)?|replica_\d+|(a_|__+)(inference|forward|backward)_.*")
_REWRITTEN = re.compile(r"ConstantFolding|(Arithmetic|Layout|Loop|Dependency|Scoped\w*)Optimizer|Remapper")
_BODIES = frozenset(["body", "cond", "then", "else"])
_NUMBER = re.compile(r"_\d+")
_NUMBERED = re.compile(r"_\d+$")
#: Finds parts of a scope that perhaps do not belong to the path, empty parts, and names of optimizers. Most scopes have none of
#: these: such a scope is itself the path, and its ops belong to the forward pass.
_SPECIAL = re.compile(
    rf"(?:^|/)(?:(?:{'|'.join(pattern.pattern for pattern in (_GRADIENTS, _CALL, _REWRITTEN, _NUMBER, _ALLREDUCE))}"
    rf"|{_OPTIMIZER_NAME}|Func|body|cond|then|else)?(?=/|$)|__|a_)",
    re.IGNORECASE,
)
_REDUCED = re.compile(r".*?_(gradients|gradient_tape)(_\d+(?=_))?_(?P<path>.+)")


class Place(NamedTuple):
    """The place of an op in the model.

    ``path``: the path of the op's layer. In the backward pass and in an optimizer, it may have more parts after the layer's path:
    the name of the op whose gradient this op computes, or the name of the variable that this op updates.
    """

    path: tuple[str, ...]
    phase: LayerPhase
    optimizer: str = ""  # the name of the optimizer whose op it is


def is_update(op: str) -> bool:
    """Return whether ops of this type update a variable for an optimizer."""
    return _UPDATING_OP.fullmatch(op) is not None


def updating_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """Return the optimizers' scopes that are not named after an optimizer: ``train`` from ``train/update_dense/kernel``.

    ``scopes``: the scopes of ops that update variables.
    """
    heads = {scope[: scope.find(f"/{_UPDATE}")] for scope in scopes if f"/{_UPDATE}" in scope}
    paths = [_without_inserted(head.split("/", _MAX_PARTS)[:_MAX_PARTS])[0] for head in heads]
    return frozenset("/".join(path) for path in paths if path and _optimizer_at(path) < 0)


def place_of(scope: str, updating: frozenset[str] = frozenset()) -> Place:
    """Return the place of a scope's ops. ``updating``: the scopes from ``updating_scopes`` (``minimize(name="train")``)."""
    if scope and not updating and not _SPECIAL.search(scope):
        return Place(tuple(scope.split("/", MAX_DEPTH)[:MAX_DEPTH]), "forward")
    path, is_backward = _without_inserted(scope.split("/", _MAX_PARTS)[:_MAX_PARTS])
    if is_backward:
        return Place(tuple(path[:MAX_DEPTH]), "backward")
    for depth in range(1, len(path) + 1 if updating else 0):
        if "/".join(path[:depth]) in updating:
            return Place(tuple(_updated(path[depth:])[:MAX_DEPTH]), "optimizer", path[depth - 1])
    at = _optimizer_at(path)
    if at < 0:
        return Place(tuple(path[:MAX_DEPTH]), "forward")
    phase: LayerPhase = "communication" if _ALLREDUCE.fullmatch(path[at]) else "optimizer"
    return Place(tuple(_updated(path[at + 1 :])[:MAX_DEPTH]), phase, _NUMBERED.sub("", path[at]))


def place_of_variable(name: str) -> Place:
    """Return the place of a variable of the model, or of an optimizer's slot variable (``dense/kernel/Adam_1``)."""
    variable, _, slot = name.rpartition("/")
    if variable and _NAMED_OPTIMIZER.fullmatch(slot):
        return Place(place_of(variable).path, "optimizer", _NUMBERED.sub("", slot))
    return place_of(name)


def reduced_gradient(name: str) -> str:
    """Return the path of the gradient that a Horovod collective reduces, with ``_`` instead of ``/``; "" if unknown.

    ``name``: the collective's name. ``.../HorovodAllreduce_gradients_dense_MatMul_grad_tuple_control_dependency_1_0`` gives
    ``dense_MatMul_grad_tuple_control_dependency_1_0``.
    """
    match = _REDUCED.fullmatch(name.rpartition("/")[2])
    return match["path"] if match else ""


def is_gradient(part: str) -> bool:
    """Return whether a part of a path is TensorFlow's scope for gradients. After it comes the path of the differentiated op."""
    return _GRADIENTS.fullmatch(part) is not None


def is_inserted(part: str) -> bool:
    """Return whether TensorFlow inserted a part of a path by itself: a call, the number of a body, a rewritten op."""
    return bool(_NUMBER.fullmatch(part) or _CALL.fullmatch(part) or _REWRITTEN.fullmatch(part))


def _without_inserted(parts: list[str]) -> tuple[list[str], bool]:
    """Return (the path, whether it belongs to the backward pass)."""
    path: list[str] = []
    section: list[str] = []  # the parts after the last body or scope for gradients; they may repeat ``path``
    is_backward = False
    for part, following in zip(parts, [*parts[1:], ""]):
        if part == "Func":  # an input or output of a body
            break
        if (part in _BODIES and _NUMBER.fullmatch(following)) or is_gradient(part):
            path, section = _joined(path, section), []
            is_backward |= part not in _BODIES
        elif is_backward and (differentiated := _DIFFERENTIATED.fullmatch(part)):
            path, section = _joined(path, [*section, differentiated[1]]), []
        elif part and not is_inserted(part):
            section.append(part)
    return _joined(path, section), is_backward


def _joined(path: list[str], section: list[str]) -> list[str]:
    """Append the section without the part that repeats the path's end: ``a/while`` and ``a/while/b`` give ``a/while/b``."""
    compared = 0
    for length in range(min(len(path), len(section)), 0, -1):
        if _same(path[-length], section[0]):
            compared += 1
            if all(map(_same, path[-length:], section)):
                return path + section[length:]
            if compared == _MAX_COMPARED:
                break
    return path + section


def _same(part: str, other: str) -> bool:
    """Return whether two parts are equal, apart from the number of a loop or branch: the ops of ``while_15`` are in ``while``."""
    return part == other or (part.startswith(("while", "cond")) and _NUMBERED.sub("", part) == _NUMBERED.sub("", other))


def _optimizer_at(path: list[str]) -> int:
    """Return the index of the part of a path that names an optimizer; -1 if there is none."""
    if path and _ANY_OPTIMIZER.fullmatch(path[0]):
        return 0
    named = (at for at, part in enumerate(path) if _NAMED_OPTIMIZER.fullmatch(part) or _ALLREDUCE.fullmatch(part))
    return next(named, -1)


def _updated(path: list[str]) -> list[str]:
    """Return the path of the variable that an optimizer's op updates. ``path``: the scopes inside the optimizer's scope."""
    for at, part in enumerate(path):
        if part.startswith(_UPDATE):
            return [part[len(_UPDATE) :], *path[at + 1 :]]
    return path
