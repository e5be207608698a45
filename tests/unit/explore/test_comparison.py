"""Two uninterrupted runs, compared."""

import pytest

from harness.explore.comparison import advice_on, difference_between
from harness.explore.judgement import Recovery, SaveSeen

RUN = Recovery(exit_code=0, final_step=4, result="a" * 64, digests={2: {"w": "x"}, 4: {"w": "y"}}, done=True)


def changed(**fields: object) -> Recovery:
    return Recovery(**{**{name: getattr(RUN, name) for name in RUN.__struct_fields__}, **fields})


def test_two_that_are_alike_differ_in_nothing() -> None:
    assert difference_between(RUN, changed(seconds=9.0, detail="another")) == ""


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (changed(exit_code=3), "without the recorder it failed with exit code 3"),
        (changed(result="b" * 64), "results aaaaaaaaaaaaaaaa and bbbbbbbbbbbbbbbb"),
        (changed(result=""), "and missing"),
        (changed(final_step=5), "end at step 4 and at step 5"),
        (changed(digests={2: {"w": "x"}, 4: {"w": "z"}}), "differ in w after step 4"),
        (changed(digests={2: {"w": "x"}}), "only one of them says that it did steps 4"),
        (changed(saves=(SaveSeen(step=4),)), "only one of them says that it saved steps 4"),
        (changed(done=False), "only one of them says that it is done"),
    ],
)
def test_what_differs_is_named(second: Recovery, says: str) -> None:
    assert says in difference_between(RUN, second)


def test_what_only_one_of_them_tells_is_no_difference() -> None:
    assert difference_between(RUN, changed(digests={2: {"w": "x", "rng": "1"}, 4: {}}, final_step=-1)) == ""


def test_a_job_that_does_not_repeat_itself_is_told_what_to_do_and_one_that_fails_is_not() -> None:
    assert "fix its seeds" in advice_on(difference_between(RUN, changed(result="b" * 64)))
    assert "in whole lines" in advice_on(difference_between(RUN, changed(done=False)))
    assert "--result" in advice_on(difference_between(RUN, changed(digests={2: {"w": "z"}, 4: {}})))
    assert advice_on(difference_between(RUN, changed(exit_code=3))) == advice_on("") == ""
