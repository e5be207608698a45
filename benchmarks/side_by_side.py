"""``harness explore`` and ``ckpt-chaos`` of PyPI on the same jobs, in turns: kill points, wrong jobs found, seconds for a kill point."""

from collections.abc import Mapping, Sequence

from benchmarks.answer import Answer, Says
from benchmarks.ckpt_chaos import crash, version
from benchmarks.exploration import explore
from benchmarks.figure import Effort, Figure, Goal, Measured, Row
from benchmarks.saving_jobs import JOBS, Job, surroundings

WORKERS = 2
"""At once, for both."""

QUICK_JOBS, QUICK_BUDGET = 3, "10s"

POINTS = Row(
    name="kill-points",
    what="kill points judged, times those of `ckpt-chaos` on the same job",
    goal=Goal(limit=1.0, kind="at least"),
    decimals=1,
)
FOUND = Row(
    name="wrong-jobs",
    what="wrong jobs found, more than by `ckpt-chaos`",
    unit="more",
    goal=Goal(limit=1.0, kind="at least"),
    decimals=0,
)
SECONDS = Row(name="kill-point-time", what="seconds for a kill point, over those of `ckpt-chaos`", goal=Goal(limit=1.0))

HEAD = ("job", "it is", "kill points", "ckpt-chaos", "says", "ckpt-chaos", "s a kill point", "ckpt-chaos")

Pair = tuple[Answer, Answer]
"""Ours, theirs."""


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Take one job after the other, each by both; every second one by the other tool first."""
    jobs = JOBS[:QUICK_JOBS] if effort.is_quick else JOBS
    with surroundings() as environment:
        pairs = {job: _both(job, environment, effort, ours_first=number % 2 == 0) for number, job in enumerate(jobs)}
    seen = [(ours, theirs) for ours, theirs in pairs.values() if ours.kill_points and theirs.kill_points]
    wrong = [job for job in jobs if job.nature != "right"]
    found, found_by_other = (sum(pairs[job][tool].says == "wrong" for job in wrong) for tool in (0, 1))
    return {
        POINTS.name: Measured([ours.kill_points / theirs.kill_points for ours, theirs in seen], details=table_of(pairs)),
        FOUND.name: Measured([found - found_by_other], f"of {len(wrong)} we find {found}, `ckpt-chaos` {found_by_other}"),
        SECONDS.name: Measured([ours.seconds_each / theirs.seconds_each for ours, theirs in seen], "a round is a job"),
    }


def _both(job: Job, environment: Mapping[str, str], effort: Effort, *, ours_first: bool) -> Pair:
    def ours() -> Answer:
        return explore(job, environment, jobs=WORKERS, **({"budget": QUICK_BUDGET} if effort.is_quick else {}))

    if ours_first:
        return ours(), crash(job, environment, jobs=WORKERS)
    theirs = crash(job, environment, jobs=WORKERS)
    return ours(), theirs


def table_of(pairs: Mapping[Job, Pair]) -> str:
    """A line for each job; what is said wrongly, or not said of what can be seen, in bold."""
    lines: list[Sequence[str]] = [HEAD, ["---"] * len(HEAD)]
    for job, (ours, theirs) in pairs.items():
        points = f"{ours.kill_points} ({ours.in_recovery} in recovery)" if ours.in_recovery else str(ours.kill_points)
        said = (_said(job, ours.says), _said(job, theirs.says))
        each = (_seconds(ours), _seconds(theirs))
        lines.append((job.name.replace("_", " "), job.nature, points, str(theirs.kill_points), *said, *each))
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"## Side by side with ckpt-chaos {version()}\n\n{table}\n"


def _said(job: Job, says: Says) -> str:
    due = {"right": ("right",), "wrong": ("wrong",), "hidden": ("unknown", "wrong")}[job.nature]
    return says if says in due else f"**{says}**"


def _seconds(answer: Answer) -> str:
    return f"{answer.seconds_each:.3f}" if answer.kill_points else "–"


FIGURE = Figure(rows=(POINTS, FOUND, SECONDS), measure=measure)
