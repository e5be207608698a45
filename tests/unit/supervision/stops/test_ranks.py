"""Whose an operation is."""

from harness.supervision.stops.ranks import ANCESTORS_MAX, Ranks

ENVIRONMENTS = {10: b"PATH=/bin\0RANK=1\0", 11: b"RANK=2\0", 12: b"LOCAL_RANK=5\0", 13: b"RANK=all\0"}


def read(process: int) -> bytes:
    return ENVIRONMENTS.get(process, b"")


def parent(process: int) -> int:
    if process <= 1:
        raise ProcessLookupError
    return {12: 10, 13: 11, 14: 13}.get(process, 1)


def test_what_a_process_says_of_itself_comes_first():
    ranks = Ranks(read, parent)
    ranks.say(10, 7)
    assert ranks.of(10) == 7


def test_else_its_environment_says_it():
    assert Ranks(read, parent).of(10) == 1


def test_else_it_is_of_the_rank_that_it_comes_from():
    ranks = Ranks(read, parent)
    ranks.say(11, 4)
    assert [ranks.of(process) for process in (12, 13, 14)] == [1, 4, 4]


def test_who_is_known_is_not_asked_again_until_somebody_says_another_rank():
    asked: list[int] = []

    def ask(process: int) -> bytes:
        asked.append(process)
        return b""

    ranks = Ranks(ask, lambda _process: 12)
    ranks.say(12, 3)
    assert [ranks.of(14), ranks.of(14)] == [3, 3]
    assert asked == [14]
    ranks.say(12, 3)
    assert ranks.of(14) == 3
    assert asked == [14]
    ranks.say(12, 4)
    assert ranks.of(14) == 4


def test_a_job_of_one_is_rank_zero():
    assert Ranks(read, parent).of(99) == 0


def test_a_process_that_is_gone_is_rank_zero():
    def gone(_process: int) -> bytes:
        raise FileNotFoundError

    assert Ranks(gone, parent).of(10) == 0


def test_it_looks_no_further_than_any_job_is_deep():
    seen: list[int] = []

    def next_one(process: int) -> int:
        seen.append(process)
        return process + 1

    assert Ranks(lambda _process: b"", next_one).of(100) == 0
    assert len(seen) == ANCESTORS_MAX
