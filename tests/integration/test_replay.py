"""Operations on a real directory, and the same operations played in memory, leave the same tree after each of them."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.explore.blobs import BlobStore
from harness.explore.enumeration import Enumeration
from tests.integration.random_operations import COMMANDS, Machine, modelled, seen
from tests.unit.explore.recordings import ROOT


@settings(deadline=None, max_examples=100)
@given(commands=st.lists(COMMANDS, min_size=20, max_size=40))
def test_a_replay_leaves_what_a_real_directory_has_after_each_operation(tmp_path_factory, commands) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))

    real = machine.do_all(commands)

    assert modelled(machine.recording) == real


@settings(deadline=None, max_examples=20)
@given(commands=st.lists(COMMANDS, min_size=20, max_size=40))
def test_a_state_that_is_made_on_disk_is_the_state(tmp_path_factory, commands) -> None:
    place = tmp_path_factory.mktemp("machine")
    machine = Machine(place)
    machine.do_all(commands)
    played = machine.recording.replay()
    blobs = BlobStore(place / "blobs")

    with machine.recording.open_data() as data:
        for number, found in enumerate(Enumeration(played, data, model="posix", scope="process")):
            task = found.task(data, root=ROOT)
            blobs.keep_all(found.crash.tree, data)
            for links_files in (False, True):
                copy = place / "states" / f"{number}-{links_files}"
                blobs.materialise(task.pieces, copy, links_files=links_files)
                assert seen(copy) == machine.recording.shown(found.crash.tree)


@pytest.fixture(autouse=True)
def _files_can_be_written(request):
    """What a made state holds can be written, whatever the mask of the shell that runs the tests."""
    before = os.umask(0o022)
    yield
    os.umask(before)
