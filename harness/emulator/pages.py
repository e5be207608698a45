"""Lists in pages, as Google's services give them."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.emulator.failures import invalid_argument

Item = TypeVar("Item")


def page_of(
    items: Sequence[Item],
    *,
    key: Callable[[Item], str],
    size: int,
    token: str,
    size_max: int,
    size_default: int = 0,
    is_partial: bool = False,
) -> tuple[list[Item], str]:
    """A page of a list, and the token of the next one; empty after the last.

    A token holds the key of the last item given: what comes or goes between two pages moves nothing else.

    Args:
        items: All of them, in any order.
        key: Sorts them, and is unique.
        size: How many the caller wants; 0: it does not say.
        token: From the page before; empty for the first.
        size_max: More are not given, whatever is asked.
        size_default: How many are given when the caller does not say; 0: ``size_max``.
        is_partial: Whether the page ends early, as a service may end it.

    Raises:
        ApiError: INVALID_ARGUMENT for a size below 0 or a token that is none.
    """
    if size < 0:
        raise invalid_argument("page_size", f"{size} is below 0")
    after = _key_in(token)
    left = sorted((item for item in items if after is None or key(item) > after), key=key)
    length = min(size or size_default or size_max, size_max)
    if is_partial:
        length = max(1, min(length, len(left)) // 2)
    page = left[:length]
    return page, _token_for(key(page[-1])) if len(left) > length else ""


def _token_for(key: str) -> str:
    return base64.urlsafe_b64encode(b"after:" + key.encode()).decode()


def _key_in(token: str) -> str | None:
    if not token:
        return None
    try:
        text = base64.urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, ValueError) as error:
        raise invalid_argument("page_token", "The provided page token is invalid.") from error
    if not text.startswith("after:"):
        raise invalid_argument("page_token", "The provided page token is invalid.")
    return text.removeprefix("after:")
