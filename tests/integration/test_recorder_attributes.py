"""What is told of a file beside its content: said where a recovery could go by it, and passed over where every copy does it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.recorded import Stage, number


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


SAVES = """
import pathlib, shutil, tempfile, time
def tick():
    time.sleep(0.02)  # the kernel counts times of files by milliseconds
for step in (1, 2, 3):
    make(f"step_{step}", b"%d" % step)
    tick()
os.mkdir("inside")
make("inside/f")
"""

TOO_LATE = 2**40


@pytest.mark.parametrize(
    ("act", "where"),
    [
        ("os.chmod('step_1', 0o444)", "step_1"),
        ("os.chmod('inside', 0o500)", "inside"),
        ("os.chmod('inside', 0o500); os.chmod('inside', 0o700)", "inside"),
        ("os.fchmod(os.open('step_1', os.O_RDONLY), 0)", "step_1"),
        ("os.close(os.open('new', os.O_CREAT | os.O_WRONLY, 0o444))", "new"),
        ("os.umask(0o400); make('new')", "new"),
        ("os.mkdir('new', 0o500)", "new"),
        ("os.utime('step_1')", "step_1"),
        ("os.utime(os.open('step_1', os.O_RDONLY))", "step_1"),
        ("pathlib.Path('step_1').touch()", "step_1"),
        ("os.utime('step_3', (2e8, 2e8))", "step_3"),
        ("os.utime('inside', (2e8, 2e8)); os.utime('step_3', (2e8, 2e8))", "step_3"),
        ("make('step_4'); os.utime('step_4', (4, 4))", "step_4"),
        (f"make('step_4'); os.utime('step_1', ({TOO_LATE}, {TOO_LATE}))", "step_1"),
        ("os.symlink('step_1', 'link'); os.utime('link')", "step_1"),
        ("os.setxattr('step_1', 'user.done', b'yes')", "step_1"),
        ("os.setxattr(os.open('step_1', os.O_RDONLY), b'user.done', b'')", "step_1"),
        ("os.setxattr('step_1', 'user.done', b''); os.removexattr('step_1', 'user.done')", "step_1"),
    ],
)
def test_what_a_recovery_could_go_by_is_said(stage: Stage, act: str, where: str) -> None:
    recorded = stage.run_blindly(SAVES + act)

    assert recorded.blind[-1] == ("call", where)
    assert set(recorded.blind) <= {("call", where), ("call", "inside")}


@pytest.mark.parametrize(
    "act",
    [
        "shutil.copy('step_1', 'copy')",
        "shutil.copy2('step_1', 'copy')",
        "shutil.copy2('/etc/passwd', 'copy'); tick(); make('after')",
        "make(outside + '/f'); os.utime(outside + '/f', (2e8, 2e8)); shutil.copy2(outside + '/f', 'copy')",
        "os.mkdir(outside + '/tree'); make(outside + '/tree/f'); shutil.copytree(outside + '/tree', 'tree')",
        "shutil.copytree('inside', 'tree')",
        "subprocess.run(['cp', '-a', 'inside', 'tree'], check=True)",
        "descriptor, name = tempfile.mkstemp(dir='.'); os.fchmod(descriptor, 0o644); os.rename(name, 'new')",
        "os.chmod('step_1', 0o664)",
        "os.chmod('step_1', 0o755)",
        "os.chmod('step_1', os.stat('step_1').st_mode & 0o7777)",
        "os.utime('inside/f')",
        "os.utime('step_3', (os.stat('step_3').st_atime + 9, os.stat('step_3').st_mtime))",
        "pathlib.Path('beat').touch(); make('after'); tick(); pathlib.Path('beat').touch()",
        "make('step_4'); os.utime('step_4')",
        "os.utime('.'); os.chmod('.', 0o750)",
        "fails('ENOENT', os.utime, 'none'); fails('ENOENT', os.chmod, 'none', 0); fails('ENOENT', os.setxattr, 'none', 'user.a', b'')",
        "fails('ENODATA', os.removexattr, 'step_1', 'user.none')",
        "make(outside + '/f'); os.chmod(outside + '/f', 0); os.utime(outside + '/f', (1, 1)); os.setxattr(outside + '/f', 'user.a', b'')",
    ],
)
def test_what_every_copy_and_temporary_file_does_is_passed_over(stage: Stage, act: str) -> None:
    stage.run(SAVES + act)


@pytest.mark.parametrize(
    "act",
    [
        "make(outside + '/new'); os.chmod(outside + '/new', 0o444); os.rename(outside + '/new', 'new')",
        "make(outside + '/new'); os.chmod(outside + '/new', 0o444); os.link(outside + '/new', 'new')",
        "os.mkdir(outside + '/new', 0o500); os.rename(outside + '/new', 'new')",
        "make(outside + '/new'); os.setxattr(outside + '/new', 'user.done', b'yes'); os.rename(outside + '/new', 'new')",
    ],
)
def test_so_is_what_was_marked_before_it_came(stage: Stage, act: str) -> None:
    assert stage.run_blindly(SAVES + act).blind == [("call", "new")]


def test_what_a_temporary_file_has_is_no_mark_when_it_comes(stage: Stage) -> None:
    act = "descriptor, name = tempfile.mkstemp(dir=outside); os.rename(name, 'new'); os.rename(tempfile.mkdtemp(dir=outside), 'made')"

    assert stage.run_blindly(SAVES + act).blind == []


def test_calls_fare_as_without_the_recorder(stage: Stage) -> None:
    stage.run_blindly("""
make("f")
os.chmod("f", 0o600)
os.utime("f", ns=(5, 7))
os.setxattr("f", "user.a", b"value")
fails("EEXIST", os.setxattr, "f", "user.a", b"", os.XATTR_CREATE)
assert (os.stat("f").st_mode & 0o777, os.stat("f").st_mtime_ns, os.getxattr("f", "user.a")) == (0o600, 7, b"value")
fails("E2BIG", os.setxattr, "f", "user.b", bytes(70000))
os.symlink("f", "link")
fails("EPERM", os.setxattr, "link", "user.a", b"", follow_symlinks=False)
os.removexattr("link", "user.a")
assert os.listxattr("f") == []
""")


def test_of_many_alike_it_is_said_once(stage: Stage) -> None:
    recorded = stage.run_blindly("for step in range(50):\n    make(f'step_{step}')\n    os.chmod(f'step_{step}', 0o444)")

    assert recorded.blind == [("call", "step_0")]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="aarch64 has no such calls")
@pytest.mark.parametrize("act", ["132, b'step_1', 0", "235, b'step_1', 0", "261, -100, b'step_1', 0", "90, b'step_1', 0o444"])
def test_older_calls_are_seen_too(stage: Stage, act: str) -> None:
    assert stage.run_blindly(f"{SAVES}\ncall({act})").blind == [("call", "step_1")]


def test_the_newest_ways_are_seen_too(stage: Stage) -> None:
    recorded = stage.run_blindly(f"{SAVES}\ncall({number('fchmodat2')}, -100, b'step_1', 0o444, 0)")
    assert recorded.blind == [("call", "step_1")]


@pytest.mark.parametrize("act", ["os.unlink('s')", "os.rename('s', 't')", "pass"])
def test_a_socket_is_said_even_if_it_comes_and_goes(stage: Stage, act: str) -> None:
    recorded = stage.run_blindly(f"""
assert not os.path.exists("s")
with socket.socket(socket.AF_UNIX) as door:
    door.bind("s")
    {act}
""")

    assert recorded.blind[0] == ("call", "s")


def test_sockets_elsewhere_and_of_other_families_are_passed_over(stage: Stage) -> None:
    stage.run("""
with socket.socket(socket.AF_UNIX) as door, socket.socket(socket.AF_UNIX) as hidden, socket.socket() as public:
    door.bind(outside + "/s")
    hidden.bind("\\0s%d" % os.getpid())
    public.bind(("127.0.0.1", 0))
    make("s")
    with socket.socket(socket.AF_UNIX) as late:
        fails("EADDRINUSE", late.bind, "s")
""")
