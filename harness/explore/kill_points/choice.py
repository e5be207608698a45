"""Which kill points of a recorded job are tried, and under which names. Pure.

A name is made of the address of a moment, so it is the same in the next run of the job: never a raw index, never seconds.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Literal, get_args
from urllib.parse import quote

import msgspec

from harness.explore.states import KillPoint, Model, Scope
from harness.scenario.cells import JobPhase

Mode = Literal["each", "sample", "cells"]
"""One test a kill point; one a kind of kill point, drawn by a seed; one a phase of the job's life, of those that were drawn."""

MODES: tuple[Mode, ...] = get_args(Mode)

UNQUOTED = "".join(chr(code) for code in range(ord("!"), ord("~") + 1) if chr(code) not in "%\\")
"""What stands for itself in a name: printable ASCII but the two letters that escape."""

UNSEEN = "recording"
"""Stands for the kill points of a job of which nothing could be seen."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One kill point on one surface.

    Attributes:
        point: Its address.
        phase: The phase of the job's life that it lies in.
    """

    model: Model
    scope: Scope
    point: KillPoint
    phase: JobPhase

    @property
    def kind(self) -> Hashable:
        """What it has in common with those of other saves."""
        point = self.point
        return self.model, self.scope, point.marker, point.operation, point.path_class, point.part


class Moments(msgspec.Struct, frozen=True, kw_only=True):
    """What one test judges.

    Attributes:
        id: Its name.
        job: The job's.
        moments: One kill point, or those of a phase that were drawn.
        refused: Why nothing can be said; then there are none.
    """

    id: str
    job: str
    moments: tuple[Moment, ...] = ()
    refused: str = ""


def choose(job: str, moments: Sequence[Moment], mode: Mode, *, seed: int) -> list[Moments]:
    """The tests of a job, in the order in which the moments come.

    Args:
        job: Its name.
        moments: All of them.
        mode: Which are chosen.
        seed: Draws one of each kind, where not each is tried.
    """
    if mode == "each":
        return [Moments(id=_id(job, moment), job=job, moments=(moment,)) for moment in moments]
    drawn = _drawn(moments, seed)
    if mode == "sample":
        return [Moments(id=_id(job, moment), job=job, moments=(moment,)) for moment in drawn]
    cells: dict[tuple[Model, Scope, JobPhase], list[Moment]] = defaultdict(list)
    for moment in drawn:
        cells[moment.model, moment.scope, moment.phase].append(moment)
    return [Moments(id=":".join((job, *cell)), job=job, moments=tuple(found)) for cell, found in cells.items()]


def find_named(job: str, moments: Sequence[Moment], names: Collection[str], *, seed: int) -> list[Moments]:
    """The tests that have one of some names, whatever the mode."""
    every = [*choose(job, moments, "each", seed=seed), *choose(job, moments, "cells", seed=seed)]
    return [test for test in every if test.id in names]


def kinds_left(moments: Sequence[Moment], judged: Collection[Moment]) -> int:
    """How many kinds of kill points there are of which none was judged."""
    return len({moment.kind for moment in moments} - {moment.kind for moment in judged})


def _drawn(moments: Sequence[Moment], seed: int) -> list[Moment]:
    """One of each kind."""
    kinds: dict[Hashable, list[Moment]] = defaultdict(list)
    for moment in moments:
        kinds[moment.kind].append(moment)
    chosen = {min(alike, key=lambda moment: _lot(moment, seed)) for alike in kinds.values()}
    return [moment for moment in moments if moment in chosen]


def _lot(moment: Moment, seed: int) -> bytes:
    """By its name: what is drawn of one kind hangs on no other, so that a job that does one thing more keeps all other names."""
    return hashlib.sha256(f"{seed} {_id('', moment)}".encode(errors="surrogateescape")).digest()


def _id(job: str, moment: Moment) -> str:
    """Of letters that pytest leaves as they are, so that it can be given back as it is shown: it escapes all but printable ASCII.

    Source: ``_pytest.compat.ascii_escaped``, which also doubles what it escapes with, so that is quoted too.
    """
    return quote(":".join((job, moment.model, moment.scope, *_words(moment.point))), safe=UNQUOTED, errors="surrogateescape")


def _words(point: KillPoint) -> Iterator[str]:
    yield point.marker
    if point.marker_nth:
        yield str(point.marker_nth)
    if point.operation:
        yield from (point.operation, point.path_class, str(point.nth)) if point.path_class else (point.operation, str(point.nth))
    if point.part:
        yield point.part.replace(" ", "-")
