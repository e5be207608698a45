"""The programs of the bundle."""

from harness.kind.bundle.modules import GoPrograms
from harness.kind.versions import COREDNS, ETCD, KIND, KUBERAY, KUBERNETES, KUEUE

_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR = KUBERNETES.removeprefix("v").split(".")[:2]

KUBERNETES_PROGRAMS = GoPrograms(
    name="kubernetes",
    module="k8s.io/kubernetes",
    version=KUBERNETES,
    packages=tuple(
        f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubeadm", "kubectl")
    ),
    expected_s=640,
    has_own_module=True,
    linker_flags=f"-X {_VERSION}.gitVersion={KUBERNETES} -X {_VERSION}.gitMajor={_MAJOR} -X {_VERSION}.gitMinor={_MINOR}",
)
ETCD_PROGRAM = GoPrograms(
    name="etcd",
    module="go.etcd.io/etcd/server/v3",
    version=ETCD,
    packages=("go.etcd.io/etcd/server/v3",),
    expected_s=85,
    has_own_module=True,
)
COREDNS_PROGRAM = GoPrograms(
    name="coredns", module="github.com/coredns/coredns", version=COREDNS, packages=("github.com/coredns/coredns",), expected_s=190
)
KIND_PROGRAM = GoPrograms(name="kind", module="sigs.k8s.io/kind", version=KIND, packages=("sigs.k8s.io/kind",), expected_s=15)
KUEUE_PROGRAM = GoPrograms(
    name="kueue", module="sigs.k8s.io/kueue", version=KUEUE, packages=("sigs.k8s.io/kueue/cmd/kueue",), expected_s=400
)
KUBERAY_PROGRAM = GoPrograms(
    name="kuberay",
    module="github.com/ray-project/kuberay/ray-operator",
    version=KUBERAY,
    packages=("github.com/ray-project/kuberay/ray-operator",),
    expected_s=170,
)
