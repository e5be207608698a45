"""What is changed of the published manifests."""

import json

import pytest

from harness.kind.bundle.overlay import KUEUE_FRAMEWORKS, kuberay_overlay, kueue_overlay, with_frameworks

CONFIGURATION = """integrations:
  frameworks:
  - "batch/job"
  - "jobset.x-k8s.io/jobset"
  # - "sparkoperator.k8s.io/sparkapplication"
  - "pod"
#  externalFrameworks:
#  - "Foo.v1.example.com"
"""


def patches(kustomization: str) -> dict[str, object]:
    document = json.loads(kustomization)
    return {change["path"]: change["value"] for change in json.loads(document["patches"][0]["patch"])}


def test_only_what_scenarios_queue_is_integrated() -> None:
    changed = with_frameworks(CONFIGURATION, KUEUE_FRAMEWORKS)

    assert changed == (
        "integrations:\n  frameworks:\n"
        '  - "batch/job"\n  - "ray.io/rayjob"\n  - "ray.io/raycluster"\n'
        '#  externalFrameworks:\n#  - "Foo.v1.example.com"\n'
    )


def test_a_configuration_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="0 lists of frameworks"):
        with_frameworks("integrations: {}\n", KUEUE_FRAMEWORKS)


def test_kueue_gets_guide_bs_gate_and_the_image_that_lies_in_the_node() -> None:
    changed = patches(kueue_overlay(base="b", image="local/kueue:v1").kustomization())

    gates = changed["/spec/template/spec/containers/0/args/-"]
    assert gates == "--feature-gates=ElasticJobsViaWorkloadSlices=true,VisibilityOnDemand=false"
    assert changed["/spec/template/spec/containers/0/imagePullPolicy"] == "IfNotPresent"
    assert changed["/spec/template/spec/containers/0/image"] == "local/kueue:v1"


def test_no_api_is_served_by_kueue_so_that_namespaces_can_go_while_it_is_down() -> None:
    patches = json.loads(kueue_overlay(base="b", image="").kustomization())["patches"]
    deleted = [document for patch in patches if (document := json.loads(patch["patch"])) and "$patch" in document]

    assert [(document["kind"], document["$patch"]) for document in deleted] == [("APIService", "delete")] * 2
    assert {document["metadata"]["name"] for document in deleted} == {
        "v1beta1.visibility.kueue.x-k8s.io",
        "v1beta2.visibility.kueue.x-k8s.io",
    }


def test_kuberay_gets_the_index_of_hosts_and_a_namespace_of_its_own() -> None:
    overlay = kuberay_overlay(base="b", image="local/kuberay:v1")
    changed = patches(overlay.kustomization())

    assert changed["/spec/template/spec/containers/0/args"] == ["--feature-gates=RayClusterStatusConditions=true,RayMultiHostIndexing=true"]
    assert json.loads(overlay.kustomization())["resources"] == ["b", "namespace.yaml"]
    assert json.loads(overlay.namespace_document())["metadata"]["name"] == "kuberay-system"


def test_a_published_image_stays() -> None:
    assert "/spec/template/spec/containers/0/image" not in patches(kueue_overlay(base="b", image="").kustomization())


def test_operators_stand_on_the_control_plane() -> None:
    for overlay in (kueue_overlay(base="b", image=""), kuberay_overlay(base="b", image="")):
        changed = patches(overlay.kustomization())

        assert changed["/spec/template/spec/nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
        assert changed["/spec/template/spec/tolerations"] == [
            {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
        ]
