"""Names of clusters, node pools and operations."""

import pytest
from google.cloud import container_v1

from harness.emulator.container.names import Name, name_in, told_name
from harness.emulator.failures import ApiError


@pytest.mark.parametrize("kind", ["locations", "zones"])
def test_a_name_says_all_parts(kind):
    request = container_v1.GetNodePoolRequest(name=f"projects/p/{kind}/us-east5-b/clusters/c/nodePools/n")
    name = name_in(request)
    assert name == Name(project="p", location="us-east5-b", cluster="c", pool="n")
    assert name.path == "projects/p/zones/us-east5-b/clusters/c/nodePools/n"
    assert name.parent == "projects/p/locations/us-east5-b"


def test_a_region_is_no_zone():
    name = name_in(container_v1.GetClusterRequest(name="projects/p/locations/us-east5/clusters/c"))
    assert (name.is_zonal, name.region, name.path) == (False, "us-east5", "projects/p/locations/us-east5/clusters/c")
    assert name_in(container_v1.ListClustersRequest(parent="projects/p/locations/us-east5-b")).region == "us-east5"


def test_older_fields_say_the_same():
    request = container_v1.GetOperationRequest(project_id="p", zone="us-east5-b", operation_id="o")
    assert name_in(request) == name_in(container_v1.GetOperationRequest(name="projects/p/locations/us-east5-b/operations/o"))


@pytest.mark.parametrize("text", ["", "c", "projects/p", "projects/p/locations/l/clusters/c/nodePools/n/more", "projects//locations/l"])
def test_what_names_nothing_is_refused_and_journalled_as_it_came(text):
    request = container_v1.GetClusterRequest(name=text)
    with pytest.raises(ApiError, match="INVALID_ARGUMENT"):
        name_in(request)
    assert told_name(request) == text
