"""Names that objects and buckets can have, here and at Google."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.failures import ApiError
from harness.emulator.storage.object_names import check_bucket_name, is_storable, split_name


@given(st.text(alphabet=st.sampled_from("a./\0\n\\é "), max_size=12))
def test_a_name_that_is_taken_is_a_path_that_stays_below(name):
    if is_storable(name):
        path = PurePosixPath("/root") / name
        assert path.is_relative_to("/root")
        assert ".." not in path.parts
        assert str(path.relative_to("/root")) == name.removesuffix("/")
        assert "/".join(split_name(name)) == name


@pytest.mark.parametrize("name", ["a", "a/b", "a/", "a b", "...", ".hidden", "a\\b", "é"])
def test_a_name_of_a_file_is_taken(name):
    assert "/".join(split_name(name)) == name


@pytest.mark.parametrize("name", ["", "/", "a//", "//", "a/../b", "\ud800"])
def test_a_name_of_no_file_is_refused(name):
    with pytest.raises(ApiError) as refused:
        split_name(name)
    assert refused.value.http_status == 400


@pytest.mark.parametrize("name", ["", "ab", "..", "a/b", "-ab", "Abc", "a..b", "google-x", "x" * 300, "a\0b"])
def test_a_bucket_has_a_name_that_is_one_directory(name):
    with pytest.raises(ApiError, match="Invalid bucket name"):
        check_bucket_name(name)


@pytest.mark.parametrize("name", ["abc", "my-bucket_1.example", "123"])
def test_google_s_names_of_buckets_are_taken(name):
    check_bucket_name(name)
