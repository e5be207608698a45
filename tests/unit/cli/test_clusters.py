"""How to look at the cluster is said where one is brought up, and where one asks what is here."""

from pathlib import Path

import msgspec
import pytest

from harness.cli import clusters, doctor
from tests.unit.clusters import cluster_at

CLUSTER = cluster_at(Path("/cache"), name="c", kubeconfig=Path("/cache/of me/kubeconfig"), versions={"kubernetes": "1.2"})
COMMAND = "/cache/kubectl --kubeconfig '/cache/of me/kubeconfig' get pods --all-namespaces"


def test_whoever_brings_a_cluster_up_is_told_how_to_look_at_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(clusters, "bring_up", lambda *_: CLUSTER)

    clusters.up_kind()

    assert capsys.readouterr().out == f"to look at it: {COMMAND}\n"


@pytest.mark.parametrize("problem", ["", "it does not answer; run `harness up kind`"])
def test_the_doctor_says_it_where_a_cluster_is_up(monkeypatch: pytest.MonkeyPatch, problem: str):
    monkeypatch.setattr(doctor, "problem_with_engine", lambda: "")
    monkeypatch.setattr(doctor, "server_version", lambda: "29")
    monkeypatch.setattr(doctor, "missing_pieces", list)
    monkeypatch.setattr(doctor, "find_cluster", lambda: msgspec.structs.replace(CLUSTER))
    monkeypatch.setattr(doctor, "problem_with", lambda _cluster: problem)
    monkeypatch.setattr(doctor, "problem_with_operators", lambda _cluster: "")

    told = [found.detail for found in doctor._diagnose_cluster() if found.name == "kubectl for the cluster"]

    assert told == ([] if problem else [COMMAND])
