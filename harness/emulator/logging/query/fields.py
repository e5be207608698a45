"""The fields of a LogEntry with their types: what a filter may name, and what is there when an entry does not say.

Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

STRING, NUMBER, BOOLEAN, MOMENT, DURATION, SEVERITY = "string", "number", "boolean", "moment", "duration", "severity"
LABELS = "labels"
"""A map from any key to a string."""
LABEL = "label"
"""A string of such a map: when it is not there it is missing, not empty."""
ANYTHING = "anything"
"""A payload: the entry itself says of which type a value is."""
REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a path leads to.

    Attributes:
        kind: One of the constants of this module; empty for a message.
        fields: Of a message.
    """

    kind: str = ""
    fields: Mapping[str, "FieldType"] = field(default_factory=dict)

    @property
    def default(self) -> object:
        """What a field is when the entry leaves it out; None where it is then missing."""
        return {STRING: "", NUMBER: 0, BOOLEAN: False, SEVERITY: "DEFAULT"}.get(self.kind)


def _message(**kinds: str) -> FieldType:
    return FieldType(fields={name: FieldType(kind) for name, kind in kinds.items()})


_RESOURCE = FieldType(fields={"type": FieldType(STRING), "labels": FieldType(LABELS)})
_HTTP_REQUEST = _message(
    requestMethod=STRING,
    requestUrl=STRING,
    requestSize=NUMBER,
    status=NUMBER,
    responseSize=NUMBER,
    userAgent=STRING,
    remoteIp=STRING,
    serverIp=STRING,
    referer=STRING,
    latency=DURATION,
    cacheLookup=BOOLEAN,
    cacheHit=BOOLEAN,
    cacheValidatedWithOriginServer=BOOLEAN,
    cacheFillBytes=NUMBER,
    protocol=STRING,
)

LOG_ENTRY = FieldType(
    fields={
        "logName": FieldType(STRING),
        "resource": _RESOURCE,
        "timestamp": FieldType(MOMENT),
        "receiveTimestamp": FieldType(MOMENT),
        "severity": FieldType(SEVERITY),
        "insertId": FieldType(STRING),
        "httpRequest": _HTTP_REQUEST,
        "labels": FieldType(LABELS),
        "metadata": FieldType(ANYTHING),
        "operation": _message(id=STRING, producer=STRING, first=BOOLEAN, last=BOOLEAN),
        "trace": FieldType(STRING),
        "spanId": FieldType(STRING),
        "traceSampled": FieldType(BOOLEAN),
        "sourceLocation": _message(file=STRING, line=NUMBER, function=STRING),
        "split": _message(uid=STRING, index=NUMBER, totalSplits=NUMBER),
        "errorGroups": FieldType(REPEATED),
        "apphub": FieldType(ANYTHING),
        "apphubDestination": FieldType(ANYTHING),
        "apphubSource": FieldType(ANYTHING),
        "textPayload": FieldType(STRING),
        "jsonPayload": FieldType(ANYTHING),
        "protoPayload": FieldType(ANYTHING),
    }
)

_UNDERSCORE = re.compile(r"_([a-z])")


def resolve(path: tuple[str, ...]) -> tuple[tuple[str, ...], FieldType] | None:
    """The path in the names of the JSON form, and what it leads to; ``log_name`` is ``logName``.

    Returns:
        None when a LogEntry has no such field: a filter that names it is refused, not false.
    """
    resolved: list[str] = []
    here = LOG_ENTRY
    for place, name in enumerate(path):
        if here.kind in (ANYTHING, REPEATED):
            return (*resolved, *path[place:]), FieldType(ANYTHING)
        if here.kind == LABELS:
            resolved.append(name)
            here = FieldType(LABEL)
            continue
        known = name if name in here.fields else _UNDERSCORE.sub(lambda letter: letter[1].upper(), name)
        if known not in here.fields:
            return None
        resolved.append(known)
        here = here.fields[known]
    return tuple(resolved), here
