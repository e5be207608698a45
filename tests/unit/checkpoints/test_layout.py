"""What layouts share."""

from pathlib import Path

import pytest

from harness.checkpoints.layout import Found, path_of_step, renumber, step_of


@pytest.mark.parametrize(
    ("name", "step", "other", "expected"),
    [
        ("step_00000010", 10, 15, "step_00000015"),
        ("checkpoint-500", 500, 1000, "checkpoint-1000"),
        ("epoch=3-step=120.ckpt", 120, 5, "epoch=3-step=5.ckpt"),
        ("model_0099.pt", 99, 100000, "model_100000.pt"),
        ("0", 0, 7, "7"),
        ("model.pt", -1, 7, "model.pt"),
    ],
)
def test_a_name_is_given_another_step(name: str, step: int, other: int, expected: str) -> None:
    assert renumber(name, step, other) == expected


def test_a_number_too_long_is_no_step() -> None:
    assert step_of("9" * 18) == 10**18 - 1
    assert step_of("9" * 19) == -1


def test_the_path_of_a_step_is_never_a_temporary_one() -> None:
    found = [Found(path=Path("/c/10.tmp"), step=10, is_temporary=True), Found(path=Path("/c/a5"), step=5)]

    assert path_of_step(found, 10, Path("/c/default")) == Path("/c/a10")
    assert path_of_step(found[:1], 10, Path("/c/default")) == Path("/c/default")
