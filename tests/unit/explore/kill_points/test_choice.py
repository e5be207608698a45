"""Which kill points are tests, and how they are called."""

import pytest

from harness.explore.kill_points.choice import Moment, choose, find_named, kinds_left
from harness.explore.states import KillPoint


def moment(save: int, operation: str = "write", nth: int = 1, part: str = "", path: str = "step_*/data") -> Moment:
    point = KillPoint(marker="save.begin", marker_nth=save, operation=operation, path_class=path, nth=nth, part=part)
    return Moment(model="posix", scope="process", point=point, phase="save")


def word(name: str, nth: int) -> Moment:
    point = KillPoint(marker=name, marker_nth=nth, operation="", path_class="", nth=0)
    return Moment(model="posix-weak", scope="node", point=point, phase="step")


SAVES = [moment(save, operation) for save in range(1, 9) for operation in ("create", "write", "rename")]


def ids(moments: list[Moment], mode, seed: int = 0) -> list[str]:
    return [test.id for test in choose("job", moments, mode, seed=seed)]


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (word("start", 0), "job:posix-weak:node:start"),
        (word("save.end", 3), "job:posix-weak:node:save.end:3"),
        (moment(2, nth=4), "job:posix:process:save.begin:2:write:step_*/data:4"),
        (moment(2, operation="sync", path=""), "job:posix:process:save.begin:2:sync:1"),
        (moment(1, path="é[1] %\\\udcff.json"), "job:posix:process:save.begin:1:write:%C3%A9[1]%20%25%5C%FF.json:1"),
        (moment(1, part="object 3 of 14"), "job:posix:process:save.begin:1:write:step_*/data:1:object-3-of-14"),
    ],
)
def test_a_name_is_the_address_of_the_moment(place, name) -> None:
    assert ids([place], "each") == [name]


def test_a_name_that_is_given_back_is_found_whatever_the_files_are_called() -> None:
    odd = moment(1, path="é[1].json")
    (name,) = ids([odd], "each")

    assert name.isascii()
    assert name.isprintable()
    assert [test.moments for test in find_named("job", [odd, *SAVES], [name], seed=0)] == [(odd,)]


def test_different_kill_points_have_different_names() -> None:
    assert len(set(ids([*SAVES, moment(1, nth=2), word("save.end", 1)], "each"))) == len(SAVES) + 2


def test_a_sample_has_one_of_each_kind_in_the_order_of_the_recording() -> None:
    drawn = [test.moments[0] for test in choose("job", SAVES, "sample", seed=0)]

    assert sorted(each.point.operation for each in drawn) == ["create", "rename", "write"]
    assert drawn == [each for each in SAVES if each in drawn]


def test_the_seed_decides_which_save_a_sample_is_of() -> None:
    assert ids(SAVES, "sample", seed=3) == ids(SAVES, "sample", seed=3)
    assert len({tuple(ids(SAVES, "sample", seed=seed)) for seed in range(8)}) > 1


def test_what_is_drawn_of_a_kind_hangs_on_no_other() -> None:
    more = [*SAVES, *(moment(save, "chmod") for save in range(1, 9))]

    assert set(ids(SAVES, "sample")) < set(ids(more, "sample"))


def test_the_parts_of_an_operation_are_kinds_of_their_own() -> None:
    assert len(ids([moment(1, part="half"), moment(1, part="zeros")], "sample")) == 2


def test_a_cell_has_all_that_was_drawn_of_its_phase() -> None:
    (saving, stepping) = choose("job", [*SAVES, word("save.end", 1), word("save.end", 2)], "cells", seed=0)

    assert (saving.id, len(saving.moments)) == ("job:posix:process:save", 3)
    assert (stepping.id, len(stepping.moments)) == ("job:posix-weak:node:step", 1)


def test_a_name_finds_its_kill_point_though_it_is_in_no_sample() -> None:
    every = ids(SAVES, "each")

    found = find_named("job", SAVES, [*every, "job:posix:process:save", "job:posix:process:gone:1"], seed=0)

    assert [test.id for test in found] == [*every, "job:posix:process:save"]


def test_a_kind_is_left_until_one_of_it_was_judged() -> None:
    assert kinds_left(SAVES, []) == 3
    assert kinds_left(SAVES, SAVES[:2]) == 1
    assert kinds_left(SAVES, SAVES[-3:]) == 0
