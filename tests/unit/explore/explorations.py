"""Explorations built by hand: a log of operations and words, and what was said of the states that its moments leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import astuple

from harness.explore.judgement import Broken
from harness.explore.result import Exploration, Moment, Recorded, StateResult, Strip, Surface
from harness.explore.states import Cause, KillPoint
from harness.explore.vulnerabilities import find_vulnerabilities
from harness.verdict import Outcome

RUN = "runs/explore/x"

SAYS = {
    "recovers": "exit code 1, ValueError: the file is empty",
    "keeps-what-was-acknowledged": "step 2 was acknowledged, step 0 was restored",
    "keeps-the-last-good-checkpoint": "step 2 was there before recovery and is not after it",
    "restores-what-was-saved": "params of step 2 are not what was saved",
    "completes-as-uninterrupted": "result.json differs from that of the uninterrupted run",
    "saves-at-its-cadence": "no save between step 4 and step 8",
}


@dataclass
class Log:
    """Operations and words in order; indices from 1."""

    strips: list[Strip] = field(default_factory=list)
    marker: str = "start"
    nth: dict[str, int] = field(default_factory=dict)

    def do(self, kind: str, path_class: str) -> int:
        """Add an operation and return its index."""
        index = len(self.strips) + 1
        self.strips.append(
            Strip(index=index, kind=kind, path_class=path_class, marker=self.marker, marker_nth=self.nth.get(self.marker, 0))
        )
        return index

    def say(self, word: str) -> int:
        """Add a word of the job and return its index."""
        index = self.do("event", word)
        self.nth[word] = self.nth.get(word, 0) + 1
        self.marker = word
        return index

    def moment(self, at: int, cause: Cause | None = None, *, assumed: tuple[str, ...] = (), part: str = "") -> Moment:
        """The moment after an entry."""
        if at == 0:
            point = KillPoint(marker="start", marker_nth=0, operation="", path_class="", nth=0)
        elif (strip := self.strips[at - 1]).kind == "event":
            said = [each for each in self.strips[:at] if (each.kind, each.path_class) == ("event", strip.path_class)]
            point = KillPoint(marker=strip.path_class, marker_nth=len(said), operation="", path_class="", nth=0)
        else:
            same = [each for each in self.strips[:at] if astuple(each)[1:] == astuple(strip)[1:]]
            point = KillPoint(
                marker=strip.marker,
                marker_nth=strip.marker_nth,
                operation=strip.kind,
                path_class=strip.path_class,
                nth=len(same),
                part=part,
            )
        return Moment(at=at, point=point, cause=cause or Cause(), assumed=assumed)


def state(
    name: str, *moments: Moment, broken: Sequence[str] = (), outcome: Outcome | None = Outcome.VALID, promised_step: int = -1
) -> StateResult:
    """What was said of one state: invalid when something is broken."""
    said = tuple(Broken(promise=promise, says=SAYS.get(promise, f"{promise} is broken")) for promise in broken)
    return StateResult(
        state=name, moments=moments, outcome=Outcome.INVALID if broken else outcome, broken=said, promised_step=promised_step
    )


def undecided(name: str, *moments: Moment, why: str) -> StateResult:
    """A state of which nothing can be said."""
    broken = (Broken(promise="recovers", says=why, outcome=Outcome.UNKNOWN),)
    return StateResult(state=name, moments=moments, outcome=Outcome.UNKNOWN, broken=broken)


def prefixes(
    log: Log, wrong: Mapping[int, Sequence[str]], *, unjudged: Sequence[int] = (), promised: Mapping[int, int] | None = None
) -> list[StateResult]:
    """A state after each entry, wrong at some."""
    return [
        state(
            f"prefix-{at:04d}-" + "0" * 20,
            log.moment(at),
            broken=wrong.get(at, ()),
            outcome=None if at in unjudged else Outcome.VALID,
            promised_step=(promised or {}).get(at, -1),
        )
        for at in range(len(log.strips) + 1)
    ]


def overwriting(saves: int = 3) -> tuple[Log, dict[int, Sequence[str]]]:
    """A job that overwrites its only checkpoint in place, and what is wrong at which moments."""
    log, wrong = Log(), {}
    log.do("mkdir", "ckpt")
    for number in range(saves):
        log.say("save.begin")
        bad = [log.do("open", "ckpt/state.bin"), log.do("write", "ckpt/state.bin")]
        log.do("write", "ckpt/state.sum")
        log.do("close", "ckpt/state.bin")
        log.say("save.end")
        log.say("step")
        wrong.update(dict.fromkeys(bad if number else (), ("recovers", "keeps-what-was-acknowledged")))
    return log, wrong


def surface(model: str, scope: str, log: Log, states: Sequence[StateResult], **fields: object) -> Surface:
    """A surface with what its states show."""
    return Surface(
        model=model,
        scope=scope,
        kill_points=sum(len(each.moments) for each in states),
        states=tuple(states),
        vulnerabilities=find_vulnerabilities(states, log.strips, run_directory=RUN),
        **fields,
    )


def exploration(
    log: Log, *surfaces: Surface, outcome: Outcome = Outcome.VALID, blind: tuple[str, ...] = (), **fields: object
) -> Exploration:
    """What is known at the end."""
    operations = [strip for strip in log.strips if strip.kind != "event"]
    return Exploration(
        workload="counter",
        command=("python", "train.py"),
        outcome=outcome,
        reasons=tuple(fields.pop("reasons", ())),
        recorded=fields.pop("recorded", None) or Recorded(seconds=4.1, operations=len(operations), saves=3, blind=blind),
        surfaces=surfaces,
        operations=tuple(log.strips),
        **fields,
    )
