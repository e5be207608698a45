"""``harness emulate`` as a process: where it listens, how it ends, and what is left then."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from google.cloud import run_v2
from google.cloud.run_v2.services.jobs.transports import JobsGrpcTransport

from tests.cli.conftest import Command

START_S_MAX = 60.0


@pytest.fixture
def environment(here: Path) -> dict[str, str]:
    (here / "tmp").mkdir()
    return {"XDG_STATE_HOME": str(here / "state"), "TMPDIR": str(here / "tmp")}


@pytest.fixture
def emulate(harness: Command, environment: dict[str, str]) -> Command:
    return lambda *arguments: harness("emulate", *arguments, **environment)


def left(here: Path) -> list[str]:
    """What it has written down or made for a while; processes carry the directory in their environment."""
    files = [str(path) for path in [*here.glob("state/harness/emulators/*"), *here.glob("tmp/harness-emulator-*")]]
    return files + processes_of(here)


def processes_of(here: Path) -> list[str]:
    """Those that it has started."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            variables = process.environ()
            if "HARNESS_RUN_ID" in variables and str(here) in " ".join([*variables.values(), *process.cmdline()]):
                found.append(f"{process.pid} {process.cmdline()}")
    return found


class Standing:
    """An emulator that stands."""

    def __init__(self, process: "subprocess.Popen[str]", line: dict[str, Any]) -> None:
        self.process, self.line = process, line

    def run_job(self, directory: Path) -> None:
        """Have a job that waits; returns when it is up."""
        up = directory / "up"
        script = f"echo > {up}; sleep 600"
        template = run_v2.TaskTemplate(containers=[run_v2.Container(image="image", command=["sh", "-c", script])])
        job = run_v2.Job(template=run_v2.ExecutionTemplate(template=template))
        parent = f"projects/{self.line['projects'][0]}/locations/europe-west4"
        with grpc.insecure_channel(self.line["grpc"]) as channel:
            jobs = run_v2.JobsClient(transport=JobsGrpcTransport(channel=channel))
            jobs.create_job(parent=parent, job=job, job_id="train").result(timeout=START_S_MAX)
            jobs.run_job(name=f"{parent}/jobs/train")
            wait_for(up.exists)


def wait_for(holds: Callable[[], object]) -> None:
    until_s = time.monotonic() + START_S_MAX
    while not holds():
        assert time.monotonic() < until_s, "not in time"
        time.sleep(0.02)


@pytest.fixture
def stand(here: Path, environment: dict[str, str]) -> Iterator[Callable[..., Standing]]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> Standing:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness", "emulate", "--json", *arguments],
            cwd=here,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        source = process.stderr if "--" in arguments else process.stdout
        assert source is not None
        return Standing(process, json.loads(source.readline()))

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_command_finds_the_services_and_its_exit_code_is_that_of_the_command(emulate: Command, here: Path) -> None:
    script = (
        "import os, sys, urllib.request; host = os.environ['STORAGE_EMULATOR_HOST'];"
        "assert host.endswith(os.environ['HARNESS_GCP_EMULATOR'].rpartition('http=')[2]);"
        "print(urllib.request.urlopen(host + '/storage/v1/b?project=my-project').read().decode()); sys.exit(7)"
    )

    result = emulate("--project", "my-project", "--bucket", "my-bucket", "--", sys.executable, "-c", script)

    assert result.returncode == 7, result.stderr
    assert [item["name"] for item in json.loads(result.stdout)["items"]] == ["my-bucket"]
    assert "export STORAGE_EMULATOR_HOST=http://127.0.0.1:" in result.stderr
    assert left(here) == []


def test_buckets_are_labelled_also_where_they_are_there_already(emulate: Command) -> None:
    script = (
        "import json, os, urllib.request; host = os.environ['STORAGE_EMULATOR_HOST'];"
        "print(json.load(urllib.request.urlopen(host + '/storage/v1/b/my-bucket')).get('labels'))"
    )
    common = ("--root", "kept", "--bucket", "my-bucket")
    command = ("--", sys.executable, "-c", script)

    assert emulate(*common, "--bucket-label", "a=b", *command).stdout == "{'a': 'b'}\n"
    assert emulate(*common, "--bucket-label", "harness-chaos=allowed", *command).stdout == "{'a': 'b', 'harness-chaos': 'allowed'}\n"
    assert emulate(*common, *command).stdout == "{'a': 'b', 'harness-chaos': 'allowed'}\n"


def test_a_command_that_a_signal_ends_has_a_shells_exit_code(emulate: Command) -> None:
    assert emulate("--", "sh", "-c", "kill -9 $$").returncode == 137


def test_what_a_command_leaves_running_is_ended(emulate: Command, here: Path) -> None:
    result = emulate("--", "sh", "-c", f"sleep 600 < /dev/null > {here}/out 2>&1 & exit 0")

    assert result.returncode == 0
    assert left(here) == []


def test_faults_of_a_file_strike_from_the_beginning(emulate: Command, here: Path) -> None:
    (here / "faults.json").write_text('[{"method": "storage.buckets.list", "error": {"code": "UNAVAILABLE"}}]')
    script = "import os, urllib.request; urllib.request.urlopen(os.environ['STORAGE_EMULATOR_HOST'] + '/storage/v1/b?project=emulated')"

    result = emulate("--inject", "faults.json", "--", sys.executable, "-c", script)

    assert result.returncode == 1
    assert "HTTP Error 503" in result.stderr


FAULTS = {
    "no-json.json": ("{", "is no list of faults"),
    "no-list.json": ("{}", "is no list of faults"),
    "no-method.json": ('[{"method": "storage.nothing", "delay_s": 1}]', "fault 1: 'storage.nothing' is no method here"),
    "no-effect.json": ('[{"method": "storage.*"}]', "fault 1: the fault at 'storage.*' does nothing"),
    "no-code.json": ('[{"method": "storage.*", "error": {"code": "NOPE"}}]', "fault 1: code is 'NOPE'"),
}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--"], "no command follows --"),
        (["--", "no-such-program"], "cannot run 'no-such-program'"),
        (["--project", "My Project", "--", "true"], "--project 'My Project' is no project"),
        (["--project", "my-project", "--project", "my-project"], "'my-project' is named twice"),
        (["--bucket", "No", "--", "true"], "--bucket 'No' cannot be made"),
        (["--bucket", "my-bucket", "--bucket", "my-bucket", "--", "true"], "--bucket 'my-bucket' is named twice"),
        (["--bucket", "my-bucket", "--bucket-label", "allowed", "--", "true"], "--bucket-label 'allowed' is no label; write KEY=VALUE"),
        (["--bucket", "my-bucket", "--bucket-label", "Key=v", "--", "true"], "--bucket-label 'Key=v' is no label"),
        (["--bucket", "my-bucket", "--bucket-label", "a=b", "--bucket-label", "a=c"], "--bucket-label 'a' is given twice"),
        (["--bucket-label", "a=b", "--", "true"], "--bucket-label labels the buckets of --bucket, and none is named"),
        (["--coverage", "--bucket-label", "a=b"], "--coverage prints and ends"),
        (["--root", "scenarios.py", "--", "true"], "cannot keep its things in"),
        (["--port", "70000"], "Invalid value for '--port'"),
        (["--port", "80", "--grpc-port", "80"], "cannot serve both"),
        (["--coverage", "--", "true"], "--coverage prints and ends"),
        (["--coverage", "--port", "1"], "--coverage prints and ends"),
        (["--inject", "none.json", "--", "true"], "none.json cannot be read: No such file"),
        *((["--inject", name, "--", "true"], says) for name, (_, says) in FAULTS.items()),
    ],
)
def test_bad_input_is_one_message_and_nothing_stays(emulate: Command, here: Path, arguments: list[str], says: str) -> None:
    for name, (text, _) in FAULTS.items():
        (here / name).write_text(text)

    result = emulate(*arguments)

    assert result.returncode == 64
    (said,) = [line for line in result.stderr.splitlines() if line.startswith("harness: ")]
    assert says in said
    assert left(here) == []


def test_a_port_that_is_taken_is_said(emulate: Command, here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for option in ("--port", "--grpc-port"):
            result = emulate(option, port, "--", "true")
            assert (result.returncode, result.stderr) == (
                64,
                f"harness: cannot listen on port {port} of loopback: Address already in use; name another, or 0 for any\n",
            )
    assert left(here) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_stands_until_it_is_interrupted_and_leaves_nothing(stand: Callable[..., Standing], here: Path, number: int) -> None:
    emulator = stand()
    emulator.run_job(here)
    assert processes_of(here) != []
    assert all(address.startswith("127.0.0.1:") for address in (emulator.line["grpc"], emulator.line["http"]))

    emulator.process.send_signal(number)

    said, errors = emulator.process.communicate(timeout=START_S_MAX)
    assert (emulator.process.returncode, said, errors) == (0, "", "")
    assert left(here) == []


def test_a_signal_is_passed_on_to_the_command(stand: Callable[..., Standing], here: Path) -> None:
    emulator = stand("--", "sh", "-c", f"trap 'exit 3' TERM; echo > {here}/up; while :; do sleep 0.05; done")
    wait_for((here / "up").exists)

    emulator.process.send_signal(signal.SIGTERM)

    assert emulator.process.wait(START_S_MAX) == 3
    assert left(here) == []


def test_a_command_that_withstands_is_killed_by_the_second_signal(stand: Callable[..., Standing], here: Path) -> None:
    emulator = stand("--", "sh", "-c", f"trap 'echo > {here}/heard' TERM; echo > {here}/up; while :; do sleep 0.05; done")
    wait_for((here / "up").exists)

    emulator.process.send_signal(signal.SIGTERM)
    wait_for((here / "heard").exists)
    emulator.process.send_signal(signal.SIGTERM)

    assert emulator.process.wait(START_S_MAX) == 137
    assert left(here) == []


ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def test_ctrl_c_of_a_terminal_reaches_the_command_once(here: Path, environment: dict[str, str]) -> None:
    script = f"trap 'echo >> {here}/heard' INT; echo > {here}/up; until [ -e {here}/go ]; do sleep 0.05; done; exit 5"
    command = [sys.executable, "-m", "harness", "emulate", "--", "sh", "-c", script]
    with subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *command],
        cwd=here,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as terminal:
        assert terminal.stdin is not None
        wait_for((here / "up").exists)
        terminal.stdin.write(b"\x03")
        terminal.stdin.flush()
        wait_for((here / "heard").exists)
        (harness,) = psutil.Process(terminal.pid).children()
        seen = harness.num_ctx_switches().voluntary
        wait_for(lambda: harness.num_ctx_switches().voluntary > seen + 10)  # it has looked ten times since
        (here / "go").touch()
        assert terminal.wait(START_S_MAX) == 5

    assert (here / "heard").read_text() == "\n"
    assert left(here) == []


def test_two_emulators_do_not_share_a_root_and_buckets_of_it_stay(stand: Callable[..., Standing], emulate: Command, here: Path) -> None:
    first = stand("--root", "kept", "--bucket", "my-bucket")

    result = emulate("--root", "kept", "--", "true")

    assert (result.returncode, result.stderr) == (
        64,
        f"harness: another emulator has {here.resolve()}/kept; end it, or name another directory\n",
    )
    first.process.terminate()
    assert first.process.wait(START_S_MAX) == 0
    assert (here / "kept/buckets/my-bucket").is_dir()
    assert emulate("--root", "kept", "--", "true").returncode == 0


@pytest.mark.parametrize("root", ["", "kept"])
def test_what_is_left_by_kill_9_is_found_by_clean(
    stand: Callable[..., Standing], harness: Command, environment: dict[str, str], here: Path, root: str
) -> None:
    emulator = stand(*(["--root", root] if root else []), "--", "sh", "-c", f"echo > {here}/beside; sleep 600")
    emulator.run_job(here)
    wait_for((here / "beside").exists)
    living = harness("clean", **environment)
    emulator.process.kill()
    emulator.process.wait()
    assert len(processes_of(here)) >= 2

    first, second = harness("clean", **environment), harness("clean", **environment)

    assert living.stdout == second.stdout == "nothing was left behind\n"
    assert first.returncode == 0, first.stdout
    assert first.stdout.count("removed process") >= 2
    assert left(here) == []
    assert Path(emulator.line["root"]).exists() == bool(root)


def test_what_a_run_on_an_emulator_leaves_by_kill_9_is_found_by_clean(harness: Command, environment: dict[str, str], here: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "run", "--target", "gcp", "--emulator", "a-slow-job-takes-its-time"],
        cwd=here,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: processes_of(here))
    ours = [child for child in psutil.Process(process.pid).children(recursive=True) if "HARNESS_RUN_ID" not in child.environ()]
    process.kill()
    for worker in ours:
        worker.kill()
    process.wait()
    psutil.wait_procs(ours, timeout=START_S_MAX)

    first, second = harness("clean", **environment), harness("clean", **environment)

    assert first.returncode == 0, first.stdout
    assert "removed process" in first.stdout
    assert second.stdout == "nothing was left behind\n"
    assert left(here) == []


def test_the_command_line_needs_no_package_of_google_until_it_is_used() -> None:
    script = "import sys, harness.cli.commands; print([name for name in sys.modules if name.partition('.')[0] in ('google', 'grpc')])"

    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_an_empty_root_is_not_the_current_directory(emulate: Command, here: Path) -> None:
    result = emulate("--root", "", "--", "true")

    assert result.returncode == 64
    assert "--root is empty" in result.stderr
    assert not (here / "emulator.lock").exists()


def test_a_temporary_directory_that_is_not_there_is_not_made(harness: Command, here: Path) -> None:
    result = harness("emulate", "--", "true", TMPDIR=str(here / "none"), XDG_STATE_HOME=str(here / "state"))

    assert result.returncode == 0, result.stderr
    assert not (here / "none").exists()
