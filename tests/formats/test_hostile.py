"""Files that were made to mislead or to fill the memory are refused with a sentence, before anything large is made."""

from __future__ import annotations

import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbob.errors import BadInput
from plumbob.formats import model_files as files
from plumbob.formats import read_model, ubjson
from plumbob.trust import Trust
from tests.formats.test_files import _set, changed_json

# ONNX by hand: numbered fields of numbers or bytes


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name: str, value: Any) -> bytes:
    made = field(1, name)
    if isinstance(value, int):
        return made + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return made + field(4, value) + field(20, 3)
    if isinstance(value[0], str):
        return made + b"".join(field(9, one) for one in value) + field(20, 8)
    if isinstance(value[0], float):
        return made + field(7, struct.pack(f"<{len(value)}f", *value)) + field(20, 6)
    return made + b"".join(field(8, one) for one in value) + field(20, 7)


def node(kind: str, given: list[str], made: list[str], **attributes: Any) -> bytes:
    names = b"".join(field(1, name) for name in given) + b"".join(field(2, name) for name in made)
    return names + field(4, kind) + b"".join(field(5, attribute(*one)) for one in attributes.items())


def tensor(name: str, array: np.ndarray) -> bytes:
    sizes = b"".join(field(1, size) for size in array.shape)
    return sizes + field(2, 1) + field(8, name) + field(9, array.astype("<f4").tobytes())


def written(folder: Path, inputs: dict[str, int], nodes: list[bytes], *constants: bytes) -> Path:
    def shaped(name: str, width: int) -> bytes:
        shape = field(1, field(1, 0)) + field(1, field(1, width))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))

    graph = b"".join(field(1, one) for one in nodes) + b"".join(field(5, one) for one in constants)
    graph += b"".join(field(11, shaped(*one)) for one in inputs.items()) + field(12, field(1, "scores"))
    (folder / "a.onnx").write_bytes(field(7, graph))
    return folder / "a.onnx"


def linear(folder: Path, to: int) -> Path:
    nodes = [node("Cast", ["x"], ["c"], to=to), node("MatMul", ["c", "w"], ["m"]), node("Softmax", ["m"], ["scores"])]
    return written(folder, {"x": 2}, nodes, tensor("w", np.array([[1.0, -1.0], [0.5, 2.0]])))


@pytest.mark.parametrize("to", [1, 11])
def test_a_cast_to_floats_changes_nothing(to: int, tmp_path: Path) -> None:
    own = read_model(linear(tmp_path, to))
    assert own.model.scores(np.array([[0.5, 0.25]]))[0, 0] == pytest.approx(1 / (1 + np.exp(-0.625)))


@pytest.mark.parametrize("to", [6, 7, 9, 10])
def test_a_cast_that_cuts_off_is_refused(to: int, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its scores depend on the unsupported operator 'Cast'"):
        read_model(linear(tmp_path, to))


def stump(folder: Path, **more: Any) -> Path:
    attributes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [-1.0, 1.0],
        "n_targets": 1,
    }
    tree = node("TreeEnsembleRegressor", ["x"], ["t"], **(attributes | more))
    return written(folder, {"x": 1}, [tree, node("Sigmoid", ["t"], ["scores"])])


def test_trees_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    scores = read_model(stump(tmp_path, aggregate_function="SUM")).model.scores(np.array([[0.0], [1.0]]))
    assert scores[:, 1] == pytest.approx(1 / (1 + np.exp([1.0, -1.0])))
    for how in ("AVERAGE", "MIN", "MAX"):
        with pytest.raises(
            BadInput, match=re.escape(f"expected trees that are summed (aggregate_function SUM), got {how}")
        ):
            read_model(stump(tmp_path, aggregate_function=how))


def test_outputs_beyond_reason_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected at most 10,000 classes"):
        read_model(stump(tmp_path, n_targets=10**12))


def test_inputs_beyond_reason_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected 1 to 5,000 input columns, got 1,000,000"):
        read_model(written(tmp_path, {"x": 10**6}, [node("Softmax", ["x"], ["scores"])]))
    wide = tensor("w", np.zeros((1, 300_000)))
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Mul", ["m", "w"], ["n"]), node("Softmax", ["n"], ["scores"])]
    with pytest.raises(BadInput, match="expected at most 5,000 columns or neurons in a layer"):
        read_model(written(tmp_path, {"x": 1}, nodes, wide))


def test_many_inputs_of_one_column_share_no_memory(tmp_path: Path) -> None:
    import tracemalloc

    names = [f"x{i}" for i in range(600)]
    nodes = [
        node("Concat", names, ["all"], axis=1),
        node("MatMul", ["all", "w"], ["m"]),
        node("Softmax", ["m"], ["scores"]),
    ]
    path = written(tmp_path, dict.fromkeys(names, 1), nodes, tensor("w", np.ones((600, 2))))
    tracemalloc.start()
    try:
        own = read_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert own.inputs == tuple(names)
    assert peak < 20 * 8 * 600**2  # a table of all inputs for each of them would be 600 such


# xgboost


@pytest.mark.parametrize("mark", ["Z", "T", "F", "U", "S", "[", "N"])
def test_values_without_bytes_are_counted_before_they_are_made(mark: str) -> None:
    announced = b"[$" + mark.encode() + b"#L" + struct.pack(">q", ubjson.MOST + 1)
    with pytest.raises(ValueError, match=r"too many values|a type without a length"):
        ubjson.loads(announced)


def test_values_are_counted_in_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ubjson, "MOST", 1000)
    few = b"[$Z#I" + struct.pack(">h", 300)
    assert ubjson.loads(b"[" + few * 3 + b"]") == [[None] * 300] * 3
    for data in (
        b"[" + few * 4 + b"]",
        b"[" + b"[]" * 1000 + b"]",
        b"[" + (b"[$U#I" + struct.pack(">h", 600) + bytes(600)) * 2 + b"]",
    ):
        with pytest.raises(ValueError, match=r"too many|more than"):
            ubjson.loads(data)


def test_a_length_below_zero_is_none() -> None:
    with pytest.raises(ValueError, match="a negative length"):
        ubjson.loads(b"[#i\xff]")


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="counted from 0, but it has 1 inputs"):
        read_model(changed_json(tmp_path, _set("learner_model_param", "num_feature", "1")))


def test_classes_beyond_reason_are_refused(tmp_path: Path) -> None:
    def change(learner: Any) -> None:
        learner["objective"]["name"] = "multi:softprob"
        learner["learner_model_param"]["num_class"] = str(10**12)

    with pytest.raises(BadInput, match="expected at most 10,000 classes, got num_class 1000000000000"):
        read_model(changed_json(tmp_path, change))


# torch


def saved(folder: Path, state: Any) -> Path:
    import torch

    torch.save(state, folder / "a.pt")
    return folder / "a.pt"


def test_what_a_state_dict_does_not_tell_is_noted(tmp_path: Path) -> None:
    from torch import nn

    chain = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    assert read_model(saved(tmp_path, chain.state_dict())).notes[0].startswith("ReLU is assumed between layers")
    assert read_model(saved(tmp_path, nn.Linear(4, 3).state_dict())).notes == ()
    whole = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    assert read_model(saved(tmp_path, whole), trust=Trust(code=True)).notes == ()


def test_an_embedding_is_not_taken_for_a_layer_in_silence(tmp_path: Path) -> None:
    from torch import nn

    with pytest.raises(BadInput, match=re.escape("'0.weight' has no bias: Embedding layers are not supported")):
        read_model(saved(tmp_path, nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3)).state_dict()))
    square = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 3)).state_dict()
    assert "'0.weight' has no bias and is assumed to be a Linear layer" in read_model(saved(tmp_path, square)).notes[1]


def test_a_tensor_that_claims_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    import torch

    state = {"weight": torch.zeros(1).expand(10**5, 10**5), "bias": torch.zeros(1).expand(10**5)}
    with pytest.raises(BadInput, match="'weight' declares 10,000,000,000 numbers but stores fewer"):
        read_model(saved(tmp_path, state))


def test_a_packed_file_that_grows_is_refused(tmp_path: Path) -> None:
    import torch

    path = saved(tmp_path, {"weight": torch.zeros(200, 2000), "bias": torch.zeros(200)})
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            after.writestr(name, before.read(name))
    with pytest.raises(BadInput, match="its members are compressed"):
        read_model(tmp_path / "b.pt")


# any


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, ModuleNotFoundError])
def test_whatever_goes_wrong_is_a_sentence(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(data: bytes) -> Any:
        raise error

    monkeypatch.setattr(files, "read_onnx", broken)
    (tmp_path / "a.onnx").write_bytes(b"x")
    with pytest.raises(BadInput, match=rf"cannot be read as a complete '.onnx' model \({error.__name__}\)"):
        read_model(tmp_path / "a.onnx")


def test_only_ordinary_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "device.onnx").symlink_to("/dev/zero")
    (tmp_path / "folder.onnx").mkdir()
    for name in ("pipe", "device", "folder"):
        with pytest.raises(BadInput, match=f"model '{name}.onnx' is a {name}; expected a regular file"):
            read_model(tmp_path / f"{name}.onnx")


def test_a_file_that_grows_is_read_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of /proc says that it is empty and is not."""
    if not Path("/proc/self/maps").exists():
        pytest.skip("no /proc here")
    monkeypatch.setattr(files, "LARGEST", 100)
    (tmp_path / "maps.onnx").symlink_to("/proc/self/maps")
    with pytest.raises(BadInput, match="larger than"):
        read_model(tmp_path / "maps.onnx")
