"""One exploration from beginning to end: the job is recorded, what a crash can leave is enumerated, and recovery from it is judged."""

import contextlib
import itertools
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import BrokenHarnessError, UsageError
from harness.explore.blobs import BlobStore
from harness.explore.campaign import Campaign, Watcher
from harness.explore.conclusion import NOTHING, Missing, conclude
from harness.explore.data_file import DataFile
from harness.explore.executors.local import LocalExecutor
from harness.explore.fixed_place import claimed
from harness.explore.frontier import Frontier
from harness.explore.judging.copies import remove_what_can_be
from harness.explore.judging.trial import DISTURBED
from harness.explore.judging.wording import how_it_ended
from harness.explore.moments import timeline
from harness.explore.options import Explored, Options
from harness.explore.ranks import RANKS
from harness.explore.recipe import Executor, Recipe, Tried
from harness.explore.recording import recorder_available
from harness.explore.recoveries import Recoveries
from harness.explore.rehearsal import EMPTY, RECORD_S_MAX, Recorder, Rehearsal, rehearse
from harness.explore.relapses import Origin, Site, Unrecorded
from harness.explore.replay import Replay
from harness.explore.result import Exploration, Recorded, Strip, Surface
from harness.explore.subject import Subject
from harness.explore.surroundings import digests_of
from harness.explore.trials_file import Trial, TrialsFile
from harness.store import RunDirectory
from harness.targets.local.processes import end_processes
from harness.targets.local.scratch import make_scratch_directory


class Explorer:
    """Explores one job in a run directory.

    Args:
        subject: The job.
        options: How.
        directory: The run directory.
        name: Of the run directory, as a person types it.
        run_id: Its id, which all processes carry.
        clock: The machine's.
        watcher: Who is told how it goes.
    """

    def __init__(
        self, subject: Subject, options: Options, *, directory: RunDirectory, name: str, run_id: str, clock: Clock, watcher: Watcher
    ) -> None:
        self._subject, self._options = subject, options
        self._directory, self._name, self._run_id = directory, name, run_id
        self._clock, self._watcher = clock, watcher
        self._is_interrupted, self._is_in_one_place = False, bool(subject.recipe.checkpoints)
        self._judged_s = 0.0

    def explore(self) -> Explored:
        """Do it.

        Raises:
            UsageError: When the job does not come through uninterrupted.
            BrokenHarnessError: When something of ours breaks.
        """
        began_s = self._clock.monotonic_s()
        scratch = make_scratch_directory(self._run_id)
        try:
            with claimed(self._subject.recipe.checkpoints), contextlib.closing(self._executor()) as executor:
                exploration = self._explore(executor, scratch)
                judge = self._judge_in_words(executor.replaced)
        except OSError as error:
            raise BrokenHarnessError(f"the exploration in {self._directory.path} broke: {error}") from error
        finally:
            end_processes(self._run_id, self._clock)
            remove_what_can_be(scratch)
        seconds = self._clock.monotonic_s() - began_s
        exploration = msgspec.structs.replace(exploration, seconds=seconds, judged_seconds=self._judged_s, judge=judge)
        return Explored(exploration=exploration, is_interrupted=self._is_interrupted)

    def _explore(self, executor: Executor, scratch: Path) -> Exploration:
        why_not = recorder_available()
        if why_not:
            return self._explore_blindly(executor, why_not)
        recorder = Recorder(scratch, self._directory.recorded, self._run_id)
        is_here = self._options.executor == "local"
        rehearsal = rehearse(self._subject, recorder, lambda recipe: self._try_bare(executor, recipe), is_here=is_here)
        self._is_in_one_place = bool(rehearsal.recipe.checkpoints)
        self._directory.write(self._directory.recipe_path, msgspec.json.encode(rehearsal.recipe))
        self._directory.write(self._directory.surroundings_path, msgspec.json.encode(digests_of(os.environ)))
        self._watcher.recorded(rehearsal.recorded)
        judged = _Judged() if rehearsal.recorded.blind else self._judge(rehearsal, executor, scratch)
        return self._concluded(rehearsal.recorded, judged, timeline(rehearsal.replayed).strip)

    def _explore_blindly(self, executor: Executor, why_not: str) -> Exploration:
        """Where operations cannot be seen, the job is run once, and nothing is proved."""
        recipe = msgspec.structs.replace(self._subject.recipe, speaks_protocol=self._subject.speaks_protocol is not False)
        tried = self._try_bare(executor, recipe).first
        if tried is None or tried.exit_code != 0:
            raise UsageError(f"the job does not come through when it is left alone: {how_it_ended(tried) if tried else 'it was lost'}")
        recorded = Recorded(seconds=tried.seconds, operations=0, saves=len(tried.saves), is_exact=False, why_not=why_not)
        self._watcher.recorded(recorded)
        return self._concluded(recorded, _Judged(), ())

    def _concluded(self, recorded: Recorded, judged: "_Judged", operations: tuple[Strip, ...]) -> Exploration:
        outcome, reasons = conclude(recorded, judged.surfaces, missing=judged.missing, is_interrupted=self._is_interrupted)
        return Exploration(
            workload=self._subject.name,
            command=self._subject.recipe.command,
            outcome=outcome,
            reasons=reasons,
            recorded=recorded,
            surfaces=judged.surfaces,
            operations=operations,
            budget=str(self._options.budget),
            recoveries_cut=judged.recoveries_cut,
        )

    def _try_bare(self, executor: Executor, recipe: Recipe) -> Tried:
        end_processes(self._run_id, self._clock)  # what the recorded job has left
        deadline_s = self._clock.monotonic_s() + RECORD_S_MAX
        return next(iter(executor.try_all([EMPTY], recipe, deadline_s=deadline_s)))

    def _judge(self, rehearsal: Rehearsal, executor: Executor, scratch: Path) -> "_Judged":
        """Judge as far as is granted."""
        blobs = BlobStore(self._directory.blobs)
        with contextlib.ExitStack() as stack:
            data = stack.enter_context(DataFile(rehearsal.replayed.log.data_path))
            trials = stack.enter_context(TrialsFile(self._directory.tried_path))
            trials.keep(Trial(task=EMPTY, tried=rehearsal.golden))
            budget = self._options.budget
            campaign = Campaign(executor, rehearsal.recipe, trials, blobs, budget=budget, clock=self._clock, watcher=self._watcher)
            frontier = Frontier(rehearsal.replayed, data, rehearsal.expected(data), self._options.surfaces)
            site = Site(directory=self._directory.recoveries, scratch=scratch, run_id=self._run_id, blobs=blobs)
            recipe = rehearsal.recipe
            recoveries = Recoveries(campaign, recipe, lambda origin: self._record(site, origin, recipe), stack=stack, clock=self._clock)
            try:
                campaign.judge(frontier, data, rank=0, deadline_s=campaign.deadline_s(0))
                recoveries.judge(frontier)
                judged = ((frontier, data), *((relapse.frontier, relapse.data) for relapse in recoveries.begun))
                for (each, own_data), rank in itertools.product(judged, range(1, RANKS)):
                    campaign.judge(each, own_data, rank=rank, deadline_s=campaign.deadline_s(rank))
            except KeyboardInterrupt:
                self._is_interrupted = True
            self._judged_s = campaign.seconds
            frontiers = (frontier, *(relapse.frontier for relapse in recoveries.begun))
            missing = Missing(
                states=sum(each.unjudged_of(0) for each in frontiers),
                is_counted=all(each.has_found(0) for each in frontiers),
                recoveries=recoveries.unrecorded,
            )
            if not self._is_interrupted:
                campaign.count(*frontiers)
            surfaces = frontier.surfaces(timeline(rehearsal.replayed).strip, run_directory=self._name)
            surfaces += tuple(recoveries.surfaces(run_directory=self._name))
        return _Judged(surfaces, missing, recoveries.cut)

    def _record(self, site: Site, origin: Origin, recipe: Recipe) -> Replay | Unrecorded:
        try:
            return site.record(origin, recipe)
        finally:
            end_processes(self._run_id, self._clock)

    def _executor(self) -> Executor:
        if self._options.executor == "ray":
            from harness.explore.executors.ray import RayExecutor

            return RayExecutor(self._directory.blobs, address=self._options.ray_address, run_id=self._run_id, clock=self._clock)
        return LocalExecutor(self._directory.blobs, jobs=self._jobs, run_id=self._run_id, clock=self._clock)

    @property
    def _jobs(self) -> int:
        return 1 if self._is_in_one_place else self._options.jobs

    def _judge_in_words(self, replaced: Collection[str]) -> str:
        recover, options = self._subject.recipe.recover, self._options
        what = f"{recover} in warm processes" if recover else "the command, run again from each state"
        where = f"on the Ray cluster at {options.ray_address}" if options.executor == "ray" else f"{self._jobs} at a time"
        return f"{what}, {where}" + (f"; {DISTURBED}" if DISTURBED in replaced else "")


@dataclass(frozen=True, slots=True)
class _Judged:
    """What came of judging."""

    surfaces: tuple[Surface, ...] = ()
    missing: Missing = NOTHING
    recoveries_cut: int = 0


def forget(directory: RunDirectory) -> None:
    """Remove what only a replay needs."""
    for path in (directory.blobs, directory.recorded, directory.recoveries):
        shutil.rmtree(path, ignore_errors=True)
    directory.tried_path.unlink(missing_ok=True)
