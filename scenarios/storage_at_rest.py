"""Checkpoints are damaged between two attempts; a right job notices and falls back, and never loads what was not saved."""

from harness.scenario import Fault, Injection, Scenario
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExactlyOnceData,
    IntactCheckpoints,
    MakesProgress,
    ResumesFromNewestDurable,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import AddEmptyStep, AddStaleTemporary, DeletePath, FlipByte, TearRename, TruncateFile
from harness.scenario.faults import Kill as KillProcess
from harness.scenario.triggers import AtStep, OnEffect
from scenarios.jobs import LINEAR

FALLS_BACK = (
    Completes(),
    IntactCheckpoints(),
    ResumesFromNewestDurable(lost_steps_max=10),
    BitExactResume(),
    ExactlyOnceData(),
    WithinRetries(attempts_max=2),
    SavesAtCadence(every=5),
    MakesProgress(),
)
"""One interval more than without damage: the newest checkpoint is lost, the one before it must serve."""


def _damaged(name: str, why: str, fault: Fault, tags: tuple[str, ...] = ()) -> Scenario:
    return Scenario(
        name=name,
        why=why,
        workload=LINEAR,
        injections=(Injection(fault=KillProcess(), at=AtStep(step=18), name="kill"), Injection(fault=fault, at=OnEffect(of="kill"))),
        expects=FALLS_BACK,
        tags=tags,
    )


SCENARIOS = (
    _damaged(
        "a-rename-that-stopped-half-way-is-not-a-checkpoint",
        "case 3: a mounted bucket renames directories object by object",
        TearRename(),
        ("case-3",),
    ),
    _damaged(
        "a-flipped-byte-is-noticed-and-the-older-checkpoint-is-used",
        "finding 4: atomicity is not integrity; case 6: the damaged step is saved over afterwards",
        FlipByte(),
        ("case-6",),
    ),
    _damaged("a-truncated-file-is-noticed-and-the-older-checkpoint-is-used", "case 62: a truncated object", TruncateFile(), ("case-62",)),
    _damaged(
        "an-emptied-file-is-noticed-and-the-older-checkpoint-is-used",
        "case 14: a 0-byte checkpoint",
        TruncateFile(keep_fraction=0.0),
        ("case-14",),
    ),
    _damaged(
        "a-deleted-data-file-is-noticed-and-the-older-checkpoint-is-used",
        "case 69: no such file for a committed step",
        DeletePath(),
        ("case-69",),
    ),
    _damaged(
        "a-checkpoint-without-its-manifest-is-not-a-checkpoint",
        "case 2: copied without its commit file",
        DeletePath(path_class="metadata"),
        ("case-2",),
    ),
    _damaged("a-deleted-step-directory-falls-back-to-the-older-one", "finding 3, on plain directories", DeletePath(path_class="step")),
    _damaged(
        "an-empty-step-directory-is-never-the-latest",
        "finding 4: an empty directory became the latest step",
        AddEmptyStep(),
        ("case-12",),
    ),
    _damaged(
        "a-stale-temporary-blocks-no-later-save",
        "case 9: a stale temporary made a step unsavable for ever",
        AddStaleTemporary(),
        ("case-9",),
    ),
    _damaged(
        "a-damaged-pointer-to-the-latest-is-not-trusted",
        "case 13: the latest link may be ahead of the data",
        TruncateFile(path_class="pointer"),
        ("case-13",),
    ),
)
