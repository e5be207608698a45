"""Conditions on generations, as Google answers them."""

from dataclasses import dataclass

import pytest

from harness.emulator.failures import ApiError
from harness.emulator.storage.preconditions import Preconditions, read_preconditions


@dataclass
class Version:
    generation: int
    metageneration: int


HERE = Version(7, 2)


def status(conditions, current, *, is_read=False):
    try:
        Preconditions(**conditions).check(current, is_read=is_read)
    except ApiError as error:
        return error.http_status
    return 200


@pytest.mark.parametrize(
    ("conditions", "write", "read"),
    [
        ({}, 200, 200),
        ({"generation_match": 7}, 200, 200),
        ({"generation_match": 8}, 412, 412),
        ({"generation_match": 0}, 412, 412),
        ({"generation_not_match": 7}, 412, 304),
        ({"generation_not_match": 8}, 200, 200),
        ({"generation_not_match": 0}, 200, 200),
        ({"metageneration_match": 2}, 200, 200),
        ({"metageneration_match": 1}, 412, 412),
        ({"metageneration_not_match": 2}, 412, 304),
        ({"metageneration_not_match": 1}, 200, 200),
        ({"generation_match": 7, "metageneration_match": 1}, 412, 412),
        ({"generation_match": 8, "generation_not_match": 7}, 412, 412),
    ],
)
def test_a_condition_holds_or_is_answered_by_its_status(conditions, write, read):
    assert status(conditions, HERE) == write
    assert status(conditions, HERE, is_read=True) == read


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"generation_match": 0}, 200),
        ({"generation_match": 7}, 412),
        ({"generation_not_match": 0}, 412),
        ({"generation_not_match": 7}, 200),
        ({"metageneration_match": 1}, 412),
        ({"metageneration_not_match": 1}, 200),
    ],
)
def test_what_is_not_there_has_generation_zero_and_no_metageneration(conditions, expected):
    assert status(conditions, None) == expected


def test_conditions_are_read_from_their_parameters():
    query = {"ifGenerationMatch": "0", "ifMetagenerationNotMatch": "3", "ifSourceGenerationMatch": "9"}

    assert read_preconditions(lambda name: query.get(name, "")) == Preconditions(generation_match=0, metageneration_not_match=3)
    assert read_preconditions(lambda name: query.get(name, ""), source=True) == Preconditions(generation_match=9)


@pytest.mark.parametrize("text", ["x", "1.5", "--1", "٣", "9" * 30, " 1"])
def test_a_condition_that_is_no_number_is_refused(text):
    with pytest.raises(ApiError, match="ifGenerationMatch") as refused:
        read_preconditions(lambda name: {"ifGenerationMatch": text}.get(name, ""))
    assert refused.value.http_status == 400
