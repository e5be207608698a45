"""Bodies of two parts: what an object shall be, and its content.

Source: https://docs.cloud.google.com/storage/docs/uploading-objects#uploading-an-object (multipart uploads), RFC 2387
"""

from dataclasses import dataclass
from email.message import Message

from harness.emulator.storage.refusals import invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part: its media type and its bytes."""

    content_type: str
    data: bytes


def split_parts(content_type: str, body: bytes) -> tuple[Part, Part]:
    """The two parts of a body.

    Raises:
        ApiError: 400 when there are not two.
    """
    boundary = _boundary(content_type)
    delimiter = b"--" + boundary.encode()
    pieces = (b"\r\n" + body).split(b"\r\n" + delimiter) if boundary else []
    if len(pieces) != 4 or not pieces[3].startswith(b"--"):
        raise invalid("Failed to parse the multipart body: it must have two parts and an end, as its Content-Type names them")
    return _part(pieces[1]), _part(pieces[2])


def _boundary(content_type: str) -> str:
    message = Message()
    message["Content-Type"] = content_type
    if message.get_content_maintype() != "multipart":
        return ""
    return message.get_boundary("")


def _part(piece: bytes) -> Part:
    head, blank, data = piece.partition(b"\r\n\r\n")
    if not blank:
        raise invalid("Failed to parse the multipart body: a part has no end of its headers")
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-type":
            return Part(content_type=value.strip(), data=data)
    return Part(content_type="", data=data)
