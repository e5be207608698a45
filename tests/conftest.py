"""What holds for all tests."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.targets.local.subreaper import adopts_orphans

for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        # So does a shell start what it puts into the background, and nohup; whatever the tests start and interrupt would inherit it.
        signal.signal(number, default)


@pytest.fixture(scope="session", autouse=True)
def own_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is written down of a user, and temporary files, are this worker's own.

    ``harness clean`` looks through both: it finds nothing there of what another worker has just killed, and nothing of the user.
    """
    state = tmp_path_factory.mktemp("state")
    temporary = tempfile.mkdtemp(prefix="t")  # short, for the sockets of jobs
    Path(temporary).chmod(0o1777)  # as what it stands for: some tests go on as another user
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        patch.setenv("TMPDIR", temporary)
        patch.setattr(tempfile, "tempdir", temporary)
        yield
    shutil.rmtree(temporary, ignore_errors=True)


@pytest.fixture(autouse=True)
def adopts_as_before() -> Iterator[None]:
    """Whether this process adopts orphans is afterwards as it was: else those of any later test would be its children, and stay zombies."""
    before = adopts_orphans()
    yield
    assert adopts_orphans() == before


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written down of a user is this test's own, for who looks at what ``harness clean`` finds."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
