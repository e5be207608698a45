"""The pieces of the bundle, in the order in which they are built."""

from harness.kind.bundle.environment import Environment
from harness.kind.bundle.job_image import JobImage
from harness.kind.bundle.manifests import Manifests
from harness.kind.bundle.node_base import NodeBase
from harness.kind.bundle.node_images import NodeImages
from harness.kind.bundle.piece import Piece
from harness.kind.bundle.programs import (
    COREDNS_PROGRAM,
    ETCD_PROGRAM,
    KIND_PROGRAM,
    KUBERAY_PROGRAM,
    KUBERNETES_PROGRAMS,
    KUEUE_PROGRAM,
)

COMPILED: tuple[Piece, ...] = (KIND_PROGRAM, KUBERNETES_PROGRAMS, ETCD_PROGRAM, COREDNS_PROGRAM, KUEUE_PROGRAM, KUBERAY_PROGRAM)
"""One after another: the compiler takes both cores."""

INSTALLED: tuple[Piece, ...] = (JobImage(), Environment())
"""Beside the compiler: they wait for the network and the disk."""

ASSEMBLED: tuple[Piece, ...] = (Manifests(), NodeBase(), NodeImages())
"""Out of the others, when those are there."""


def all_pieces() -> tuple[Piece, ...]:
    """Every piece."""
    return (*COMPILED, *INSTALLED, *ASSEMBLED)
