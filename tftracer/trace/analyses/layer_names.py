"""Which layer of a model an op belongs to, and what it does for it, by the op's name alone.

The path of an op is its name scope without what TensorFlow and Keras put into it:

- ``gradients/dense/MatMul_grad``, ``gradients_1/...``, ``gradient_tape/...``: the backward pass of ``dense/MatMul``.
- ``Adam/update_dense/kernel``: the optimizer's work for ``dense/kernel``.
- ``rnn/while/body/_12/rnn/while/cell``, ``cond/then/_3/cond``: bodies of loops and branches, which repeat the path.
- ``StatefulPartitionedCall/model/dense``, ``replica_1/model/dense``, ``ConstantFolding/dense``: a function's instance, a replica,
  what Grappler made of an op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tftracer.contract.layers import LayerPhase

#: Scopes that lie deeper count for the one at this depth.
MAX_DEPTH = 64
_MOST_PARTS = 2 * MAX_DEPTH  # of a name that are looked at
_MOST_COMPARED = 8  # places in a path that may begin what a body repeats

_OPTIMIZER = (
    "Adadelta|Adafactor|Adagrad(?:DA)?|Adam|Adamax|AdamW|AdamWeightDecay|Ftrl|GradientDescent|Lamb|LARS|Lion|LossScaleOptimizer"
    "|Momentum|Muon|Nadam|Proximal(?:Adagrad|GradientDescent)|RMS[Pp]rop|SGD|SyncReplicas|loss_scale_optimizer"
)
_NAMED = rf"(?:Distributed)?(?:{_OPTIMIZER})(?:Optimizer)?(?:V2)?(?:_\d+)?"
_NAMED_OPTIMIZER = re.compile(_NAMED)
#: Keras 3 begins them with a small letter. A model's own scopes may be called so, too: this holds for the first part of a path.
_ANY_OPTIMIZER = re.compile(_NAMED, re.IGNORECASE)
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
#: Scopes without any of these, or empty parts, are those of the forward pass as they are: most are, and are told apart at once.
_SPECIAL = re.compile(
    rf"(?:^|/)(?:(?:{'|'.join(pattern.pattern for pattern in (_GRADIENTS, _CALL, _REWRITTEN, _NUMBER, _ALLREDUCE))}"
    rf"|{_NAMED}|Func|body|cond|then|else)?(?=/|$)|__|a_)",
    re.IGNORECASE,
)
_REDUCED = re.compile(r".*?_(gradients|gradient_tape)(_\d+(?=_))?_(?P<path>.+)")


class Place(NamedTuple):
    """Where an op belongs. The path may be longer than that of its layer: it ends with the op whose gradient this is, or with
    the variable that is updated.
    """

    path: tuple[str, ...]
    phase: LayerPhase
    optimizer: str = ""  # the name of the optimizer whose op it is


def is_update(op: str) -> bool:
    """Whether ops of this type update a variable for an optimizer."""
    return _UPDATING_OP.fullmatch(op) is not None


def updating_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes in which optimizers update variables, by those of the ops that update them: ``train`` of
    ``train/update_dense/kernel``. Without those that are called as their optimizer is."""
    heads = {scope[: scope.find(f"/{_UPDATE}")] for scope in scopes if f"/{_UPDATE}" in scope}
    paths = [_without_inserted(head.split("/", _MOST_PARTS)[:_MOST_PARTS])[0] for head in heads]
    return frozenset("/".join(path) for path in paths if path and _optimizer_at(path) < 0)


def place_of(scope: str, updating: frozenset[str] = frozenset()) -> Place:
    """The place of a name scope's ops. ``updating``: scopes of optimizers that the script named (``minimize(name="train")``)."""
    if scope and not updating and not _SPECIAL.search(scope):
        return Place(tuple(scope.split("/", MAX_DEPTH)[:MAX_DEPTH]), "forward")
    path, is_backward = _without_inserted(scope.split("/", _MOST_PARTS)[:_MOST_PARTS])
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
    """The place of a variable, by its name: one of the model's, or one that an optimizer keeps (``dense/kernel/Adam_1``)."""
    of, _, slot = name.rpartition("/")
    if of and _NAMED_OPTIMIZER.fullmatch(slot):
        return Place(place_of(of).path, "optimizer", _NUMBERED.sub("", slot))
    return place_of(name)


def reduced_gradient(name: str) -> str:
    """What a collective of Horovod carries, by its name: the path of a gradient with ``_`` in place of ``/``; "" if not said.

    ``dense_MatMul_grad_tuple_control_dependency_1_0`` of ``.../HorovodAllreduce_gradients_dense_MatMul_grad_tuple_...``.
    """
    match = _REDUCED.fullmatch(name.rpartition("/")[2])
    return match["path"] if match else ""


def _without_inserted(parts: list[str]) -> tuple[list[str], bool]:
    """(the path, whether it is of the backward pass)."""
    path: list[str] = []
    section: list[str] = []  # since a part behind which the path may begin anew
    is_backward = False
    for part, following in zip(parts, [*parts[1:], ""]):
        if part == "Func":  # an input or output of a body
            break
        if (part in _BODIES and _NUMBER.fullmatch(following)) or _GRADIENTS.fullmatch(part):
            path, section = _joined(path, section), []
            is_backward |= part not in _BODIES
        elif is_backward and (of := _DIFFERENTIATED.fullmatch(part)):
            path, section = _joined(path, [*section, of[1]]), []
        elif part and not (_NUMBER.fullmatch(part) or _CALL.fullmatch(part) or _REWRITTEN.fullmatch(part)):
            section.append(part)
    return _joined(path, section), is_backward


def _joined(path: list[str], section: list[str]) -> list[str]:
    """The section in the path, without what it repeats of the path's end: ``a/while`` and ``a/while/b`` are ``a/while/b``."""
    compared = 0
    for length in range(min(len(path), len(section)), 0, -1):
        if _same(path[-length], section[0]):
            compared += 1
            if all(map(_same, path[-length:], section)):
                return path + section[length:]
            if compared == _MOST_COMPARED:
                break
    return path + section


def _same(part: str, other: str) -> bool:
    """A loop called ``while_15`` runs a body whose ops lie in ``while``."""
    return part == other or (part.startswith(("while", "cond")) and _NUMBERED.sub("", part) == _NUMBERED.sub("", other))


def _optimizer_at(path: list[str]) -> int:
    """The index of the part of a path that names an optimizer; -1 if none does."""
    if path and _ANY_OPTIMIZER.fullmatch(path[0]):
        return 0
    named = (at for at, part in enumerate(path) if _NAMED_OPTIMIZER.fullmatch(part) or _ALLREDUCE.fullmatch(part))
    return next(named, -1)


def _updated(path: list[str]) -> list[str]:
    """The variable that an optimizer's op updates, as far as the scopes within the optimizer's tell it."""
    for at, part in enumerate(path):
        if part.startswith(_UPDATE):
            return [part[len(_UPDATE) :], *path[at + 1 :]]
    return path
