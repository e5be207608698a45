"""An OCI runtime that asks for no CAP_SYS_RESOURCE: edits the specification, then becomes the real runtime.

Where that capability is missing from the bounding set (a nested virtual machine, a container), runc cannot give it to a privileged
container and refuses the whole container: "unable to apply caps". The engine offers no switch for it. What is lost: containers cannot raise
hard limits.

Runs alone, from a copy, without the package: the standard library only, and little of it, since every container start waits for it.

Usage: runtime_wrapper.py RUNTIME ARGUMENTS...
"""
# ruff: noqa: PTH109, PTH118, PTH123, S606
# os is loaded anyway; pathlib would double the imports.

import json
import os
import sys

LEFT_OUT = "CAP_SYS_RESOURCE"


def value_of(arguments: list[str], *names: str) -> str | None:
    """The value of an option, written `--name value` or `--name=value`; None when absent."""
    for position, argument in enumerate(arguments):
        for name in names:
            if argument == name and position + 1 < len(arguments):
                return arguments[position + 1]
            if argument.startswith(name + "="):
                return argument.split("=", 1)[1]
    return None


def without_capability(process: dict[str, object]) -> dict[str, object]:
    """The process of a specification with the capability taken out of every set; what else it says stays."""
    capabilities = process.get("capabilities")
    if not isinstance(capabilities, dict):
        return process
    return {**process, "capabilities": {name: [held for held in sets or [] if held != LEFT_OUT] for name, sets in capabilities.items()}}


def edit(path: str, *, key: str | None = None) -> None:
    """Rewrite a specification in place: the whole of it a process, or its ``key``."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    edited = without_capability(document) if key is None else {**document, key: without_capability(document.get(key) or {})}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(edited, file)


def prepare(arguments: list[str]) -> None:
    """Edit what the runtime is about to read: the bundle of a new container, or the process file of an exec."""
    process = value_of(arguments, "--process", "-p")
    if "exec" in arguments and process is not None:
        edit(process)
    elif "create" in arguments or "run" in arguments:
        edit(os.path.join(value_of(arguments, "--bundle", "-b") or os.getcwd(), "config.json"), key="process")


if __name__ == "__main__":
    prepare(sys.argv[2:])
    os.execv(sys.argv[1], sys.argv[1:])
