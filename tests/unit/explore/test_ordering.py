"""An order in which early ones tell most."""

from hypothesis import given
from hypothesis import strategies as st

from harness.explore.ordering import in_turns, spread


@given(st.lists(st.integers(), unique=True))
def test_nothing_is_lost_and_nothing_comes_twice(items: list[int]) -> None:
    assert sorted(spread(items)) == sorted(items)


@given(st.integers(2, 200))
def test_the_first_half_is_spread_over_all(number: int) -> None:
    early = sorted(spread(range(number))[: (number + 1) // 2])

    assert max(after - before for before, after in zip([-1, *early], [*early, number], strict=True)) <= 4


@given(st.dictionaries(st.integers(), st.lists(st.integers())))
def test_each_group_has_its_turn_before_any_has_its_second(groups: dict[int, list[int]]) -> None:
    tagged = {name: [(name, at) for at in range(len(group))] for name, group in groups.items()}

    order = list(in_turns(tagged))

    assert sorted(order) == sorted(item for group in tagged.values() for item in group)
    assert [at for _, at in order] == sorted(at for _, at in order)
