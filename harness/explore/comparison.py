"""Two uninterrupted runs of a job, compared: one that does not repeat itself proves nothing. Pure."""

from harness.explore.judgement import Recovery
from harness.explore.judging.case import end_of, first_difference
from harness.explore.judging.wording import how_it_ended, steps_in_words

TWO_RUNS = "two uninterrupted runs"
"""How each sentence on a job that does not repeat itself begins."""

UNLIKE = f"{TWO_RUNS} do not say the same"
"""Where one was heard otherwise than the other."""


def advice_on(difference: str) -> str:
    """What helps a job that does not repeat itself; empty where that is not what is wrong."""
    if difference.startswith(UNLIKE):
        return "; let it say the same each time, in whole lines that it flushes"
    helps = "; let it repeat itself: fix its seeds, leave times and paths out of what is compared, or name another file with --result"
    return helps if difference.startswith(TWO_RUNS) else ""


def difference_between(first: Recovery, second: Recovery) -> str:
    """Why two uninterrupted runs of a job prove nothing; empty: they are alike as far as can be seen."""
    if second.exit_code != 0:
        return f"without the recorder {how_it_ended(second).replace('recovery', 'it', 1)}"
    if first.result != second.result:
        results = [each.result[:16] or "missing" for each in (first, second)]
        return f"{TWO_RUNS} have the results {results[0]} and {results[1]}"
    if min(end_of(first), end_of(second)) >= 0 and end_of(first) != end_of(second):
        return f"{TWO_RUNS} end at step {end_of(first)} and at step {end_of(second)}"
    for step in sorted(first.digests.keys() & second.digests.keys()):
        part = first_difference(first.digests[step], second.digests[step])
        if part:
            return f"{TWO_RUNS} differ in {part} after step {step}"
    return _heard_otherwise(first, second)


def _heard_otherwise(first: Recovery, second: Recovery) -> str:
    """What was heard of one and not of the other: recoveries are heard like the second one, and held against what the first one said."""
    saves = {save.step for save in first.saves} ^ {save.step for save in second.saves}
    for said, steps in (("saved", saves), ("did", first.digests.keys() ^ second.digests.keys())):
        if steps:
            return f"{UNLIKE}: only one of them says that it {said} {steps_in_words(steps)}"
    return f"{UNLIKE}: only one of them says that it is done" if first.done != second.done else ""
