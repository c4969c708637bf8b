"""Paths and phases by the names that TensorFlow 1 and 2, Keras 2 and 3 and Horovod give their ops: each rule by hand."""

from __future__ import annotations

import pytest

from tftracer.trace.analyses.op_name_to_layer import MAX_DEPTH, is_update, place_of, place_of_variable, reduced_gradient

FORWARD = {
    "dense": "dense",
    "": "",
    "//dense/": "dense",
    # functions' instances, replicas, what Grappler made
    "StatefulPartitionedCall/functional_1/dense_1": "functional_1/dense_1",
    "StatefulPartitionedCall_1/PartitionedCall_2/net/dense": "net/dense",
    "replica_1/net/dense": "net/dense",
    "ConstantFolding/dense": "dense",
    "dense/ArithmeticOptimizer": "dense",
    "a_inference_one_step_on_data_1308__.28": "",
    "__inference_train_step_73": "",
    # layers may be called so
    "bidirectional/forward_lstm": "bidirectional/forward_lstm",
    "model/output": "model/output",
    "model/adam": "model/adam",
    "model/cond": "model/cond",
    "block/block/dense": "block/block/dense",
    # loops and branches
    "while/body/_9/while": "while",
    "while/cond/_8/while": "while",
    "while_15/body/_1/while": "while_15",
    "rnn/while/body/_1/lstm_cell": "rnn/while/lstm_cell",
    "model/lstm/while/body/_12/model/lstm/while/lstm_cell": "model/lstm/while/lstm_cell",
    "while/body/_9/while/cond/then/_77/while/cond": "while/cond",
    "cond/else/_3/cond": "cond",
    "while/body/_9/while/cond/Func/while/body/_9/input/_69": "while/cond",
}
BACKWARD = {
    "gradients/dense/MatMul_grad": "dense/MatMul",
    "gradients_1/dense/MatMul_grad/tuple": "dense/MatMul/tuple",
    "gradients": "",
    "gradient_tape/sequential/conv2d/Conv2D": "sequential/conv2d/Conv2D",
    "StatefulPartitionedCall/gradient_tape/replica_1/net/dense/MatMul": "net/dense/MatMul",
    "training/Adagrad/gradients/gradients/dnn/logits/MatMul_grad": "training/Adagrad/dnn/logits/MatMul",
    "ConstantFolding/gradients/Mean_grad": "Mean",
    # TensorFlow 1: the body names what lies in the loop alone
    "gradients/rnn/while_grad/rnn/while_grad/body/_113/gradients/cell/MatMul_grad": "rnn/while/cell/MatMul",
    # a tf.function's loop in another function
    "gradients/while_grad/while_grad/body/_1/gradients/while_grad/gradients/while/MatMul_1_grad": "while/MatMul_1",
}
OPTIMIZER = {
    "Adam/update_dense/kernel": ("dense/kernel", "Adam"),
    "training/Adagrad/Adagrad/update_dnn/logits/kernel": ("dnn/logits/kernel", "Adagrad"),
    "train/GradientDescent_1/update_w": ("w", "GradientDescent"),
    "Adam": ("", "Adam"),
    "StatefulPartitionedCall/adam": ("", "adam"),
    "sgd/update_0_2": ("0_2", "sgd"),
    "loss_scale_optimizer/cond": ("cond", "loss_scale_optimizer"),
}


@pytest.mark.parametrize("scope", FORWARD)
def test_the_forward_pass(scope: str) -> None:
    assert place_of(scope) == (tuple(FORWARD[scope].split("/")) if FORWARD[scope] else (), "forward", "")


@pytest.mark.parametrize("scope", BACKWARD)
def test_gradients_fold_onto_their_ops(scope: str) -> None:
    assert place_of(scope) == (tuple(BACKWARD[scope].split("/")) if BACKWARD[scope] else (), "backward", "")


def test_what_keras_repeats_in_the_gradient_of_a_loop_ends_with_the_layer() -> None:
    loop = "model/rnn/while"
    scope = f"gradient_tape/{loop}/{loop}_grad/body/_114/gradient_tape/{loop}/gradients/{loop}/lstm_cell/MatMul_1_grad"
    path, phase, _ = place_of(scope)
    assert "/".join(path).endswith(f"{loop}/lstm_cell/MatMul_1") and phase == "backward"


@pytest.mark.parametrize("scope", OPTIMIZER)
def test_updates_fold_onto_their_variables(scope: str) -> None:
    path, name = OPTIMIZER[scope]
    assert place_of(scope) == (tuple(path.split("/")) if path else (), "optimizer", name)


def test_updates_by_op_type() -> None:
    assert is_update("ResourceApplyAdam") and is_update("ApplyMomentum") and is_update("ResourceSparseApplyFtrlV2")
    assert not is_update("Mul") and not is_update("AssignSubVariableOp")


def test_variables_and_what_optimizers_keep_for_them() -> None:
    assert place_of_variable("dense/kernel") == (("dense", "kernel"), "forward", "")
    assert place_of_variable("dense/kernel/Adam_1") == (("dense", "kernel"), "optimizer", "Adam")
    assert place_of_variable("training/Adam/dense/kernel/m") == (("dense", "kernel", "m"), "optimizer", "Adam")
    assert place_of_variable("training/dense/kernel/RMSProp_2") == (("training", "dense", "kernel"), "optimizer", "RMSProp")
    assert place_of_variable("Adam") == ((), "optimizer", "Adam")


def test_collectives_say_what_they_carry() -> None:
    scope = "DistributedMomentumOptimizer_Allreduce/cond_29/then/_232"
    name = f"{scope}/HorovodAllreduce_gradients_dense_1_MatMul_grad_tuple_control_dependency_1_0"
    assert reduced_gradient(name) == "dense_1_MatMul_grad_tuple_control_dependency_1_0"
    assert reduced_gradient("HorovodAllreduce_gradient_tape_model_dense_MatMul_MatMul_1_0") == "model_dense_MatMul_MatMul_1_0"
    assert reduced_gradient("StatefulPartitionedCall/sgd/CollectiveReduceV2") == ""
    assert place_of(scope).phase == "communication"


def test_paths_of_any_depth_are_cut() -> None:
    for scope in ("a/" * 100_000, "while/body/_1/" * 50_000, "gradients/x_grad/" * 50_000, "a/a/body/_1/a/a/" * 20_000):
        assert len(place_of(scope).path) <= MAX_DEPTH
