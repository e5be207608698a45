"""The storage supervisor in front of real processes: what they see, what is counted, and how they end."""

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.capabilities import StorageRule
from harness.targets.local.storage_rules import StorageRules, interposed, interposer_available

PATIENCE_S = 120.0

PREAMBLE = """
import ctypes, errno, os, signal, subprocess, sys, threading, time
root, outside = sys.argv[1:3]
def attempt(name, act):
    try:
        act()
        result = "ok"
    except OSError as error:
        result = errno.errorcode[error.errno]
    sys.stdout.write(f"{name} {result}\\n")
    sys.stdout.flush()
def make(path, content="x"):
    with open(path, "w") as file:
        file.write(content)
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
libc = ctypes.CDLL(None, use_errno=True)
"""


class Stage:
    """A directory under supervision, one beside it, and the way to run jobs."""

    def __init__(self, directory: Path) -> None:
        self.root, self.outside, self.control = directory / "root", directory / "outside", directory / "control"
        self.root.mkdir()
        self.outside.mkdir()
        self.rules = StorageRules(self.control)
        self.started: list[subprocess.Popen[str]] = []

    def start(self, command: tuple[str, ...], *, rule: StorageRule | None = None, **options: object) -> subprocess.Popen[str]:
        line = interposed(command, control=self.control, root=self.root, rule=rule)
        pipe = subprocess.PIPE
        process: subprocess.Popen[str] = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)  # type: ignore[call-overload]
        self.started.append(process)
        return process

    def start_python(self, code: str, *, rule: StorageRule | None = None, **options: object) -> subprocess.Popen[str]:
        return self.start((sys.executable, "-c", PREAMBLE + code, str(self.root), str(self.outside)), rule=rule, **options)

    def python(self, code: str, *, rule: StorageRule | None = None) -> dict[str, str]:
        """Run a job of ``attempt`` lines to its end, and say how each went."""
        output, errors = self.start_python(code, rule=rule).communicate(timeout=PATIENCE_S)
        assert errors == ""
        return dict(line.split() for line in output.splitlines())

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.005)


def has_ended(pid: int) -> bool:
    """Whether a process that is not our child is gone, by the kernel's word."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE_S)[0])
    finally:
        os.close(descriptor)


def test_this_machine_can_supervise() -> None:
    assert interposer_available() == ""


def test_a_checkout_that_is_not_installed_can_supervise(stage: Stage) -> None:
    command, rule = ("mkdir", str(stage.root / "a")), StorageRule(error="EROFS")
    interpreter, *rest = interposed(command, control=stage.control, root=stage.root, rule=rule)

    done = subprocess.run([interpreter, "-I", "-S", *rest], capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert (done.returncode, stage.rules.hits()) == (1, 1), done.stderr


# ---- who sees an error -------------------------------------------------------------------------------------------------


def test_a_full_disk_is_seen_by_python(stage: Stage) -> None:
    seen = stage.python(
        'attempt("mkdir", lambda: os.mkdir(root + "/a")); attempt("create", lambda: make(root + "/f"))', rule=StorageRule(error="ENOSPC")
    )

    assert seen == {"mkdir": "ENOSPC", "create": "ENOSPC"}
    assert list(stage.root.iterdir()) == []


def test_a_full_disk_is_seen_by_compiled_code(stage: Stage) -> None:
    code = """
descriptor = os.open(root + "/kept", os.O_RDWR)
attempt("mkdir", lambda: check(libc.mkdir((root + "/a").encode(), 0o755)))
attempt("write", lambda: check(libc.pwrite(descriptor, b"abc", 3, 0)))
"""
    (stage.root / "kept").write_text("old")

    assert stage.python(code, rule=StorageRule(error="ENOSPC")) == {"mkdir": "ENOSPC", "write": "ENOSPC"}
    assert (stage.root / "kept").read_text() == "old"


def test_a_full_disk_is_seen_by_child_processes_of_another_language(stage: Stage) -> None:
    process = stage.start(("sh", "-c", f"mkdir {stage.root}/a; (echo x > {stage.root}/f); echo done"), rule=StorageRule(error="ENOSPC"))
    output, errors = process.communicate(timeout=PATIENCE_S)

    assert output == "done\n"
    assert "No space left on device" in errors
    assert list(stage.root.iterdir()) == []
    assert stage.rules.hits() == 2


def test_a_full_disk_is_seen_on_every_thread(stage: Stage) -> None:
    code = """
threads = [threading.Thread(target=attempt, args=(f"t{n}", lambda n=n: os.mkdir(f"{root}/{n}"))) for n in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    assert stage.python(code, rule=StorageRule(error="ENOSPC")) == {f"t{n}": "ENOSPC" for n in range(16)}
    assert stage.rules.hits() == 16


# ---- which paths -------------------------------------------------------------------------------------------------------


def test_other_directories_are_left_alone(stage: Stage) -> None:
    code = """
attempt("mkdir", lambda: os.mkdir(outside + "/a"))
attempt("write", lambda: make(outside + "/f"))
attempt("near", lambda: os.mkdir(root + "-not"))
"""

    assert set(stage.python(code, rule=StorageRule(error="EROFS")).values()) == {"ok"}
    assert stage.rules.hits() == 0


@pytest.mark.parametrize(
    "act",
    [
        'os.mkdir(root + "/a")',
        'os.mkdir(outside + "/../root/a")',
        '(os.chdir(root), os.mkdir("a"))',
        'os.mkdir("a", dir_fd=os.open(root, os.O_RDONLY))',
        'os.mkdir(outside + "/link/a")',
        'make(outside + "/file-link")',
        'os.rename(root + "/kept", outside + "/moved")',
        'os.rename(outside + "/other", root + "/moved")',
        'os.replace(root + "/kept", root + "/moved")',
        'os.rename("other", "moved", src_dir_fd=os.open(outside, os.O_RDONLY), dst_dir_fd=os.open(root, os.O_RDONLY))',
        'os.symlink("x", root + "/a")',
        'os.link(outside + "/other", root + "/a")',
        'os.unlink(root + "/kept")',
        'os.truncate(root + "/kept", 1)',
        'os.truncate(outside + "/file-link", 1)',
        'os.mkfifo(root + "/a")',
        "check(libc.syscall(437, -100, (root + '/a').encode(), (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o644), 24))",
        "os.open(root, os.O_TMPFILE | os.O_RDWR)",
    ],
)
def test_a_path_is_found_however_it_is_named(stage: Stage, act: str) -> None:
    (stage.root / "kept").write_text("old")
    (stage.outside / "other").write_text("old")
    (stage.outside / "link").symlink_to(stage.root)
    (stage.outside / "file-link").symlink_to(stage.root / "kept")
    seen = stage.python(f'attempt("act", lambda: {act})', rule=StorageRule(error="EROFS"))

    assert seen == {"act": "EROFS"}
    assert stage.rules.hits() == 1
    assert [path.name for path in stage.root.iterdir()] == ["kept"]
    assert (stage.root / "kept").read_text() == "old"


def test_reading_is_not_counted(stage: Stage) -> None:
    (stage.root / "kept").write_text("old")
    code = 'attempt("read", lambda: open(root + "/kept").read()); attempt("list", lambda: os.listdir(root))'

    assert stage.python(code, rule=StorageRule(error="EROFS")) == {"read": "ok", "list": "ok"}
    assert stage.rules.hits() == 0


# ---- which operations fail with which error ------------------------------------------------------------------------------

OPERATIONS = """
held = os.open(root + "/held", os.O_RDWR)
other = os.open(outside + "/other", os.O_RDWR)
print("open", flush=True)
sys.stdin.readline()
attempt("create", lambda: os.close(os.open(root + "/new", os.O_CREAT | os.O_WRONLY)))
attempt("open", lambda: os.close(os.open(root + "/kept", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)))
attempt("write", lambda: os.write(held, b"x"))
attempt("writev", lambda: os.writev(held, [b"x", b"y"]))
attempt("pwrite", lambda: os.pwrite(held, b"x", 0))
attempt("sendfile", lambda: os.sendfile(held, other, 0, 1))
attempt("copy", lambda: os.copy_file_range(other, held, 1, 0, 0))
attempt("fsync", lambda: os.fsync(held))
attempt("fdatasync", lambda: os.fdatasync(held))
attempt("truncate", lambda: os.ftruncate(held, 1))
attempt("allocate", lambda: os.posix_fallocate(held, 0, 4096))
attempt("mkdir", lambda: os.mkdir(root + "/directory"))
attempt("rename", lambda: os.rename(root + "/kept", root + "/moved"))
attempt("unlink", lambda: os.unlink(root + "/gone"))
attempt("rmdir", lambda: os.rmdir(root + "/empty"))
attempt("symlink", lambda: os.symlink("x", root + "/symlink"))
"""
NEED_ROOM = {"create", "write", "writev", "pwrite", "sendfile", "copy", "allocate", "mkdir", "symlink"}
MOVE_DATA = {"write", "writev", "pwrite", "sendfile", "copy", "fsync", "fdatasync", "truncate", "allocate"}
ALL = NEED_ROOM | MOVE_DATA | {"open", "rename", "unlink", "rmdir"}


@pytest.mark.parametrize(
    ("error", "failing"),
    [("ENOSPC", NEED_ROOM), ("EDQUOT", NEED_ROOM), ("EIO", MOVE_DATA), ("ESTALE", MOVE_DATA), ("EROFS", ALL)],
)
def test_an_error_is_met_by_the_operations_that_real_storage_refuses(stage: Stage, error: str, failing: set[str]) -> None:
    for name in ("held", "kept", "gone"):
        (stage.root / name).write_text("old")
    (stage.outside / "other").write_text("old")
    (stage.root / "empty").mkdir()
    process = stage.start_python(OPERATIONS)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    stage.rules.set(StorageRule(error=error))
    output, _ = process.communicate("go\n", timeout=PATIENCE_S)
    seen = dict(line.split() for line in output.splitlines())

    assert seen == {name: error if name in failing else "ok" for name in ALL}
    assert stage.rules.hits() == len(failing)


def test_a_rule_for_a_number_of_operations_ends_by_itself(stage: Stage) -> None:
    code = 'for n in range(5): attempt(f"mkdir-{n}", lambda: os.mkdir(f"{root}/{n}"))'
    seen = stage.python(code, rule=StorageRule(error="ENOSPC", operations=3))

    assert list(seen.values()) == ["ENOSPC", "ENOSPC", "ENOSPC", "ok", "ok"]
    assert stage.rules.hits() == 3


def test_io_uring_is_refused_so_that_nothing_is_written_past_the_supervisor(stage: Stage) -> None:
    assert stage.python('attempt("setup", lambda: check(libc.syscall(425, 1, ctypes.create_string_buffer(120))))') == {"setup": "ENOSYS"}


# ---- slow storage --------------------------------------------------------------------------------------------------------


def test_held_operations_do_not_wait_for_one_another(stage: Stage) -> None:
    code = """
threads = [threading.Thread(target=os.mkdir, args=(f"{root}/{n}",)) for n in range(8)]
began = time.monotonic()
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("took", time.monotonic() - began)
"""
    took_s = float(stage.python(code, rule=StorageRule(delay_s=0.5))["took"])

    assert 0.5 <= took_s < 8 * 0.5 / 2
    assert len(list(stage.root.iterdir())) == stage.rules.hits() == 8


def test_while_one_thread_is_held_the_others_go_on_and_a_cleared_rule_lets_it_go(stage: Stage) -> None:
    code = """
thread = threading.Thread(target=os.mkdir, args=(root + "/slow",))
thread.start()
make(outside + "/f")
print("outside is written", flush=True)
thread.join()
print("the thread is back", flush=True)
"""
    process = stage.start_python(code, rule=StorageRule(delay_s=3600))
    assert process.stdout is not None
    assert process.stdout.readline() == "outside is written\n"
    wait_until(lambda: stage.rules.hits() == 1)
    assert not (stage.root / "slow").exists()
    stage.rules.clear()

    assert process.communicate(timeout=PATIENCE_S) == ("the thread is back\n", "")
    assert (stage.root / "slow").is_dir()


def test_an_operation_can_be_held_for_ever(stage: Stage) -> None:
    process = stage.start_python('attempt("mkdir", lambda: os.mkdir(root + "/a"))', rule=StorageRule(delay_s=1e12))
    wait_until(lambda: stage.rules.hits() == 1)
    stage.rules.clear()

    assert process.communicate(timeout=PATIENCE_S) == ("mkdir ok\n", "")


def test_the_end_of_a_job_whose_socket_was_cleared_away_is_still_its_own(stage: Stage) -> None:
    process = stage.start_python('print("ready", flush=True); sys.stdin.readline(); sys.exit(9)')
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    stage.control.unlink()
    process.communicate("go\n", timeout=PATIENCE_S)

    assert process.returncode == 9


def test_a_signal_does_not_interrupt_a_held_operation_as_no_disk_would(stage: Stage) -> None:
    code = """
signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
attempt("mkdir", lambda: os.mkdir(root + "/a"))
"""
    process = stage.start_python(code, rule=StorageRule(delay_s=3600))
    wait_until(lambda: stage.rules.hits() == 1)
    process.send_signal(signal.SIGUSR1)
    stage.rules.clear()

    assert process.communicate(timeout=PATIENCE_S)[0].splitlines() == ["handled", "mkdir ok"]


# ---- how it ends -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 42, 143])
def test_the_exit_code_passes_through(stage: Stage, code: int) -> None:
    assert stage.start(("sh", "-c", f"exit {code}")).wait(PATIENCE_S) == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_a_death_by_signal_passes_through(stage: Stage, number: signal.Signals) -> None:
    assert stage.start(("sh", "-c", f"kill -{int(number)} $$")).wait(PATIENCE_S) == -number


def test_a_command_that_is_not_there_ends_as_in_a_shell(stage: Stage) -> None:
    process = stage.start(("no-such-command",))
    _, errors = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, errors) == (127, "no-such-command: No such file or directory\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_to_the_first_process_reaches_the_job(stage: Stage, number: signal.Signals) -> None:
    code = f"""
def handle(number, frame):
    print("got", number, flush=True)
    sys.exit(143)
signal.signal({int(number)}, handle)
print("ready", flush=True)
while True: time.sleep(0.1)  # pause() would miss a signal that comes just before it
"""
    process = stage.start_python(code)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert (output, process.returncode) == (f"got {int(number)}\n", 143)


def test_the_notice_of_a_move_and_its_end_reach_the_job(stage: Stage) -> None:
    """The job stops itself: the kernel discards the default stop where the process group is orphaned, as under some test runners."""
    code = """
signal.signal(signal.SIGTSTP, lambda *_: os.kill(os.getpid(), signal.SIGSTOP))
print(os.getpid(), flush=True)
sys.stdin.readline()
print("ran on", flush=True)
"""
    process = stage.start_python(code)
    assert process.stdout is not None
    job = int(process.stdout.readline())

    def state() -> str:
        return Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[0]

    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: state() == "T")
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: state() != "T")

    assert process.communicate("go\n", timeout=PATIENCE_S)[0] == "ran on\n"


def test_killing_the_supervisor_kills_the_job(stage: Stage) -> None:
    process = stage.start_python("print(os.getpid(), flush=True); signal.pause()")
    assert process.stdout is not None
    job = int(process.stdout.readline())
    process.kill()

    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert has_ended(job)


def test_killing_the_group_leaves_nobody(stage: Stage) -> None:
    code = """
child = subprocess.Popen(["sleep", "1000"])
print(os.getpid(), child.pid, flush=True)
signal.pause()
"""
    process = stage.start_python(code, start_new_session=True)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    os.killpg(process.pid, signal.SIGKILL)

    assert all(has_ended(pid) for pid in pids)


# ---- what the job can notice -------------------------------------------------------------------------------------------------


def test_environment_directory_and_signal_dispositions_are_those_of_the_caller(stage: Stage) -> None:
    code = (
        'import json; print(json.dumps([dict(os.environ), os.getcwd(), open("/proc/self/status").read().split("SigIgn:")[1].split()[0]]))'
    )
    program = (sys.executable, "-c", "import os, sys\n" + code)
    environment = {"LC_ALL": "C", "ODD": "a=b\u00e9", "PATH": os.environ["PATH"]}
    bare = subprocess.run(program, env=environment, cwd=stage.outside, capture_output=True, text=True, check=True)
    output, _ = stage.start(program, env=environment, cwd=stage.outside).communicate(timeout=PATIENCE_S)

    assert json.loads(output) == json.loads(bare.stdout)


def test_the_job_directory_cannot_stand_in_front_of_the_standard_library(stage: Stage) -> None:
    (stage.outside / "json.py").write_text("raise SystemExit('not the json of the standard library')")
    process = stage.start(("sh", "-c", "exit 5"), cwd=stage.outside)
    process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 5


def test_the_supervisor_imports_only_the_standard_library(stage: Stage) -> None:
    """It starts in front of every attempt; this is what keeps the start short."""
    line = interposed(("true",), control=stage.control, root=stage.root)
    done = subprocess.run((line[0], "-X", "importtime", *line[1:]), capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    imported = {entry.rpartition("|")[2].strip() for entry in done.stderr.splitlines()}

    assert "harness.targets.local.supervisor" in imported
    assert imported.isdisjoint({"msgspec", "psutil", "dataclasses", "harness.capabilities", "harness.targets.local.target"})


def test_the_module_can_be_run_by_name(stage: Stage) -> None:
    line = (sys.executable, "-P", "-m", "harness.targets.local.interposer", "--control", str(stage.control), "--root", str(stage.root))

    assert subprocess.run((*line, "--", "sh", "-c", "exit 3"), timeout=PATIENCE_S, check=False).returncode == 3


def test_no_privilege_is_needed() -> None:
    """As root, the supervisor becomes nobody first; without root it has none anyway."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o777)
        root = directory / "root"
        root.mkdir()
        root.chmod(0o777)
        code = f"""
import os
import harness.targets.local.interposer as interposer
from harness.supervision import seccomp
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    seccomp.control(4, 1)
interposer.main(
    ["--control", "{directory}/control", "--root", "{root}", "--rule", '{{"error": "ENOSPC"}}', "--"]
    + ["sh", "-c", "id -u; mkdir {root}/a"]
)
"""
        done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, timeout=PATIENCE_S, check=False)

        assert "No space left on device" in done.stderr
        assert (int(done.stdout) != 0, done.returncode) == (True, 1)
        assert StorageRules(directory / "control").hits() == 1


# ---- the control socket ---------------------------------------------------------------------------------------------------------


def test_hits_are_known_after_the_job_has_ended_and_a_rule_is_refused_then(stage: Stage) -> None:
    stage.python('attempt("mkdir", lambda: os.mkdir(root + "/a"))', rule=StorageRule(error="EROFS"))

    assert stage.rules.hits() == 1
    assert not stage.control.exists()
    with pytest.raises(LookupError, match="the attempt has ended"):
        stage.rules.set(StorageRule(error="EIO"))
    with pytest.raises(LookupError, match="the attempt has ended"):
        stage.rules.clear()


def test_a_supervisor_that_was_killed_has_ended(stage: Stage) -> None:
    process = stage.start_python("print('ready', flush=True); signal.pause()")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait(PATIENCE_S)

    with pytest.raises(LookupError, match="the attempt has ended"):
        stage.rules.set(StorageRule(error="EIO"))


def test_a_rule_taken_back_before_the_supervisor_listens_does_not_come_alive(stage: Stage) -> None:
    stage.rules.clear()

    assert stage.python('attempt("mkdir", lambda: os.mkdir(root + "/a"))', rule=StorageRule(error="EROFS")) == {"mkdir": "ok"}


def test_a_rule_set_before_the_supervisor_listens_is_in_force_from_the_first_operation(stage: Stage) -> None:
    stage.rules.set(StorageRule(error="EROFS"))

    assert stage.python('attempt("mkdir", lambda: os.mkdir(root + "/a"))') == {"mkdir": "EROFS"}
    assert stage.rules.hits() == 1


def test_a_request_to_a_stopped_supervisor_is_met_when_it_goes_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.targets.local.storage_rules.CONTROL_TIMEOUT_S", 0.1)
    process = stage.start_python('print("ready", flush=True); sys.stdin.readline(); attempt("mkdir", lambda: os.mkdir(root + "/a"))')
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGSTOP)
    stage.rules.set(StorageRule(error="EROFS"))
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: Path(f"{stage.control}.hits").read_bytes() != b"")

    assert process.communicate("go\n", timeout=PATIENCE_S)[0] == "mkdir EROFS\n"


def test_hits_of_the_rule_before_are_none_of_a_rule_that_is_not_in_force_yet(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.targets.local.storage_rules.CONTROL_TIMEOUT_S", 0.1)
    process = stage.start_python('attempt("mkdir", lambda: os.mkdir(root + "/a")); sys.stdin.readline()', rule=StorageRule(error="EROFS"))
    wait_until(lambda: stage.rules.hits() == 1)
    process.send_signal(signal.SIGSTOP)
    stage.rules.set(StorageRule(error="ENOSPC"))

    assert stage.rules.hits() == 0
    process.send_signal(signal.SIGCONT)
    assert process.communicate("go\n", timeout=PATIENCE_S)[0] == "mkdir EROFS\n"
    assert stage.rules.hits() == 0


def test_a_new_rule_starts_to_count_again_and_a_cleared_one_keeps_its_count(stage: Stage) -> None:
    code = 'for line in sys.stdin: attempt("mkdir", lambda: os.mkdir(root + "/a"))'
    process = stage.start_python(code, rule=StorageRule(error="EROFS"))
    assert process.stdin is not None
    assert process.stdout is not None

    def turn() -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        return process.stdout.readline().split()[1]

    assert [turn(), turn(), stage.rules.hits()] == ["EROFS", "EROFS", 2]
    stage.rules.set(StorageRule(error="ENOSPC"))
    assert [stage.rules.hits(), turn(), stage.rules.hits()] == [0, "ENOSPC", 1]
    stage.rules.clear()
    assert [turn(), stage.rules.hits()] == ["ok", 1]


@pytest.mark.parametrize(
    "garbage", [b"\xff\xfe\n", b"[]\n", b'{"op": "dance"}\n', b'{"op": "set", "rule": {"error": "EWHAT"}}\n', b'{"op": "set"}\n']
)
def test_garbage_on_the_socket_is_answered_and_disturbs_nobody(stage: Stage, garbage: bytes) -> None:
    process = stage.start_python('print("ready", flush=True); sys.stdin.readline(); attempt("mkdir", lambda: os.mkdir(root + "/a"))')
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        silent.connect(str(stage.control))
        client.settimeout(PATIENCE_S)
        client.connect(str(stage.control))
        client.sendall(garbage)
        assert "problem" in json.loads(client.recv(4096))

    assert process.communicate("go\n", timeout=PATIENCE_S)[0] == "mkdir ok\n"


def test_the_socket_and_the_count_are_the_users_own(stage: Stage) -> None:
    process = stage.start_python('print("ready", flush=True); sys.stdin.readline()')
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    assert stat.S_IMODE(stage.control.stat().st_mode) & 0o022 == 0
    assert stat.S_IMODE(Path(f"{stage.control}.hits").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--root", "/", "--", "true"], "--control"),
        (["--control", "c", "--root", "/"], "no command after --"),
        (["--control", "c", "--root", "/", "--rule", "{}x", "--", "true"], "--rule"),
        (["--control", "/no/such/directory/c", "--root", "/", "--", "true"], "cannot supervise 'true'"),
        (["--control", "c" * 200, "--root", "/", "--", "true"], "too long"),
    ],
)
def test_a_wrong_command_line_is_refused_before_the_job_starts(tmp_path: Path, arguments: list[str], said: str) -> None:
    line = (sys.executable, "-P", "-m", "harness.targets.local.interposer", *arguments)
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert done.returncode in (2, 70)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


# ---- a real checkpointer ------------------------------------------------------------------------------------------------------------

ORBAX_JOB = """
import os
import sys
import jax.numpy as jnp
import orbax.checkpoint as ocp
manager = ocp.CheckpointManager(sys.argv[1])
for step in (1, 2, 3):
    sys.stdin.readline()
    try:
        manager.save(step, args=ocp.args.StandardSave({"w": jnp.full((64, 64), float(step))}), force=True)
        manager.wait_until_finished()
        print(step, "saved", flush=True)
    except Exception as error:
        print(step, "failed", repr(error).replace("\\n", " "), flush=True)
        manager = ocp.CheckpointManager(sys.argv[1])
latest = ocp.CheckpointManager(sys.argv[1]).latest_step()
os._exit(0 if latest == 3 else 1)  # a failed save leaves threads of Orbax that wait for minutes, and an ordinary exit waits for them
"""


def test_orbax_meets_a_full_disk_and_goes_on_when_there_is_room_again(stage: Stage) -> None:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    process = stage.start((sys.executable, "-c", ORBAX_JOB, str(stage.root)), env=environment)

    def turn() -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        return process.stdout.readline()

    assert turn() == "1 saved\n"
    stage.rules.set(StorageRule(error="ENOSPC"))
    failed = turn()
    assert failed.startswith("2 failed")
    assert "No space left on device" in failed or "ENOSPC" in failed or "RESOURCE_EXHAUSTED" in failed
    assert stage.rules.hits() >= 1
    stage.rules.clear()
    assert turn() == "3 saved\n"

    assert process.wait(120) == 0
