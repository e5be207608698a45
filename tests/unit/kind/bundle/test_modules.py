"""Go programs: what their go.mod says, and what changes their key."""

import msgspec

from harness.kind.bundle.modules import STAGED, own_module
from harness.kind.bundle.programs import ETCD_PROGRAM, KUBERNETES_PROGRAMS

PUBLISHED = """
replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)

replace example.org/x => example.org/y v1.0.0
"""


def test_staged_modules_are_read_from_the_published_file() -> None:
    assert STAGED.findall(PUBLISHED) == ["k8s.io/api", "k8s.io/client-go"]


def test_staged_modules_are_replaced_by_their_releases() -> None:
    written = own_module("k8s.io/kubernetes", "v1.34.4", ("k8s.io/kubernetes/cmd/kubelet",), ["k8s.io/api"])

    assert "require k8s.io/kubernetes v1.34.4\n" in written
    assert "tool k8s.io/kubernetes/cmd/kubelet\n" in written
    assert "replace k8s.io/api => k8s.io/api v0.34.4\n" in written


def test_the_key_changes_with_version_programs_and_flags() -> None:
    changed = [
        msgspec.structs.replace(KUBERNETES_PROGRAMS, version="v1.34.5"),
        msgspec.structs.replace(KUBERNETES_PROGRAMS, packages=KUBERNETES_PROGRAMS.packages[:1]),
        msgspec.structs.replace(KUBERNETES_PROGRAMS, linker_flags=""),
        ETCD_PROGRAM,
    ]

    assert len({piece.key() for piece in (*changed, KUBERNETES_PROGRAMS)}) == 5


def test_the_key_does_not_change_with_what_is_only_said() -> None:
    assert msgspec.structs.replace(KUBERNETES_PROGRAMS, expected_s=1).key() == KUBERNETES_PROGRAMS.key()


def test_kubernetes_says_its_version() -> None:
    assert f"gitVersion={KUBERNETES_PROGRAMS.version}" in KUBERNETES_PROGRAMS.linker_flags
