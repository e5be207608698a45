"""The job dies at one operation of its storage: between two writes of a save, in the last save of the grace, while it clears away."""

from harness.scenario import Injection, Scenario, Victim
from harness.scenario.expectations import GraceConduct, RanksAgree, ResumesFromNewestDurable, SameResult
from harness.scenario.faults import EndGrace, Kill, Terminate
from harness.scenario.triggers import AtMarker, AtOperation, AtStep
from scenarios.jobs import LINEAR, LINEAR_RANKS
from scenarios.promises import recovers

TEMPORARY, ASIDE = "step_*.tmp-*", "step_*-old.tmp-*"
"""How the linear job calls a checkpoint that is not committed, and one that is being removed."""


def _killed(name: str, why: str, at: AtOperation, *, tags: tuple[str, ...] = ()) -> Scenario:
    return Scenario(
        name=name,
        why=why,
        workload=LINEAR,
        injections=(Injection(fault=Kill(), at=at),),
        expects=(*recovers(attempts_max=2), SameResult()),
        tags=tags,
    )


IN_A_SAVE = (
    _killed(
        "sigkill-between-the-write-and-the-sync-of-a-file-leaves-no-step-that-is-picked",
        "case 12: the bytes are there, and nobody has waited for the storage to have them",
        AtOperation(operation="write", path=f"{TEMPORARY}/state.json", after="save.begin", after_nth=2),
        tags=("case-12",),
    ),
    _killed(
        "sigkill-before-the-rename-that-commits-a-save-resumes-from-the-save-before-it",
        "case 9: all is written and nothing is committed",
        AtOperation(operation="rename", path=TEMPORARY, after="save.begin", after_nth=2, when="before"),
        tags=("case-9",),
    ),
    _killed(
        "sigkill-after-the-rename-that-commits-a-save-keeps-the-step-or-the-one-before-it",
        "case 13: durable first, acknowledged later; between the two the step may count, and must be whole if it does",
        AtOperation(operation="rename", path=TEMPORARY, after="save.begin", after_nth=2),
        tags=("case-13",),
    ),
    _killed(
        "sigkill-before-latest-is-replaced-costs-nothing-that-was-committed",
        "case 13: a pointer is a hint, and must not be what recovery hangs on",
        AtOperation(operation="rename", path="latest.tmp-*", after="save.begin", after_nth=2, when="before"),
        tags=("case-13",),
    ),
)

IN_GARBAGE_COLLECTION = _killed(
    "sigkill-between-two-removals-of-an-old-step-leaves-half-a-step-that-is-not-picked",
    "case 13: half of an old checkpoint must look like none",
    AtOperation(operation="unlink", path=f"{ASIDE}/state.json", after="gc.begin", after_nth=3),
    tags=("case-13",),
)

WHILE_CLEARING_AWAY = Scenario(
    name="sigkill-while-recovery-clears-away-a-stale-temporary-is-recovered-from",
    why="recovery writes too: it takes the directory over and removes what the death before it has left",
    workload=LINEAR,
    injections=(
        Injection(fault=Kill(), at=AtOperation(operation="rename", path=TEMPORARY, after="save.begin", after_nth=2, when="before")),
        Injection(fault=Kill(), at=AtOperation(operation="unlink", path=f"{TEMPORARY}/state.json"), attempts=(1,), name="in-recovery"),
    ),
    expects=(*recovers(attempts_max=3), SameResult()),
)

FIRST_SAVE_AFTER_RESUME = Scenario(
    name="sigkill-at-a-write-of-the-first-save-after-a-resume-still-resumes",
    why="case 9: the step that was being saved is saved again, over what was left of it",
    workload=LINEAR,
    injections=(
        Injection(fault=Kill(), at=AtOperation(operation="write", path=f"{TEMPORARY}/manifest.json", after="save.begin", after_nth=2)),
        Injection(
            fault=Kill(),
            at=AtOperation(operation="write", path=f"{TEMPORARY}/manifest.json", after="save.begin"),
            attempts=(1,),
            name="again",
        ),
    ),
    expects=(*recovers(attempts_max=3), SameResult()),
    tags=("case-9",),
)

LAST_SAVES = (
    AtOperation(operation="create", path=f"{TEMPORARY}/state.json", after="sigterm"),
    AtOperation(operation="sync", path=f"{TEMPORARY}/manifest.json", after="sigterm", when="before"),
    AtOperation(operation="rename", path="latest.tmp-*", after="sigterm"),
)
"""Three moments of the save that a SIGTERM asks for."""

GRACE_ENDS = Scenario(
    name="a-grace-that-ends-anywhere-in-the-last-save-costs-no-more-than-one-interval",
    why="the Cloud Run guide: ten seconds, then SIGKILL, however far the last save has come",
    workload=LINEAR,
    injections=tuple(
        injection
        for attempt, at in enumerate(LAST_SAVES)
        for injection in (
            Injection(fault=Terminate(), at=AtMarker(event="step", nth=7), attempts=(attempt,), name=f"notice-{attempt}"),
            Injection(fault=EndGrace(), at=at, attempts=(attempt,), name=f"end-{attempt}"),
        )
    ),
    expects=(*recovers(attempts_max=4), SameResult()),
    tags=("cloud-run-guide",),
)

SECOND_NOTICE = Scenario(
    name="a-second-sigterm-in-the-last-save-does-not-break-it-off",
    why="case 31: who sent the first one may send it again, and a handler that begins anew, or raises, loses the save",
    workload=LINEAR,
    injections=(
        Injection(fault=Terminate(), at=AtStep(step=8)),
        Injection(fault=Terminate(), at=AtOperation(operation="write", path=f"{TEMPORARY}/state.json", after="sigterm"), name="again"),
    ),
    expects=(
        *(promise for promise in recovers(attempts_max=2) if not isinstance(promise, ResumesFromNewestDurable)),
        ResumesFromNewestDurable(lost_steps_max=5, lost_steps_after_sigterm_max=0),
        GraceConduct(margin_s_min=5.0),
        SameResult(),
    ),
    tags=("case-31",),
)

ONE_RANK_OF_TWO = Scenario(
    name="the-death-of-one-rank-while-another-commits-a-save-costs-no-committed-step",
    why="finding 7: a gang dies at once and not at the same operation",
    workload=LINEAR_RANKS,
    injections=(
        Injection(
            fault=Kill(),
            at=AtOperation(operation="rename", path=TEMPORARY, after="save.begin", after_nth=2, when="before"),
            victim=Victim(rank=1),
        ),
    ),
    expects=(*recovers(attempts_max=2), RanksAgree()),
)

SCENARIOS = (
    *IN_A_SAVE,
    IN_GARBAGE_COLLECTION,
    WHILE_CLEARING_AWAY,
    FIRST_SAVE_AFTER_RESUME,
    GRACE_ENDS,
    SECOND_NOTICE,
    ONE_RANK_OF_TWO,
)
