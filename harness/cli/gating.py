"""A gate as it runs: every scenario with every seed, measured as it ends, written after each round, within a budget."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from harness.cli.batch import Batch
from harness.cli.catalogue import by_cost
from harness.cli.exits import EXIT_INTERRUPTED
from harness.cli.running import refused_code, run_work, work_of
from harness.cli.worker import Finished, Refused
from harness.clock import Clock
from harness.errors import StoreError
from harness.gate.budget import Budget
from harness.gate.document import GateConfig
from harness.gate.judging import judge
from harness.gate.measuring import all_missing, measure
from harness.gate.outcome import GateOutcome, write_outcome
from harness.gate.result import Accepted, Measured, MeasuredRun, MeasuredScenario, digest_of
from harness.gate.standards import Standards, standards_of
from harness.report.record import read_record
from harness.scenario import Scenario
from harness.store import RunDirectory, RunStore
from harness.verdict import Outcome, counted

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate that is asked for.

    Attributes:
        config: Its ``gate.toml``.
        target: Where.
        place: The same as it stands in results: an emulator is not the project that it plays.
        chosen: What is run.
        accepted: What it is compared with.
    """

    config: GateConfig
    target: str
    place: str
    chosen: Sequence[Scenario]
    accepted: Accepted | None

    @property
    def standards(self) -> Mapping[str, Standards]:
        """What is asked of each scenario."""
        return {scenario.name: standards_of(self.config, scenario.name) for scenario in self.chosen}

    def judge(self, measured: Measured) -> GateOutcome:
        """Judge what was measured."""
        return GateOutcome(measured=measured, judged=judge(measured, self.standards, self.accepted))

    def read(self, measured: Measured) -> Measured:
        """What an older result says of the scenarios that are asked for now; of one that it does not have, or had otherwise, nothing."""
        return replace(measured, scenarios=tuple(_found_in(measured, due_of(self.config, scenario)) for scenario in self.chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How runs are made: see ``harness.cli.running.work_of``.

    Attributes:
        gpus: What each scenario may hold at once, by name.
        surroundings: What the times of runs depend on: see ``harness.gate.result.Measured``.
    """

    root: Path
    runs_dir: Path
    keep: bool
    jobs: int
    as_json: bool
    gpus: Mapping[str, int] = field(default_factory=dict)
    surroundings: Mapping[str, str] = field(default_factory=dict)


class Course:
    """Runs a gate.

    Args:
        gate: Which.
        ways: How.
        clock: The time.
    """

    def __init__(self, gate: Gate, ways: Ways, clock: Clock) -> None:
        self._gate, self._ways, self._clock = gate, ways, clock
        self._budget = Budget(allowed=gate.config.budget, clock=clock, gpus=ways.gpus, began_s=clock.monotonic_s())
        self._made_at = clock.utc().isoformat(timespec="seconds")
        self._runs: dict[str, list[MeasuredRun]] = {scenario.name: [] for scenario in gate.chosen}
        self._commit, self._versions = "", dict[str, str]()
        self._stopped = ""
        self._refused_code = 0
        self.failure: StoreError | None = None
        self.directory = RunStore(ways.runs_dir, clock).create_gate()

    def run(self) -> GateOutcome:
        """Run all rounds, or until the budget is used up or we are interrupted; what was measured is written in any case.

        What cannot be written is in ``failure`` then: what was measured is judged all the same.
        """
        try:
            self._write()
            for seed in self._gate.config.runs_of_each():
                self._stopped = self._stopped or self._budget.exhausted({})
                if self._stopped:
                    break
                self._run_round(seed)
                self._write()
        except KeyboardInterrupt:
            self._stopped = INTERRUPTED
        except StoreError as error:
            self.failure, self._stopped = error, f"{error}"
            return self._gate.judge(self._so_far())
        try:
            return self._write()
        except StoreError as error:
            self.failure = error
            return self._gate.judge(self._so_far())

    @property
    def exit_code(self) -> int:
        """Of what could not be run, or of an interrupt; 0: the judgement decides."""
        return EXIT_INTERRUPTED if self._stopped == INTERRUPTED else self._refused_code

    def _run_round(self, seed: int) -> None:
        ways = self._ways
        work = work_of(
            by_cost(self._gate.chosen), target=self._gate.target, seed=seed, keep=ways.keep, root=ways.root, runs_dir=ways.runs_dir
        )
        ran = run_work(work, jobs=ways.jobs, runs_dir=ways.runs_dir, as_json=ways.as_json, enough=self._budget.exhausted)
        self._budget.charge(ran.batch.lasted_s)
        if ran.batch.is_interrupted:
            self._stopped = ran.batch.ended_because or INTERRUPTED
        for message in ran.results:
            self._take_in(message, seed, ran.batch)
        ran.console.print("\n".join(ran.lines()), highlight=False, soft_wrap=True)

    def _take_in(self, message: Finished | Refused, seed: int, batch: Batch) -> None:
        if isinstance(message, Finished):
            self._runs[message.scenario].append(self._measured(message, seed))
        elif not (batch.is_interrupted and message.exit_code == EXIT_INTERRUPTED):
            self._refused_code = max(self._refused_code, refused_code([message]))
            figures = dict(all_missing("it could not be run to its end"))
            run = MeasuredRun(seed=seed, verdict=Outcome.UNKNOWN, figures=figures, reasons=(message.message,), run=message.directory)
            self._runs[message.scenario].append(run)

    def _measured(self, message: Finished, seed: int) -> MeasuredRun:
        record = read_record(RunDirectory(Path(message.summary.run)))
        if record.opened is not None:
            self._commit, self._versions = record.opened.commit, dict(record.opened.versions)
        outcome = Outcome(message.summary.outcome)
        reasons = message.summary.reasons if outcome is not Outcome.VALID else ()
        return MeasuredRun(seed=seed, verdict=outcome, figures=dict(measure(record)), reasons=reasons, run=message.summary.run)

    def _write(self) -> GateOutcome:
        outcome = self._gate.judge(self._so_far())
        write_outcome(self.directory, outcome)
        return outcome

    def _so_far(self) -> Measured:
        scenarios = []
        for scenario in self._gate.chosen:
            due, runs = due_of(self._gate.config, scenario), tuple(self._runs[scenario.name])
            undone = "" if len(runs) == len(due.seeds) else self._stopped or "the gate was ended before"
            scenarios.append(MeasuredScenario(name=due.name, digest=due.digest, seeds=due.seeds, runs=runs, undone=undone))
        is_whole = all(not scenario.undone for scenario in scenarios)
        return Measured(
            target=self._gate.place,
            made_at=self._made_at,
            scenarios=tuple(scenarios),
            commit=self._commit,
            versions=self._versions,
            surroundings=dict(self._ways.surroundings),
            duration_s=round(self._budget.duration_s, 3),
            gpu_hours=round(self._budget.gpu_hours, 6),
            stopped="" if is_whole else self._stopped or "the gate was ended before",
        )


def due_of(config: GateConfig, scenario: Scenario) -> MeasuredScenario:
    """A scenario and the runs that are due, none of them made."""
    return MeasuredScenario(name=scenario.name, digest=digest_of(scenario), seeds=config.runs_of_each())


def _found_in(measured: Measured, due: MeasuredScenario) -> MeasuredScenario:
    """The runs of an older result with seeds that are due, all of them: the worst counts. Those of other seeds prove nothing here."""
    had = next((scenario for scenario in measured.scenarios if scenario.name == due.name), None)
    if had is None:
        return replace(due, undone="the result does not have it")
    if had.digest != due.digest:
        return replace(due, undone="the result is of another scenario of that name")
    kept = tuple(seed for seed in had.seeds if seed in due.seeds)
    lacking = Counter(due.seeds) - Counter(kept)
    runs = tuple(run for run in had.runs if run.seed in due.seeds)
    told = ", ".join(f"{counted(count, 'run')} of seed {seed}" for seed, count in sorted(lacking.items()))
    undone = "; ".join(part for part in (had.undone, f"the result lacks {told}" if lacking else "") if part)
    return replace(had, seeds=(*kept, *lacking.elements()), runs=runs, undone=undone)
