"""Storage that fails while the job runs, where this machine lets it fail."""

import pytest

from harness.capabilities import StorageInterposable, StorageRule
from harness.clock import ManualClock
from harness.history import BarrierReached
from harness.targets import create
from tests.contract.driver import TRAITS, python


@pytest.fixture(params=[name for name in TRAITS if isinstance(create(name, ManualClock()), StorageInterposable)])
def target_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


SAVES = """
path = os.environ["CHECKPOINT_DIR"] + "/saved"
emit("ready")
failed = 0
for _ in range(4):
    try: open(path, "w").close()
    except OSError as error: failed += 1; print(error.strerror, flush=True)
sys.exit(failed)
"""


def test_a_rule_counts_its_hits_and_is_handed_on_to_the_next_attempt(start):
    run = start(
        python(SAVES.replace("range(4)", "range(1 if attempt == 0 else 4)")), interpose_storage=True, armed=("ready:after",), max_retries=2
    )
    assert isinstance(run.target, StorageInterposable)
    if run.target.storage_problem():
        run.finish()
        assert all(exited.exit_code for exited in run.exits())
        return
    run.releases = False
    reached = run.until(BarrierReached)

    run.target.set_storage_rule(0, StorageRule(error="ENOSPC", operations=3))
    run.target.release(reached)
    run.releases = True
    run.finish()

    assert [exited.exit_code for exited in run.exits()] == [1, 2, 0]
    assert set(run.lines()) == {"No space left on device"}
    assert run.target.storage_rule_hits(0) == 3


def test_a_rule_that_is_taken_back_hits_nothing_more(start):
    run = start(python(SAVES), interpose_storage=True, armed=("ready:after",))
    if run.target.storage_problem():
        run.finish()
        assert all(exited.exit_code for exited in run.exits())
        return
    run.releases = False
    reached = run.until(BarrierReached)

    run.target.set_storage_rule(0, StorageRule(error="EIO"))
    run.target.clear_storage_rule(0)
    run.target.clear_storage_rule(0)
    run.target.release(reached)
    run.finish()

    assert [exited.exit_code for exited in run.exits()] == [0]
    assert run.target.storage_rule_hits(0) == 0


def test_without_the_supervisor_there_is_no_rule(start):
    run = start(("sh", "-c", "sleep 60"))

    with pytest.raises(LookupError, match="interpose_storage"):
        run.target.set_storage_rule(0, StorageRule(error="EIO"))
    run.target.clear_storage_rule(0)

    assert run.target.storage_rule_hits(0) == 0
