"""Where faults of a scenario act, for the agent: so that it holds the job there, and lets it go on by itself everywhere else.

Through a bucket, to hold a job and to let it go takes a second on a project; a job that keeps the barrier asks after each of its steps.
"""

from harness.scenario import Scenario
from harness.scenario.triggers import AtMarker, AtStep


def points_of(scenario: Scenario) -> tuple[str, ...]:
    """Each moment as ``event:when@condition`` (``agent.points``).

    Before a marker every occurrence is held: those are counted by who is held there.
    """
    points: dict[str, None] = {}
    for injection in scenario.injections:
        at = injection.at
        if isinstance(at, AtStep):
            points[f"step:after@step={at.step},rank={at.rank}"] = None
        elif isinstance(at, AtMarker) and at.when == "after":
            points[f"{at.event}:after@nth={at.nth},rank={at.rank}"] = None
        elif isinstance(at, AtMarker):
            points[f"{at.event}:{at.when}"] = None
    return tuple(points)
