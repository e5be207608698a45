"""The command line: ``python3 -I agent.pyz [OPTIONS] -- COMMAND…``; its exit code is the job's."""

from __future__ import annotations

import argparse
import os
import sys

from harness.targets.gcp.agent.attendant import Attendant, Settings

EXIT_USAGE = 64


def main(arguments: list[str]) -> None:
    """Attend to the command, and end as it did."""
    code = Attendant(read_settings(arguments), own_environment()).run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a thread that waits for storage keeps nobody


def read_settings(arguments: list[str]) -> Settings:
    """What the command line says.

    Raises:
        SystemExit: When it says nothing that can be followed.
    """
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(prog="agent", usage="agent.pyz [OPTIONS] -- COMMAND ...", allow_abbrev=False)
    defaults = Settings._field_defaults
    parser.add_argument("--home", default=os.path.dirname(os.path.abspath(sys.argv[0])))  # noqa: PTH100, PTH120
    parser.add_argument("--job", default="")
    parser.add_argument("--armed", default="")
    parser.add_argument("--own", default="")
    names = [name for name, value in defaults.items() if isinstance(value, float)]
    for name in names:
        parser.add_argument("--" + name.replace("_", "-"), type=float, default=defaults[name])
    options = vars(parser.parse_args(arguments[:at]))
    command = arguments[at + 1 :]
    if not command:
        parser.error("no command after --")
    return Settings(
        home=options["home"],
        command=command,
        job=options["job"],
        armed=tuple(options["armed"].split()),
        own=tuple(options["own"].split()),
        **{name: options[name] for name in names},
    )


def own_environment() -> dict[str, str]:
    """As the container gives it: the interpreter adds ``LC_CTYPE`` to its own where the locale is C."""
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry]
    except OSError:
        return dict(os.environ)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
