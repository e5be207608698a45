"""Which limits of a container are granted, as the tables of Cloud Run's pages have them."""

import pytest

from harness.emulator.failures import ApiError
from harness.emulator.run.names import RunName, check_label, check_location
from harness.emulator.run.resource_limits import check_limits

L4, RTX = "nvidia-l4", "nvidia-rtx-pro-6000"


@pytest.mark.parametrize(
    ("limits", "accelerator"),
    [
        ({}, ""),
        ({"memory": "512Mi"}, ""),
        ({"memory": "4Gi"}, ""),
        ({"cpu": "0.5", "memory": "1Gi"}, ""),
        ({"cpu": "1000m", "memory": "0.5Gi"}, ""),
        ({"cpu": "2", "memory": "8Gi"}, ""),
        ({"cpu": "4.0", "memory": "16Gi"}, ""),
        ({"cpu": "8", "memory": "32Gi"}, ""),
        ({"nvidia.com/gpu": "1"}, L4),
        ({"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi"}, L4),
        ({"nvidia.com/gpu": "1", "cpu": "8", "memory": "32Gi"}, L4),
        ({"nvidia.com/gpu": "1", "cpu": "20", "memory": "80Gi"}, RTX),
    ],
)
def test_what_the_service_grants_is_granted(limits, accelerator):
    check_limits(limits, accelerator=accelerator, field="limits")


@pytest.mark.parametrize(
    ("limits", "accelerator", "text"),
    [
        ({"memory": "lots"}, "", "memory: 'lots' is no quantity"),
        ({"memory": "512m"}, "", "memory: '512m' is no quantity"),
        ({"memory": ""}, "", "no quantity"),
        ({"memory": "-1Gi"}, "", "no quantity"),
        ({"memory": "511Mi"}, "", "at least 512Mi"),
        ({"memory": "5Gi"}, "", "for 1 CPU it must be between 512Mi and 4096Mi, got 5120Mi"),
        ({"cpu": "4"}, "", "for 4 CPU it must be between 2048Mi"),
        ({"cpu": "8", "memory": "33Gi"}, "", "and 32768Mi"),
        ({"cpu": "77"}, "", "one of 1, 2, 4, 6, 8; got 77"),
        ({"cpu": "3"}, "", "one of 1, 2, 4, 6, 8"),
        ({"cpu": "1.5"}, "", "one of 1, 2, 4, 6, 8"),
        ({"cpu": "0"}, "", "too little"),
        ({"cpu": "0.4", "memory": "1Gi"}, "", "too little"),
        ({"cpu": "0.9", "memory": "2Gi"}, "", "too little"),
        ({"cpu": "1Gi"}, "", "cpu: '1Gi' is no quantity"),
        ({"google.com/tpu": "1"}, "", "'google.com/tpu' is not supported"),
        ({"nvidia.com/gpu": "x"}, L4, "must be '1', got 'x'"),
        ({"nvidia.com/gpu": "2"}, L4, "must be '1'"),
        ({"nvidia.com/gpu": "1", "cpu": "1"}, L4, "needs at least 4, got '1'"),
        ({"nvidia.com/gpu": "1", "cpu": "4", "memory": "1Gi"}, L4, "needs at least 16Gi, got '1Gi'"),
        ({"nvidia.com/gpu": "1", "cpu": "4", "memory": "32Gi"}, L4, "for 4 CPU"),
        ({"nvidia.com/gpu": "1", "cpu": "8", "memory": "32Gi"}, RTX, "needs at least 20"),
    ],
)
def test_what_it_refuses_is_refused_with_the_limit(limits, accelerator, text):
    with pytest.raises(ApiError, match="INVALID_ARGUMENT") as caught:
        check_limits(limits, accelerator=accelerator, field="limits")
    assert text in caught.value.message


@pytest.mark.parametrize(("key", "value"), [("a", ""), ("harness-run", "0123abcdef"), ("größe_1", "日本"), ("k" * 63, "v" * 63)])
def test_a_label_may_have_letters_of_any_script(key, value):
    check_label(key, value, field="labels")


@pytest.mark.parametrize(("key", "value"), [("", "x"), ("-a", "x"), ("a", "Ü x"), ("A", "x"), ("k" * 64, ""), ("a.b", "x")])
def test_what_is_no_label_is_refused(key, value):
    with pytest.raises(ApiError, match="INVALID_ARGUMENT"):
        check_label(key, value, field="labels")


@pytest.mark.parametrize("location", ["nowhere-9", "l", "europe-west4-a", "EUROPE-west4", "-"])
def test_what_cannot_be_a_region_is_not_found(location):
    with pytest.raises(ApiError, match="not found or access is unauthorized"):
        check_location(RunName("p", location))


@pytest.mark.parametrize("location", ["us-east5", "northamerica-northeast1", "europe-west12"])
def test_what_has_the_form_of_a_region_is_one(location):
    check_location(RunName("p", location))
