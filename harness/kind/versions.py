"""The versions of everything that a cluster is made of. A change here is a new cluster: the old one is then refused."""

KUBERNETES = "v1.34.4"
"""What guide B's GKE runs (1.34); 1.35 would refuse cgroup v1."""

ETCD = "v3.6.13"
ETCD_IMAGE_TAG = "3.6.5-0"
"""The tag that kubeadm 1.34 asks for; it also decides which flags it passes. Source: kubeadm constants, DefaultEtcdVersion."""

COREDNS = "v1.12.1"
"""What kubeadm 1.34 asks for. Source: kubeadm constants, CoreDNSVersion."""

PAUSE_TAGS = ("3.10", "3.10.1")
"""What containerd's and kubeadm's defaults ask for."""

KIND = "v0.33.0"
NODE_IMAGE = "kindest/node:v1.34.0@sha256:7416a61b42b1662ca6ca89f02028ac133a309a2a30ba309614e8ec94d976dc5a"
"""kind's own node image of the same minor version, for machines that can pull it."""

KUEUE = "v0.17.0"
KUBERAY = "v1.5.0"
AUTOSCALER_MODULE = "k8s.io/autoscaler/cluster-autoscaler/apis"
AUTOSCALER_APIS = "v0.0.0-20240830133931-adfbe7e45277"
AUTOSCALER_COMMIT = "adfbe7e45277"
"""Holds the CRD of ProvisioningRequest; the version that Kueue's own go.mod asks for."""


def versions(*, is_pulled: bool = False) -> dict[str, str]:
    """What a cluster must be made of, by name.

    Of a pulled one that is what we ask for; which Kubernetes, etcd and kind these bring is theirs to say (`harness.kind.answers`).
    """
    if is_pulled:
        return {"node image": NODE_IMAGE.partition("@")[0], "kueue": KUEUE, "kuberay": KUBERAY}
    return {"kubernetes": KUBERNETES, "kind": KIND, "kueue": KUEUE, "kuberay": KUBERAY, "etcd": ETCD, "coredns": COREDNS}
