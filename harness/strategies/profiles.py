"""The settings of Hypothesis for chaos tests, in three efforts; loaded by name, so that no other profile wins by being there.

Hypothesis loads a profile ``ci`` of its own where the variable ``CI`` is set, when it is imported. Ours are registered under names of their
own, take nothing over from whatever is loaded, and are loaded after that.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from hypothesis import HealthCheck, Phase, _settings, currently_in_test_context, settings
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase, MultiplexedDatabase, ReadOnlyDatabase

from harness.errors import UnknownNameError

Effort = Literal["pr", "ci", "nightly"]
"""``pr``: only what is written down and what has failed before; ``ci``: some examples; ``nightly``: many."""

PROFILES: tuple[Effort, ...] = get_args(Effort)

OF_HYPOTHESIS: dict[str, settings | None] = {"default": getattr(_settings, "default", None), "ci": getattr(_settings, "CI", None)}
"""What Hypothesis loads by itself, for functions: it hurries them, or draws the same each time, and forgets what failed. None: a version
that calls it otherwise, of which the name alone tells."""

Runs = Literal["live", "offline"]
"""Whether an example runs a job, which takes seconds, or something in memory, which takes milliseconds."""

KNOWN = (Phase.explicit, Phase.reuse)

EXAMPLES: dict[tuple[Effort, Runs], int] = {
    ("pr", "live"): 25,
    ("ci", "live"): 25,
    ("nightly", "live"): 200,
    ("pr", "offline"): 500,
    ("ci", "offline"): 500,
    ("nightly", "offline"): 5000,
}
"""At most so many; in ``pr`` they are those of the database."""

PHASES: dict[tuple[Effort, Runs], tuple[Phase, ...]] = {
    ("pr", "live"): KNOWN,
    ("ci", "live"): (*KNOWN, Phase.generate),
    ("nightly", "live"): (*KNOWN, Phase.generate),
    ("pr", "offline"): KNOWN,
    ("ci", "offline"): (*KNOWN, Phase.generate),
    ("nightly", "offline"): (*KNOWN, Phase.generate, Phase.target, Phase.shrink),
}
"""No ``explain``: it runs a failure a hundred times more. No ``shrink`` of live runs: Hypothesis needs hundreds, and gives up after
300 s (``hypothesis.internal.conjecture.engine.MAX_SHRINKING_SECONDS``); ``harness.explore.schedules`` shrinks them in a dozen."""


def load_profile(name: str, *, runs: Runs = "live", database: Path | None = None, shared: Path | None = None) -> None:
    """Make a profile the one that tests without settings of their own use from now on.

    Args:
        name: ``pr``, ``ci`` or ``nightly``.
        runs: What an example costs.
        database: Where failing examples are kept and found; without it nothing is.
        shared: Another such directory, which is only read: that of the nightly run.

    Raises:
        UnknownNameError: When there is no such profile.
    """
    effort = next((known for known in PROFILES if known == name), None)
    if effort is None:
        raise UnknownNameError(kind="profile of chaos tests", name=name, known=PROFILES)
    registered = f"chaos-{effort}-{runs}"
    settings.register_profile(
        registered,
        settings.get_profile("default"),
        max_examples=EXAMPLES[effort, runs],
        phases=PHASES[effort, runs],
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],  # the fixtures make a new run every time
        database=_database(database, shared),
    )
    settings.load_profile(registered)


def is_of_hypothesis() -> bool:
    """Whether nobody has chosen the profile in force; one that a project has registered under a name of Hypothesis's is the project's."""
    name = settings.get_current_profile_name()
    return name in OF_HYPOTHESIS and OF_HYPOTHESIS[name] in (None, settings.get_profile(name))


def why_unfit(*, is_chosen: bool) -> str:
    """Why the test of Hypothesis that runs now must not run a job; empty: it may, or none runs.

    Args:
        is_chosen: Whether somebody has asked for the profile in force by name.
    """
    if not currently_in_test_context():
        return ""
    name, deadline = settings.get_current_profile_name(), settings.default.deadline if settings.default is not None else None
    if is_of_hypothesis() and not is_chosen:
        return f"Hypothesis's own profile {name!r} is in force, which is for functions; ask for one of chaos tests, --chaos-profile ci"
    if deadline is not None:
        allowed_ms = deadline.total_seconds() * 1000
        return f"each example may take {allowed_ms:.0f} ms by the profile {name!r}, and a job takes seconds; set deadline=None"
    return ""


def keep_examples(test: Callable[..., object], name: str) -> None:
    """Have failing examples of a test kept and tried again under a name although the seed is given.

    Hypothesis gives them up where a seed is: it takes a seed for a wish to see one thing again. Ours is there to be told.
    Source: ``hypothesis.core.StateForActualGivenExecution.run_engine``, in all of 6.x that we have seen; another version may forget them.
    """
    if getattr(test, "is_hypothesis_test", False):
        test._hypothesis_internal_database_key = hashlib.sha256(name.encode()).digest()  # type: ignore[attr-defined]


def _database(own: Path | None, shared: Path | None) -> ExampleDatabase | None:
    kept: list[ExampleDatabase] = [DirectoryBasedExampleDatabase(own)] if own is not None else []
    read = [ReadOnlyDatabase(DirectoryBasedExampleDatabase(shared))] if shared is not None else []
    return MultiplexedDatabase(*kept, *read) if kept or read else None
