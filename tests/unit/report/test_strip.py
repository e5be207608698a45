"""A strip of operations: few or many, the worst is never hidden."""

from collections import Counter

import pytest

from harness.report.strip import CELLS_MAX, GROUPS_MAX, SHADES, Operation, Strip, strip_of


def operation(number: int, shade: str | None = "valid", *, name: str = "write a", marker: str = "save.begin 1") -> Operation:
    return Operation(number=number, name=name, marker=marker, states=Counter([shade] if shade else []))


def cells(strip: Strip):
    return [cell for group in strip.groups for cell in group.cells]


@pytest.mark.parametrize("number", [1, 10, CELLS_MAX])
def test_where_there_is_room_each_operation_is_a_cell(number):
    strip = strip_of([operation(index) for index in range(1, number + 1)])

    assert (len(cells(strip)), strip.per_cell) == (number, 1)


@pytest.mark.parametrize("number", [CELLS_MAX + 1, 1_000, 100_000])
def test_more_operations_share_cells_in_which_the_worst_wins(number):
    bad = number // 2
    strip = strip_of([operation(index, "invalid" if index == bad else "valid", name=f"write {index}") for index in range(1, number + 1)])

    assert strip.per_cell > 1
    assert len(cells(strip)) <= CELLS_MAX
    (worst,) = [cell for cell in cells(strip) if cell.shade != "valid"]
    assert worst.shade == "invalid"
    assert worst.told.startswith(f"invalid: write {bad}; operations ")


def test_the_worst_of_the_states_that_end_at_an_operation_colours_it():
    for worst in range(len(SHADES)):
        assert Operation(number=1, name="a", marker="b", states=Counter(SHADES[worst:])).shade == SHADES[worst]


def test_where_no_state_ends_nothing_was_judged():
    (only,) = cells(strip_of([operation(1, None)]))

    assert only.shade == "unjudged"
    assert only.told == "not judged: write a; operation 1 of 1, after save.begin 1; no state ends here"


def test_a_cell_tells_its_operation_its_marker_and_its_states():
    states = Counter({"invalid": 2, "valid": 1_000})
    (only,) = cells(strip_of([Operation(number=7, name="rename step_*", marker="save.begin 2", states=states)]))

    assert only.told == "invalid: rename step_*; operation 7 of 7, after save.begin 2; 1,002 states: 2 invalid, 1,000 valid"


def test_the_moment_before_the_first_operation_is_no_operation():
    before = Operation(number=0, name="before the first operation", marker="start", states=Counter(valid=1))

    assert cells(strip_of([before, operation(1)]))[0].told == "valid: before the first operation; 1 state: 1 valid"


def test_cells_stand_in_order_under_what_the_job_had_said():
    markers = ["start", *["save.begin 1"] * 9, *["save.end 1"] * 12, *["save.begin 2"] * 9]
    strip = strip_of([operation(number, marker=marker) for number, marker in enumerate(markers, 1)])

    assert [(group.marker, len(group.cells)) for group in strip.groups] == [
        ("start", 1),
        ("save.begin 1", 9),
        ("save.end 1", 12),
        ("save.begin 2", 9),
    ]
    assert [group.label for group in strip.groups] == ["", "save.begin 1", "save.end 1", "save.begin 2"]
    assert [cell.told.split(";")[1] for cell in cells(strip)] == [
        f" operation {number} of 31, after {marker}" for number, marker in enumerate(markers, 1)
    ]


def test_of_very_many_markers_neighbours_share_a_label():
    strip = strip_of([operation(number, marker=f"step {number}") for number in range(1, 121)])

    assert len(strip.groups) <= 120 / 2
    assert sum(len(group.cells) for group in strip.groups) == 120
    assert strip.groups[0].label == "step 1 …"
    assert GROUPS_MAX < 120


def test_nothing_recorded_is_an_empty_strip():
    assert strip_of([]).groups == ()
