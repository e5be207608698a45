"""Builds the pieces that are missing: compilers in one lane, everything else in another, then what is made of both."""

import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.clock import Clock
from harness.errors import TargetUnavailableError
from harness.kind.bundle.piece import Piece
from harness.kind.bundle.pieces import ASSEMBLED, COMPILED, INSTALLED, all_pieces
from harness.kind.bundle.stale import remove_stale
from harness.kind.cache import bundle_dir
from harness.kind.commands import run_command
from harness.kind.engine import require_engine
from harness.kind.lock import Lock

INSTALL_S = 600.0
FREE_GIB_MIN = 20
"""The bundle and Docker's images take 8 GB, Go's caches about as much."""

BUILD_S_MAX = 7200.0
"""Four times what all pieces take on two idle cores; a second builder waits for as long, then finds the pieces of the first."""

TOOLS = {"debootstrap": "debootstrap", "cc": "gcc", "setpriv": "util-linux", "unshare": "util-linux"}


def missing_pieces() -> list[str]:
    """Names of the pieces that a cluster still needs; none when it can be made from the bundle."""
    return [piece.name for piece in all_pieces() if not piece.is_present()]


def build_bundle(clock: Clock, say: Callable[[str], None], *, only: Sequence[str] = ()) -> None:
    """Build every missing piece, or only the named ones that are missing.

    Raises:
        TargetUnavailableError: When a tool that builds is not here.
        CommandFailedError: When a piece cannot be built; those that are whole stay.
    """
    with Lock(bundle_dir() / "lock", target="kind", others="builds the bundle", patience_s=BUILD_S_MAX).held(clock, say):
        require_engine()
        wanted = [piece for piece in all_pieces() if not only or piece.name in only]
        missing = [piece for piece in wanted if not piece.is_present()]
        if not missing:
            say(f"the bundle is complete: {', '.join(piece.name for piece in wanted)}")
            return
        _require_tools(missing, say)
        say(f"building {', '.join(piece.name for piece in missing)}: {expected_text(missing)} on two idle cores without a compiler's cache")
        began_s = clock.monotonic_s()
        _build_lanes(missing, clock, say)
        if not only:
            remove_stale(say)
        say(f"the bundle is complete, in {clock.monotonic_s() - began_s:.0f} s")


def expected_text(missing: Sequence[Piece]) -> str:
    """How long the missing pieces take, in words: lanes side by side, then the rest."""
    lanes = [sum(piece.expected_s for piece in missing if piece in lane) for lane in (COMPILED, INSTALLED, ASSEMBLED)]
    expected_s = max(lanes[0], lanes[1]) + lanes[2]
    return f"about {expected_s / 60:.0f} minutes" if expected_s >= 90 else f"about {expected_s} s"


def _build_lanes(missing: Sequence[Piece], clock: Clock, say: Callable[[str], None]) -> None:
    """Both lanes go on to the end of their piece when one fails: what is whole is kept."""
    has_failed: list[str] = []

    def build_lane(lane: Sequence[Piece]) -> None:
        for piece in lane:
            if piece in missing and not has_failed:
                _build(piece, clock, say, has_failed)

    with ThreadPoolExecutor(max_workers=2) as lanes:
        running = [lanes.submit(build_lane, lane) for lane in (COMPILED, INSTALLED)]
    for lane in running:
        lane.result()
    build_lane(ASSEMBLED)


def _build(piece: Piece, clock: Clock, say: Callable[[str], None], has_failed: list[str]) -> None:
    log = bundle_dir() / "logs" / f"{piece.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    began_s = clock.monotonic_s()
    try:
        piece.build(log)
    except BaseException:
        has_failed.append(piece.name)
        say(f"{piece.name}: failed after {clock.monotonic_s() - began_s:.0f} s, see {log}")
        raise
    say(f"{piece.name}: {clock.monotonic_s() - began_s:.0f} s")


def _require_tools(missing: Sequence[Piece], say: Callable[[str], None]) -> None:
    """Install Debian's tools where that is allowed, and refuse early where something else is missing."""
    if any(piece in COMPILED for piece in missing) and shutil.which("go") is None:
        raise TargetUnavailableError(target="kind", reason="the bundle is compiled, and go is not here", advice="install Go 1.25 or newer")
    bundle_dir().mkdir(parents=True, exist_ok=True)
    free_gib = shutil.disk_usage(bundle_dir()).free / 2**30
    if free_gib < FREE_GIB_MIN:
        reason = f"{bundle_dir()} has {free_gib:.0f} GiB free and the bundle needs {FREE_GIB_MIN}"
        raise TargetUnavailableError(target="kind", reason=reason, advice="free some, or set HARNESS_CACHE_DIR to a larger disk")
    packages = sorted({package for tool, package in TOOLS.items() if package and shutil.which(tool) is None})
    if not packages:
        return
    if sys.platform != "linux" or shutil.which("apt-get") is None:
        reason = f"the offline bundle is made with Debian's {', '.join(packages)}, and this is not Debian"
        raise TargetUnavailableError(target="kind", reason=reason, advice="build it on Debian, or use `harness up kind --images pulled`")
    say(f"installing {', '.join(packages)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run_command(["apt-get", "update", "--quiet"], deadline_s=INSTALL_S, environment=quiet)
    run_command(["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages], deadline_s=INSTALL_S, environment=quiet)
