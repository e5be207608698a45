"""What the engine refuses is told as an error of ours, with its own words."""

from collections.abc import Callable

import docker.errors
import pytest
import requests

from harness.errors import BrokenHarnessError
from harness.targets.docker.engine import ContainerSpec, Engine, NotStartableError

SPEC = ContainerSpec(image="job:1", command=("train",), directory="/", environment={}, mounts=())


class Refusing:
    """A client whose engine refuses."""

    def __init__(self, status: int) -> None:
        self.containers = self
        answer = requests.Response()
        answer.status_code = status
        self.error = docker.errors.APIError("refused", response=answer, explanation="no such program: train")

    def create(self, *_: object, **_options: object) -> None:
        raise self.error

    start = create


def engine_of(client: Refusing) -> Engine:
    engine = Engine.__new__(Engine)
    engine._client = engine._api = client
    return engine


DOES: dict[str, Callable[[Engine], object]] = {
    "make a container of job:1": lambda engine: engine.create("run-1", "name", SPEC),
    "start a container": lambda engine: engine.start("id"),
}


@pytest.mark.parametrize("attempted", DOES)
def test_what_is_refused_is_an_error_of_ours_with_its_fields(attempted: str) -> None:
    with pytest.raises(NotStartableError) as refused:
        DOES[attempted](engine_of(Refusing(400)))

    assert isinstance(refused.value, BrokenHarnessError)
    assert (refused.value.attempted, refused.value.reason) == (attempted, "no such program: train")
    assert str(refused.value).startswith(f"the Docker engine refused to {attempted}: no such program: train; see its log")


@pytest.mark.parametrize("attempted", DOES)
def test_an_engine_that_is_broken_has_refused_nothing(attempted: str) -> None:
    with pytest.raises(BrokenHarnessError) as broken:
        DOES[attempted](engine_of(Refusing(500)))

    assert not isinstance(broken.value, NotStartableError)
