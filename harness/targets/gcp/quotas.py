"""What a project is granted of Cloud Run's GPUs, as Service Usage tells it. It tells limits, not what is in use of them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import msgspec

from harness.targets.gcp.calling import Caller, Page, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import CallError
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Quota

SERVICE = "serviceusage.googleapis.com"

UNLIMITED = 1e9
"""Stands for no limit: JSON has no infinity."""

UNREAD = "see IAM & Admin > Quotas of the project"

Document = Mapping[str, object]

Fetch = Callable[[str, float], Page[Document]]
"""Takes a page's token and the seconds that it may last; gives quota metrics of ``run.googleapis.com``."""


def gpu_quotas(caller: Caller, place: Place, fetch: Fetch, *, gpu_type: str, needed: int) -> tuple[Quota, ...]:
    """Every limit of GPUs of a type in the region; where none can be read, one that says why. Nothing when no GPU is needed.

    Which of them holds (with or without zonal redundancy) is told by their names only: assumed, not seen on a project. So all are shown.

    Source: https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics (shape).
    """
    if not needed:
        return ()
    where = f"{place.project}/{place.region}"
    request = Request(
        service=SERVICE, method="services.consumerQuotaMetrics.list", resource=f"projects/{place.project}/services/run.googleapis.com"
    )
    try:
        metrics = list(caller.pages(request, fetch))
    except CallError as error:
        return (_unknown(where, needed, f"{error}; {UNREAD}"),)
    found = [
        Quota(name=name, place=where, needed=float(needed), limit=limit)
        for metric in metrics
        if (name := _name_of(metric, gpu_type))
        for limit in _limits(metric, place.region)
    ]
    return tuple(found) or (_unknown(where, needed, f"no quota of Cloud Run is named after {gpu_type or 'a GPU'}; {UNREAD}"),)


def fetch_from(clients: Clients, place: Place) -> Fetch:
    """Pages of quota metrics, over HTTP with the credentials of the clients. An emulator has no quotas to tell."""
    import requests
    from google.api_core.exceptions import from_http_response

    address = f"https://{SERVICE}/v1beta1/projects/{place.project}/services/run.googleapis.com/consumerQuotaMetrics"

    def fetch(token: str, timeout_s: float) -> Page[Document]:
        asked = {"pageSize": "100", "view": "BASIC", **({"pageToken": token} if token else {})}
        answer = requests.get(address, params=asked, headers=dict(clients.authorization()), timeout=timeout_s, allow_redirects=False)
        if answer.status_code != 200:
            raise from_http_response(answer)  # type: ignore[no-untyped-call]
        document = _document_of(answer.content)
        metrics = document.get("metrics")
        return Page(items=list(_documents(metrics)), token=str(document.get("nextPageToken", "")))

    return fetch


def _document_of(body: bytes) -> Document:
    """The document of an answer.

    Raises:
        InternalServerError: When it is none: to be asked for again, as every answer that came broken.
    """
    from google.api_core.exceptions import InternalServerError

    try:
        return msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InternalServerError(f"the answer is no JSON document: {error}") from error  # type: ignore[no-untyped-call]


def unread_quotas(place: Place, needed: int, why: str) -> tuple[Quota, ...]:
    """That nobody was asked, and why; nothing when no GPU is needed."""
    return (_unknown(f"{place.project}/{place.region}", needed, why),) if needed else ()


def is_short(quotas: tuple[Quota, ...]) -> bool:
    """Whether every limit that could hold is too small: one that is large enough may be the one."""
    known = [quota for quota in quotas if quota.limit is not None]
    return bool(known) and len(known) == len(quotas) and all(quota.limit is not None and quota.limit < quota.needed for quota in known)


def _unknown(where: str, needed: int, why: str) -> Quota:
    return Quota(name="GPUs of Cloud Run", place=where, needed=float(needed), limit=None, why=why)


def _name_of(metric: Document, gpu_type: str) -> str:
    """The name of a metric of GPUs of that type; empty where it is none."""
    name, shown = str(metric.get("metric", "")), str(metric.get("displayName", ""))
    words = f"{name} {shown}".lower().replace("_", "-").replace(" ", "-")
    kind = gpu_type.lower().removeprefix("nvidia-")
    return name if "gpu" in words and kind in words else ""


def _limits(metric: Document, region: str) -> Iterator[float]:
    """Of each limit of a metric, the most specific bucket that holds for the region; -1 stands for no limit."""
    for limit in _documents(metric.get("consumerQuotaLimits")):
        holding = [bucket for bucket in _documents(limit.get("quotaBuckets")) if _holds(bucket, region)]
        if holding:
            with contextlib.suppress(ValueError):  # no number: a limit that is not known
                effective = float(str(holding[-1].get("effectiveLimit", "0")))
                yield UNLIMITED if effective < 0 else effective


def _holds(bucket: Document, region: str) -> bool:
    dimensions = bucket.get("dimensions")
    found = dimensions.get("region") if isinstance(dimensions, Mapping) else None
    return found in (None, region)


def _documents(value: object) -> Iterator[Document]:
    yield from (cast("Document", each) for each in value if isinstance(each, dict)) if isinstance(value, list) else ()
