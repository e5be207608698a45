"""Two runs of one job give the same classes, and different files of one run different ones."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.supervision.path_classes import path_class

TEMPFILE = st.text(alphabet=string.ascii_lowercase + string.digits + "_", min_size=8, max_size=8).map("tmp{}".format)
NUMBERS = st.integers(0, 10**12).map(str)
PADDED = st.integers(0, 10**12).map("{:013d}".format)
HEXADECIMAL = st.text(alphabet="0123456789abcdef", min_size=8, max_size=64)
PIDS = st.tuples(st.sampled_from(".-"), st.integers(1, 4_194_304))

TEMPLATES = (
    "{number}.orbax-checkpoint-tmp-{number}/default/ocdbt.process_{number}/d/{hexadecimal}",
    "{tempfile}/state.npz",
    "{tempfile}.json",
    ".{hexadecimal}.lock",
    "run-{uuid}/events.out",
    "step_{padded}/shard-{padded}-of-{padded}.bin",
    "model.pt.{number}",
    "model-{number}.tmp",
    "{uuid}",
)
FILLINGS = st.fixed_dictionaries(
    {"number": NUMBERS, "padded": PADDED, "hexadecimal": HEXADECIMAL, "tempfile": TEMPFILE, "uuid": st.uuids().map(str)}
)


@given(st.sampled_from(TEMPLATES), FILLINGS, FILLINGS)
def test_two_runs_of_one_job_give_the_same_classes(template, first, second) -> None:
    assert path_class(template.format(**first)) == path_class(template.format(**second))


@given(st.text(alphabet=string.ascii_letters + string.digits + "._-*/ é", max_size=40))
def test_the_class_of_a_class_is_itself(path) -> None:
    assert path_class(path_class(path)) == path_class(path)


@given(st.text(max_size=40))
def test_any_path_has_a_class_of_as_many_parts(path) -> None:
    assert path_class(path).count("/") == path.count("/")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".", "."),
        ("latest", "latest"),
        ("_CHECKPOINT_METADATA", "_CHECKPOINT_METADATA"),
        ("metadata/manifest.ocdbt", "metadata/manifest.ocdbt"),
        ("snapshot/metadata", "snapshot/metadata"),
        ("step_100/data", "step_*/data"),
        ("step_99/data", "step_*/data"),
        ("ckpt_001", "ckpt_*"),
        ("ckpt-a8k3_x2z", "ckpt-*"),
        ("model.pt.tmp.12345", "model.pt.tmp.*"),
        ("TorchTrainer_a1b2c_00000_0_2026-11-29_23-12-01", "TorchTrainer_*_*_*_*-*-*_*-*-*"),
        ("feedface", "*"),
        ("facade", "facade"),
    ],
)
def test_words_stay_and_numbers_and_random_parts_go(path, expected) -> None:
    assert path_class(path) == expected
