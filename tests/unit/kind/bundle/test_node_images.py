"""The images of nodes hold what kubeadm, containerd and the operators ask for."""

from pathlib import Path

from harness.kind.bundle.job_image import job_image
from harness.kind.bundle.node_images import ProgramImage, control_plane_images, worker_images


def test_a_program_image_is_one_program_on_nothing() -> None:
    image = ProgramImage(reference="local/x:1", program=Path("/built/x"), inside="/bin/x", user="65532")

    lines = image.dockerfile().splitlines()

    assert lines[:2] == ["FROM scratch", "COPY x /bin/x"]
    assert lines[-2:] == ["USER 65532", 'ENTRYPOINT ["/bin/x"]']


def test_workers_run_the_sandbox_and_the_proxy_on_the_layer_of_jobs() -> None:
    images = worker_images(Path("pause"))

    assert [image.reference.partition(":")[0] for image in images] == ["chaos-harness/pause"] * 2 + ["chaos-harness/kube-proxy"]
    assert images[-1].base == job_image()


def test_operators_do_not_run_as_root() -> None:
    users = {image.reference.partition(":")[0]: image.user for image in control_plane_images()}

    assert users["chaos-harness/kueue"] == users["chaos-harness/kuberay"] == "65532"
