"""What a person sees of a plan on a terminal, and the command that applies it."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from harness.cli.said_again import said_again
from harness.cli.wrapping import say_line
from harness.report.wording import count

if TYPE_CHECKING:
    from harness.targets.gcp.plan import Plan, PlannedFault, PlannedScenario, Resource

WIDTH_MAX = 1000
"""Beyond that a line is folded in a log, too."""

SHOWN_MAX = 12
"""Facts of a resource that a person reads; the rest is in the file."""

OF_PLANS = ("plan", "plan_file", "read_only_planner", "as_json")
"""Parameters of ``harness run`` that say how a plan is made."""

OF_PROJECTS = ("project", "region", "bucket", "job", "image", "service_account", "gpus", "gpu_type", "cluster", "zone", "lock_bucket")
OF_LIMITS = ("blast_radius", "gpu_hours", "duration_s")


def next_command(context: typer.Context, *, plan_file: Path, emulated: bool) -> str:
    """The command that goes on from a plan, with all that was typed for it; on an emulator that ends with its command there is no plan."""
    if emulated:
        return said_again(context, without=(*OF_PLANS, *OF_PROJECTS, *OF_LIMITS))
    return said_again(context, without=OF_PLANS, adding=("--apply", str(plan_file)))


def show(plan: "Plan", console: Console, *, path: Path, then: str, emulated: bool = False) -> None:
    """Print a plan for a person.

    Args:
        plan: What is shown.
        console: Where.
        path: Where it was written.
        then: The command that goes on from it.
        emulated: Whether it is of an emulator that ends with the command.
    """
    say = partial(say_line, console, indent=9)
    place = plan.place
    say(f"plan for project {place.project}, region {place.region}: nothing was changed", style="bold")
    for resource in plan.resources:  # whole names in one line each: they are read, and copied
        say(f"{resource.action:8} {resource.kind} {resource.name}")
        if resource.facts:
            say(f"         {_facts(resource)}", style="dim")
    _print_scenarios(console, plan)
    limits = plan.limits
    lasts = f"{_duration(plan.duration_s)} of {_duration(limits.duration_s)}"
    say(f"{plan.hours} at worst {plan.gpu_hours:.2f} of {limits.gpu_hours:g}, {lasts}")
    say(f"largest blast radius {plan.blast_radius} of {limits.blast_radius}")
    for quota in plan.quotas:
        of = "an unknown limit" if quota.limit is None else f"{quota.limit:g}"
        say(f"quota {quota.name} in {quota.place}: {quota.needed:g} of {of}{f': {quota.why}' if quota.why else ''}")
    held = [permission for permission in plan.permissions if permission.is_held]
    say(f"permissions: {len(held)} held, {sum(each.is_held is False for each in plan.permissions)} missing")
    for unknown in plan.unknowns:
        say(f"unknown  {unknown}", style="yellow")
    for note in plan.notes:
        say(f"note     {note}", style="dim")
    for problem in plan.problems:
        say(f"problem  {problem}", style="bold red")
    say(f"written to {path}, for use until {plan.expires_at:%H:%M:%S} UTC")
    if emulated:
        say("this emulator ends now, and nothing of its plan can be applied; without a plan:")
    else:
        say("mend the problems, and plan again" if plan.problems else "then:")
    if emulated or not plan.problems:
        console.print(Text(f"    {then}"), highlight=False, soft_wrap=True)  # whole: it is copied


def _print_scenarios(console: Console, plan: "Plan") -> None:
    """As tables, as wide as they are: whoever searches a log finds whole names; on a terminal that is too narrow for them, one by one."""
    tables = [_scenarios(plan), *([_faults(plan)] if any(scenario.faults for scenario in plan.scenarios) else [])]
    wide = console.options.update(max_width=WIDTH_MAX)
    whole = max(Measurement.get(console, wide, table).maximum for table in tables)
    if console.is_terminal and whole > console.width:
        for scenario in plan.scenarios:
            _print_one(console, scenario)
        return
    for table in tables:
        Console(file=console.file, width=max(console.width, whole), force_terminal=console.is_terminal).print(table)


def _print_one(console: Console, scenario: "PlannedScenario") -> None:
    cost = scenario.exposure
    held = count(cost.gpus, "accelerator" if cost.chips else "GPU")
    hours = "accelerator-hours" if cost.chips else "GPU-hours"
    say_line(console, scenario.name, style="bold")
    counted = [count(cost.executions, "execution"), count(cost.tasks, "task"), count(cost.attempts, "attempt"), held]
    say_line(console, f"    {', '.join(counted)}, timeout {_duration(cost.timeout_s)}: {cost.gpu_hours:.2f} {hours}", indent=6)
    for fault in scenario.faults:
        times = "once" if fault.times == 1 else f"{fault.times} times"
        told = f"{fault.injection}, {times}, at most {_at_most(fault)}: {', '.join(fault.hits)}; {fault.undo or 'nothing is left'}"
        say_line(console, f"    {told}", indent=6)


def _facts(resource: "Resource") -> str:
    """The first of them, for a person."""
    facts = [f"{name} {value}" for name, value in resource.facts.items() if value]
    more = [f"{len(facts) - SHOWN_MAX} more"] * (len(facts) > SHOWN_MAX)
    return ", ".join([*facts[:SHOWN_MAX], *more])


def _scenarios(plan: "Plan") -> Table:
    table = _table("scenario", "executions", "tasks", "attempts", "timeout", plan.accelerators, plan.hours)
    for scenario in plan.scenarios:
        cost = scenario.exposure
        figures = (cost.executions, cost.tasks, cost.attempts, _duration(cost.timeout_s), cost.gpus, f"{cost.gpu_hours:.2f}")
        table.add_row(Text(scenario.name), *(Text(str(figure)) for figure in figures))
    return table


def _faults(plan: "Plan") -> Table:
    table = _table("fault", "hits", "at most", "times", "taken back")
    for scenario in plan.scenarios:
        for fault in scenario.faults:
            hits, undo = ", ".join(fault.hits), fault.undo or "nothing is left"
            table.add_row(*map(Text, (fault.injection, hits, _at_most(fault), str(fault.times), undo)))
    return table


def _at_most(fault: "PlannedFault") -> str:
    return f"{fault.blast_radius} {fault.unit if fault.blast_radius != 1 else fault.unit.removesuffix('s')}"


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes) + [f"{seconds} s"] * bool(seconds)
    return " ".join(parts) or "0 s"
