"""What the kernel tells of a thread is read whatever its name is."""

import pytest

from harness.supervision.recorder.thread_status import STATUS

TEXT = b"""Name:\t%s
Umask:\t0027
State:\tS (sleeping)
Tgid:\t101
Ngid:\t0
Pid:\t103
PPid:\t1
TracerPid:\t0
Uid:\t1\t2\t3\t4
Gid:\t5\t6\t7\t8
FDSize:\t256
Groups:\t%s
NStgid:\t101
VmPeak:\t    5000 kB
SigCgt:\t0000000000000000
CapInh:\t0000000000000000
CapPrm:\t000001ffffffffff
CapEff:\t000000000000001f
CapBnd:\t000001ffffffffff
"""


@pytest.mark.parametrize("name", [b"python3", b"Tgid:\\t7", b"a b", b""])
@pytest.mark.parametrize("groups", [b"", b"27 100 "])
def test_the_ids_of_the_file_system_count(name, groups) -> None:
    found = STATUS.search(TEXT % (name, groups))

    assert found is not None
    assert found.groups() == (b"0027", b"101", b"4", b"8", groups, b"000000000000001f")


def test_a_zombie_tells_nothing() -> None:
    assert STATUS.search((TEXT % (b"python3", b"")).replace(b"Umask:\t0027\n", b"")) is None
