"""Which image, and what is said where it is not there."""

from pathlib import Path

from harness.capabilities import Launch
from harness.kind.bundle.job_image import job_image
from harness.targets.docker.images import IMAGE_VARIABLE, advice_for, environment_mount, image_of


def launch(image: str = "") -> Launch:
    return Launch(
        run_id="r",
        job="job",
        command=("true",),
        directory=Path("/d"),
        environment={},
        checkpoint_dir=Path("/c"),
        logs_dir=Path("/l"),
        image=image,
    )


def test_the_job_s_own_image_stands_over_that_of_the_environment_and_that_over_ours(monkeypatch):
    monkeypatch.delenv(IMAGE_VARIABLE, raising=False)
    assert image_of(launch()) == job_image()

    monkeypatch.setenv(IMAGE_VARIABLE, "of-the-environment:1")
    assert image_of(launch()) == "of-the-environment:1"
    assert image_of(launch("own:1")) == "own:1"


def test_an_image_of_ones_own_gets_no_packages_of_ours():
    assert environment_mount("own:1") == []


def test_the_advice_names_what_to_do():
    assert "python -m harness.kind.bundle --only job-image" in advice_for(job_image())
    assert "docker pull own:1" in advice_for("own:1")
