"""Ranges, parts and pieces of uploads and downloads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.failures import ApiError
from harness.emulator.storage.checksums import sum_up
from harness.emulator.storage.multipart import split_parts
from harness.emulator.storage.preconditions import Preconditions
from harness.emulator.storage.ranges import Brought, read_brought, read_wanted
from harness.emulator.storage.records import ObjectMetadata
from harness.emulator.storage.uploads import PIECE_UNIT_BYTES, Upload


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", None),
        ("bytes=0-4", (0, 4)),
        ("bytes=2-", (2, 9)),
        ("bytes=5-99", (5, 9)),
        ("bytes=-3", (7, 9)),
        ("bytes=-99", (0, 9)),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("lines=1-2", None),
    ],
)
def test_a_wanted_range_is_read(header, wanted):
    assert read_wanted(header, 10) == wanted


def test_a_range_behind_the_end_is_refused():
    with pytest.raises(ApiError) as refused:
        read_wanted("bytes=10-", 10)
    assert refused.value.http_status == 416


@pytest.mark.parametrize("header", ["bytes 5-2/9", "bytes 0-9/9", "bytes x-1/2", "0-1/2", "bytes */"])
def test_a_piece_that_cannot_be_is_refused(header):
    with pytest.raises(ApiError, match="Content-Range"):
        read_brought(header)


def upload(path):
    path.touch()
    return Upload(bucket="b", name="a", metadata=ObjectMetadata(), conditions=Preconditions(), claimed={}, path=path)


def test_a_remainder_of_a_piece_is_to_be_sent_again(tmp_path):
    content = bytes(range(256)) * (PIECE_UNIT_BYTES // 256) + b"rest"
    one = upload(tmp_path / "one")

    assert not one.take(Brought(first=0, last=len(content) - 1, total=None), content)
    assert one.size == PIECE_UNIT_BYTES
    assert one.take(Brought(first=PIECE_UNIT_BYTES, last=len(content) - 1, total=len(content)), b"rest")
    assert one.finish().checksums == sum_up([content])
    assert one.path.read_bytes() == content


def test_what_was_kept_before_is_not_kept_twice(tmp_path):
    one = upload(tmp_path / "one")
    one.take(Brought(first=0, last=PIECE_UNIT_BYTES - 1, total=None), b"x" * PIECE_UNIT_BYTES)

    assert one.take(Brought(first=0, last=PIECE_UNIT_BYTES, total=PIECE_UNIT_BYTES + 1), b"x" * PIECE_UNIT_BYTES + b"y")
    assert one.path.read_bytes() == b"x" * PIECE_UNIT_BYTES + b"y"


@pytest.mark.parametrize(
    ("brought", "data", "problem"),
    [
        (Brought(first=5, last=6, total=7), b"ab", "next byte to send is 0"),
        (Brought(first=0, last=6, total=7), b"ab", "There were 2 byte"),
    ],
)
def test_a_gap_or_a_short_piece_is_refused(tmp_path, brought, data, problem):
    with pytest.raises(ApiError, match=problem):
        upload(tmp_path / "one").take(brought, data)


def test_content_that_is_not_what_was_claimed_is_refused(tmp_path):
    one = upload(tmp_path / "one")
    one.claimed = {"crc32c": "AAAAAA=="}
    one.take(Brought(first=0, last=0, total=1), b"x")

    with pytest.raises(ApiError, match="Provided CRC32C"):
        one.finish()


@given(content=st.binary(max_size=200), kind=st.sampled_from(["text/plain", "application/octet-stream"]))
def test_two_parts_come_apart_whatever_the_content(content, kind):
    boundary = "===============8412345678901234567=="
    body = (
        f'--{boundary}\r\ncontent-type: application/json\r\n\r\n{{"name": "a"}}\r\n--{boundary}\r\ncontent-type: {kind}\r\n\r\n'.encode()
        + content
        + f"\r\n--{boundary}--".encode()
    )

    described, found = split_parts(f'multipart/related; boundary="{boundary}"', body)

    assert described.data == b'{"name": "a"}'
    assert (found.content_type, found.data) == (kind, content)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain", b""),
        ("multipart/related", b"--x\r\n\r\na\r\n--x--"),
        ("multipart/related; boundary=x", b"--x\r\n\r\na\r\n--x\r\nnone\r\n--x--"),
        ("multipart/related; boundary=x", b"--x\r\n\r\na\r\n--x\r\n\r\nb"),
    ],
)
def test_a_body_that_has_no_two_parts_is_refused(content_type, body):
    with pytest.raises(ApiError, match="multipart body"):
        split_parts(content_type, body)
