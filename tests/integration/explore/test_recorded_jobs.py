"""What the recorder logs of a real job is what the enumeration reads: without gaps, and its last state is the directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.explore.data_file import DataFile
from harness.explore.enumeration import Enumeration
from harness.explore.judging.copies import describe
from harness.explore.models import MODELS
from harness.explore.pieces import pieces_of
from harness.explore.replay import replay
from tests.integration.recorded import Stage

JOB = """
import json, shutil, tempfile
def say(event, **fields):
    with open(os.environ["HARNESS_EVENTS"], "a") as file:
        file.write(json.dumps({"event": event, **fields}) + "\\n")
os.unlink("old")
for step in (1, 2, 3):
    say("save.begin", step=step)
    temporary = tempfile.mkdtemp(dir=root)
    os.mkdir(temporary + "/parts")
    for number in range(3):
        with open(f"{temporary}/parts/{number}", "wb") as file:
            file.write(bytes([step]) * 1000)
            file.seek(10)
            file.write(b"again")
            file.truncate(900 + number)
            os.fsync(file.fileno())
    thread = threading.Thread(target=make, args=(temporary + "/metadata", str(step).encode()))
    thread.start()
    thread.join()
    os.rename(temporary, f"step_{step}")
    if os.path.islink("latest"):
        os.unlink("latest")
    os.symlink(f"step_{step}", "latest")
    os.link(f"step_{step}/metadata", f"metadata_{step}")
    say("save.end", step=step, digests={"params": f"{step:02x}"})
    if step > 1:
        shutil.rmtree(f"step_{step - 1}")
subprocess.run(["sh", "-c", "echo log >> log; cp log copy; mv copy log"], check=True)
make(b"\\xff")
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_the_last_state_of_a_recorded_job_is_its_directory(stage: Stage) -> None:
    (stage.root / "old").write_bytes(b"from before")

    played = replay(stage.run(JOB).log)

    assert played.gaps == ()
    assert played.log.is_whole
    with DataFile(played.log.data_path) as data:
        every = list(Enumeration(played, data, model="posix", scope="process"))
        last = max(every, key=lambda found: max(moment.at for moment in found.moments))
        made = {piece.path: piece for piece in pieces_of(last.crash.tree, data, root="/nowhere")}
        real = {piece.path: piece for piece in describe(stage.root)}
        assert {path: piece for path, piece in made.items() if path.isascii()} == {
            path: piece for path, piece in real.items() if path.isascii()
        }
        assert len(made) == len(real) == 12
        assert [save.step for save in last.saves] == [1, 2, 3]
        for model in MODELS.values():
            for scope in model.scopes:
                assert len(list(Enumeration(played, data, model=model.name, scope=scope))) > 20
