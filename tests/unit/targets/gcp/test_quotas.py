"""What Service Usage answers, and what answers that are none become."""

from types import SimpleNamespace
from typing import Any

import pytest
import requests

from harness.clock import ManualClock
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.quotas import fetch_from, gpu_quotas
from tests.unit.targets.gcp.launches import PLACE


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"metrics": [{"metric": "gpu_l4", "consumerQuotaLimits": [{"quotaBuckets": [{"effectiveLimit": "many"}]}]}]}',
    ],
    ids=["html", "list", "bytes", "deep", "no-number"],
)
def test_an_answer_that_is_no_document_leaves_the_quota_unknown(body: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(requests, "get", lambda *_, **__: SimpleNamespace(status_code=200, content=body))
    clients: Any = SimpleNamespace(authorization=list)

    (quota,) = gpu_quotas(Caller(clock=ManualClock()), PLACE, fetch_from(clients, PLACE), gpu_type="nvidia-l4", needed=1)

    assert quota.limit is None
    assert quota.why
