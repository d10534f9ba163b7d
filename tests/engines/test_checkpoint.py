"""Shapes of weights are read from any layout of a checkpoint's files."""

import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from rsd.engines.base import ModelSource
from rsd.engines.checkpoint import shapes_in
from tests.conftest import compose_config

PRM = compose_config().prm.path


@pytest.mark.parametrize("layout", ["one file", "shards", "bin"])
def test_shapes_are_read_from_every_layout(layout: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    if layout == "one file":
        shutil.copytree(PRM, folder)
    elif layout == "shards":
        AutoModelForSequenceClassification.from_pretrained(PRM).save_pretrained(folder, max_shard_size="1MB")
        assert len(list(folder.glob("*.safetensors"))) > 1
    else:
        folder.mkdir()
        torch.save(AutoModelForSequenceClassification.from_pretrained(PRM).state_dict(), folder / "pytorch_model.bin")
    source = ModelSource(key="prm.path", path=str(folder), revision=None, dtype="float32", context=512)
    names = ["score.weight", "model.layers.3.mlp.down_proj.weight", "v_head.summary.weight"]
    assert shapes_in(source, names) == {names[0]: (1, 128), names[1]: (128, 384)}


def test_a_folder_without_weights_holds_none(tmp_path: Path) -> None:
    source = ModelSource(key="prm.path", path=str(tmp_path), revision=None, dtype="float32", context=512)
    assert shapes_in(source, ["score.weight"]) == {}
