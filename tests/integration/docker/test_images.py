"""What a container is made of: image, files, variables, and what is refused."""

import contextlib
import io
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from harness.errors import InvalidDocumentError, TargetUnavailableError
from harness.history import Marked, SignalSent
from harness.targets import availability
from harness.targets.docker.images import default_image
from harness.targets.docker.presence import open_engine
from tests.contract.driver import ROOT, Run, python
from tests.contract.presence import skip_or_fail_without


@pytest.fixture
def own_image() -> Iterator[str]:
    """An image of somebody: with a variable, an entry point, a working directory and a stop signal of its own."""
    skip_or_fail_without("docker")
    name = f"harness-test-{uuid.uuid4().hex}"
    recipe = f'FROM {default_image()}\nENV OF_THE_IMAGE=1\nENTRYPOINT ["/bin/false"]\nWORKDIR /nowhere\nSTOPSIGNAL SIGINT\n'
    with contextlib.closing(docker.from_env()) as client:
        client.images.build(fileobj=io.BytesIO(recipe.encode()), tag=name, rm=True)
        yield name
        client.images.remove(name, force=True)


def test_an_image_of_ones_own_gives_its_variables_and_its_entry_point_is_replaced(start, own_image):
    run = start(("sh", "-c", "echo $OF_THE_IMAGE; pwd"), image=own_image)

    run.finish()

    assert run.lines() == ["1", str(ROOT)]
    assert [exited.exit_code for exited in run.exits()] == [0]


def test_the_stop_signal_of_an_image_is_not_what_the_platform_sends(start, own_image):
    with open_engine() as engine:
        assert engine.stop_signal(own_image) == "SIGINT"
        assert engine.stop_signal(default_image()) == ""
    code = "signal.signal(signal.SIGINT, lambda *_: os._exit(7))\nemit('ready')\nwhile True: time.sleep(0.1)"
    run = start(python(code), image=own_image, grace_s=0.3)
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    assert [event.signal for event in run.of(SignalSent)] == ["SIGTERM", "SIGKILL"]
    assert [exited.cause for exited in run.exits()] == ["grace"]


def test_what_a_job_writes_elsewhere_goes_with_it_and_its_own_directory_cannot_be_changed(start):
    code = """
print(os.path.exists("/left"), flush=True)
open("/left", "w").close()
try: open(os.path.join(os.getcwd(), "left"), "w")
except OSError as error: print(error.strerror, flush=True)
sys.exit(1)
"""
    run = start(python(code), max_retries=1)

    run.finish()

    assert run.lines() == ["False", "Read-only file system"] * 2
    assert not (ROOT / "left").exists()
    assert not Path("/left").exists()


def test_what_it_writes_to_its_checkpoints_is_ours(start):
    run = start(python("print(os.environ['CHECKPOINT_DIR'])\nopen('/checkpoints/step-1', 'w').close()"))

    run.finish()

    assert run.lines() == ["/checkpoints"]
    assert (run.target.checkpoint_path(0) / "step-1").stat().st_uid == os.geteuid()


def test_the_directory_below_a_root_sees_the_whole_root(start, tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "beside").write_text("seen")
    run = start(("cat", "../beside"), directory=tmp_path / "below", root=tmp_path)

    run.finish()

    assert run.lines() == ["seen"]


def test_an_image_that_the_engine_does_not_have_is_refused_by_its_name(tmp_path):
    skip_or_fail_without("docker")

    with pytest.raises(TargetUnavailableError, match=r"no image no-such-image:1.*docker pull no-such-image:1"):
        Run("docker", tmp_path, ("true",), image="no-such-image:1").start()


def test_the_root_of_all_files_is_no_directory_to_mount(tmp_path):
    with pytest.raises(InvalidDocumentError, match="directory"):
        Run("docker", tmp_path, ("true",), directory=Path("/")).start()


def test_a_program_that_is_no_program_is_told_by_its_own_words(start, tmp_path):
    script = tmp_path / "job"
    script.write_bytes(b"\x00\x01\x02 not a program")
    script.chmod(0o755)

    run = start(("./job",), directory=tmp_path)
    run.finish()

    assert [exited.cause for exited in run.exits()] == ["job"]
    assert run.exits()[0].exit_code
    assert "exec format error" in run.lines("stderr")[0]


def test_an_engine_that_does_not_answer_is_a_missing_target_and_not_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")

    found = availability("docker")

    assert not found.is_available
    assert "no Docker engine answers" in found.reason
    assert "docker-up" in found.advice
    with pytest.raises(TargetUnavailableError):
        Run("docker", tmp_path, ("true",)).start()


def test_a_container_that_somebody_removes_was_ended_by_neither_the_job_nor_us(start):
    run = start(python("emit('ready')\nif attempt: sys.exit(0)\ntime.sleep(60)"), max_retries=1)
    run.until(Marked)
    with open_engine() as engine:
        ((container, _),) = engine.containers_of(run.launch.run_id)
        engine.remove(container)

    run.finish()

    assert [(exited.signal, exited.exit_code, exited.cause) for exited in run.exits()] == [
        (signal.SIGKILL, None, "platform"),
        (None, 0, "job"),
    ]
