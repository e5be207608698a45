"""Go modules: their folders, and programs built from them with the ordinary Go command."""

import json
import re
from pathlib import Path

import msgspec

from harness.kind.bundle.piece import DirectoryPiece, key_of
from harness.kind.commands import CommandFailedError, run_command

DOWNLOAD_S = 600.0
BUILD_S = 1800.0
"""The longest, all of Kubernetes on two cores without a build cache, has taken eleven minutes."""

FLAGS = ("-trimpath",)
LINKER_FLAGS = "-s -w"
"""Without symbols: a third smaller, and no one debugs them here."""

GO_ENVIRONMENT = {"CGO_ENABLED": "0"}
"""Static programs run in images that hold nothing else."""

STAGED = re.compile(r"^\s*(?:replace\s+)?(\S+) => \./staging/src/\S+$", re.MULTILINE)
"""The modules that Kubernetes keeps inside its own repository; outside of it they are released under their own names."""


class ModuleRecord(msgspec.Struct, frozen=True, rename="pascal"):
    """What ``go mod download -json`` says."""

    dir: str = ""
    go_mod: str = ""
    error: str = ""


def module_folder(module: str, version: str) -> Path:
    """The folder of a module, fetched when it is not there.

    Raises:
        CommandFailedError: When it cannot be fetched.
    """
    return Path(_record(module, version).dir)


class GoPrograms(msgspec.Struct, frozen=True, kw_only=True):
    """A piece: programs out of one module.

    Attributes:
        name: Of the piece.
        module: Where the programs are.
        version: Of the module.
        packages: Import paths of the programs; each ends in its program's name; one alone in a module of ours is named as the piece.
        expected_s: Cold, on two cores.
        has_own_module: The module cannot be installed by name, for its own go.mod replaces what only lies in its repository.
        linker_flags: Beside the usual ones.
    """

    name: str
    module: str
    version: str
    packages: tuple[str, ...]
    expected_s: int
    has_own_module: bool = False
    linker_flags: str = ""

    def directory(self) -> Path:
        """Where the programs lie once they are built."""
        return self._place().path

    def program(self, name: str) -> Path:
        """One of them."""
        return self.directory() / name

    def key(self) -> str:
        """Changes with the module, its version, the programs and the flags."""
        return key_of(self.module, self.version, *self.packages, *FLAGS, LINKER_FLAGS, self.linker_flags, *GO_ENVIRONMENT)

    def is_present(self) -> bool:
        """See ``Piece``."""
        return self.directory().is_dir()

    def build(self, log: Path) -> None:
        """See ``Piece``."""
        self._place().fill(lambda scratch: self._build(scratch, log))

    def _place(self) -> DirectoryPiece:
        return DirectoryPiece(name=self.name, key=self.key())

    def _build(self, scratch: Path, log: Path) -> None:
        linker = f"{LINKER_FLAGS} {self.linker_flags}".strip()
        flags = [*FLAGS, "-ldflags", linker]
        if not self.has_own_module:
            environment = {**GO_ENVIRONMENT, "GOBIN": str(scratch)}
            targets = [f"{package}@{self.version}" for package in self.packages]
            run_command(["go", "install", *flags, *targets], deadline_s=BUILD_S, environment=environment, log=log, ends_with_us=True)
            return
        workspace = scratch / ".module"
        workspace.mkdir()
        (workspace / "go.mod").write_text(own_module(self.module, self.version, self.packages, self._staged()))
        run_command(
            ["go", "mod", "tidy"], deadline_s=DOWNLOAD_S, environment=GO_ENVIRONMENT, directory=workspace, log=log, ends_with_us=True
        )
        output = f"{scratch}/" if len(self.packages) > 1 else f"{scratch}/{self.name}"
        build = ["go", "build", *flags, "-o", output, *self.packages]
        run_command(build, deadline_s=BUILD_S, environment=GO_ENVIRONMENT, directory=workspace, log=log, ends_with_us=True)

    def _staged(self) -> list[str]:
        return STAGED.findall(Path(_record(self.module, self.version).go_mod).read_text())


def own_module(module: str, version: str, packages: tuple[str, ...], staged: list[str]) -> str:
    """A go.mod that builds programs of a module as its tools; the rest of it is for ``go mod tidy`` to find.

    Modules that are staged in its repository are released with the same minor and patch, as v0.
    """
    replaced = [f"replace {name} => {name} v0{version.removeprefix('v1')}" for name in staged]
    lines = ["module chaos-harness/bundle", "", "go 1.24", "", f"require {module} {version}", *(f"tool {package}" for package in packages)]
    return "\n".join([*lines, *replaced, ""])


def _record(module: str, version: str) -> ModuleRecord:
    command = ["go", "mod", "download", "-json", f"{module}@{version}"]
    record = msgspec.convert(json.loads(run_command(command, deadline_s=DOWNLOAD_S)), ModuleRecord)
    if record.error:
        raise CommandFailedError(command=command, outcome="could not fetch the module", output=record.error)
    return record
