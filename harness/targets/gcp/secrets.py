"""What must never be written: credentials. Whatever leaves this room as text (errors, quoted log lines, plans) goes through ``redact``."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Self

MASK = "[redacted]"

SHORT_LENGTH_MAX = 100

KNOWN_LENGTH_MIN = 6
"""A shorter value is no credential, and would mask half of every text."""

NUMBER_LENGTH_MAX = 15
"""A number of so many characters counts or sizes something, as ``MAX_TOKEN=100000`` does, and would mask steps. No count has more."""

SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:token|secret|password|passwd|passphrase|credential|credentials|authorization|cookie|private[_\-]?key|api[_\-]?key"
    r"|access[_\-]?key|signature|sig)(?:$|[_\-.\d])",
    re.IGNORECASE,
)
"""Names of variables, headers and fields whose value is not for a document, whatever it looks like."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'}\])<>]+)"""

KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
KEY_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
"""Source: RFC 7468, section 10; RFC 4880, section 6.2 (``BLOCK``)."""

_KEY = re.compile(rf"{KEY_BEGIN.pattern}(?:(?!{KEY_BEGIN.pattern}).)*?{KEY_END.pattern}", re.DOTALL)
_OPEN_KEY = re.compile(rf"(?P<kept>{KEY_BEGIN.pattern})(?P<gone>.+)\Z", re.DOTALL)
"""One that does not end here: that it has begun is told, for whoever masks what follows (``private_keys.KeyLines``)."""

_WHOLE = (
    _KEY,
    re.compile(r"\bya29\.[\w.\-]+"),
    re.compile(r"\b1//0[\w\-]{10,}"),
    re.compile(r"\bGOCSPX-[\w\-]{10,}"),
    re.compile(r"\bAIza[\w\-]{30,}"),
    re.compile(r"\bGOOG1?E?[A-Z0-9]{20,}\b"),
    re.compile(r"(?<![\w\-])(?=[\w\-]*+\.[\w\-]{6,}+\.)[\w\-]*?\beyJ[\w\-]{6,}\.[\w\-]{6,}\.[\w\-]*"),
)
"""Private keys, and what Google's access tokens, refresh tokens, client secrets, API keys, HMAC keys and signed JWTs begin with.

Source: https://cloud.google.com/docs/authentication/token-types (``ya29.``, JWT); the others are prefixes that secret scanners look for.
"""

_NAMES = r"token|secret|password|passwd|private[_\-]?key|api[_\-]?key|access[_\-]?key"
"""What the name of a field or of an option ends with when its value is a credential."""

_AFTER = (
    _OPEN_KEY,
    re.compile(r"(?P<kept>\b(?:Bearer|Basic)\s+)(?P<gone>[\w.\-+/=~]{6,})", re.IGNORECASE),
    re.compile(r"(?P<kept>\b(?:proxy-)?authorization\b[\"']?\s*[:=,]\s*)(?P<gone>" + _VALUE + r"(?:\s+[\w.\-+/=~]{6,})?)", re.IGNORECASE),
    re.compile(
        r"(?P<kept>[?&](?:upload_id|key|sig|GoogleAccessId|[\w\-]*(?:signature|credential|token|secret))=)(?P<gone>[^&\s\"'<>]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<kept>(?<![\w\-.])[\w\-.]*(?:" + _NAMES + r"|private[_\-]?key[_\-]id)\b"
        r"[\"']?\s*[:=]\s*)(?P<gone>" + _VALUE + ")",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<kept>(?:" + _NAMES + r")\\+\"\s*:\s*\\+\")(?P<gone>[^\"\\]+)", re.IGNORECASE),
    re.compile(
        r"(?P<kept>(?<![\w\-.])--?[\w\-.]*(?:" + _NAMES + r")[\"']?[\s,]+)"
        r"(?P<gone>(?![\"']?(?:-|(?:\d+|true|false|none|null|yes|no|on|off)(?![\w.\-])))" + _VALUE + ")",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<kept>(?<![\w+.\-])[\w+.\-]+://[^\s/:@]*:)(?P<gone>[^\s/@]+)(?=@)", re.IGNORECASE),
)
"""A header, a parameter of an address (a resumable upload's address is itself a credential), a field, one of JSON within JSON, an
option of a command that is neither number nor switch, a password in an address.

What may begin with a run of letters begins where the run does: tried at each word in it, a line takes time by the square of its length."""

_SIGNS = ("-----BEGIN ", "ya29.", "1//0", "GOCSPX-", "AIza", "GOOG", "eyJ")
_SMALL_SIGNS = (
    "bearer",
    "basic",
    "authorization",
    "upload_id",
    "key",
    "sig",
    "googleaccessid",
    "credential",
    "token",
    "secret",
    "passw",
    "://",
)
"""Text without any of these, the second ones in letters of any case, matches none of the patterns: most lines of a log are such."""

_TOKEN_FIELDS_KEPT = re.compile(r"(?:next_?|page_?)+token\b", re.IGNORECASE)
"""Tokens of pages are no credentials, and who looks for a loop wants to see them."""


class Secrets:
    """Masks credentials in text: those it was told of, wherever they stand, and whatever looks like one."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._sources: list[Callable[[], str | None]] = []
        for value in known:
            self.learn(value)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Those that an environment has."""
        secrets = cls()
        secrets.learn_environment(environment)
        return secrets

    def learn(self, value: str | None) -> None:
        """Never let this value through: a token that a client holds just now. What can be none is passed over."""
        if value and len(value) >= KNOWN_LENGTH_MIN and not _is_number(value):
            self._known.add(value)

    def watch(self, source: Callable[[], str | None]) -> None:
        """Ask for a value each time: a client renews its token by itself, and tells nobody."""
        self._sources.append(source)
        self.learn(source())

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Learn the values of variables that are named like secrets."""
        for name, value in environment.items():
            if is_secret_name(name):
                self.learn(value)

    def redact(self, text: str) -> str:
        """The text without credentials."""
        for source in self._sources:
            self.learn(source())
        for value in sorted(self._known, key=len, reverse=True):
            text = text.replace(value, MASK)
        if not _may_hold(text):
            return text
        for pattern in _WHOLE:
            text = pattern.sub(MASK, text)
        for pattern in _AFTER:
            text = pattern.sub(_mask, text)
        return text


def _is_number(value: str) -> bool:
    """In any notation: ``100000``, ``100_000``, ``0.0001``, ``1.5e-05``."""
    if len(value) > NUMBER_LENGTH_MAX:
        return False
    try:
        float(value.replace(",", ""))
    except ValueError:
        return False
    return True


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a variable, header or field of this name holds a credential: ``HF_TOKEN``, ``apiKey``."""
    return bool(SECRET_NAME.search(_CAMEL.sub("_", name))) and not _TOKEN_FIELDS_KEPT.search(name)


def redact(text: str) -> str:
    """The text without whatever looks like a credential, where nobody knows the credentials themselves."""
    return _NOBODYS.redact(text)


def redact_document(document: object, secrets: Secrets | None = None) -> object:
    """A JSON document without credentials: fields by their names, texts by their looks, keys too."""
    masks = secrets or _NOBODYS
    if isinstance(document, str):
        return masks.redact(document)
    if isinstance(document, Mapping):
        return {
            masks.redact(str(key)): MASK if value and is_secret_name(str(key)) else redact_document(value, masks)
            for key, value in document.items()
        }
    if isinstance(document, list | tuple):
        return [redact_document(each, masks) for each in document]
    return document


def _may_hold(text: str) -> bool:
    """Whether it has a sign of a credential. Names and labels of entries are short, and come again and again."""
    return _has_sign(text) if len(text) > SHORT_LENGTH_MAX else _has_sign_again(text)


def _has_sign(text: str) -> bool:
    if not text.isascii() or any(sign in text for sign in _SIGNS):  # beyond ASCII letters have more cases than two
        return True
    small = text.lower()
    return any(sign in small for sign in _SMALL_SIGNS)


_has_sign_again = lru_cache(maxsize=4096)(_has_sign)


def _mask(match: re.Match[str]) -> str:
    if _TOKEN_FIELDS_KEPT.search(match["kept"]) or match["gone"].strip("\"'").startswith(MASK[:-1]):
        return match[0]
    gone = match["gone"]
    quote = gone[0] if gone[0] in "\"'" else ""
    return f"{match['kept']}{quote}{MASK}{quote}"


_NOBODYS = Secrets()
