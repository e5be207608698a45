"""Credentials: never in a text that leaves, wherever they stand in what came in."""

import json
import logging
import pickle
import traceback
from types import TracebackType

import grpc
import pytest
import requests
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.protocol.lines import LOG_LINE_BYTES_MAX
from harness.targets.gcp import secrets
from harness.targets.gcp.calling import Caller, Effect, Request
from harness.targets.gcp.failures import CallError
from harness.targets.gcp.secrets import MASK, Secrets, is_secret_name, redact, redact_document

TOKEN = "ya29.a0AfB_byC-planted.token"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJwbGFudGVkIn0.cGxhbnRlZC1zaWduYXR1cmU"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEplanted\nline\n-----END PRIVATE KEY-----\n"

TEXTS = [
    "python3 train.py --hub-token planted-0123 --steps 5",
    "['train.py', '--wandb-api-key', 'planted-0123']",
    r'{"config": "{\"password\": \"planted-0123\"}"}',
    f"Authorization: Bearer {TOKEN}",
    f"authorization=Basic cGxhbnRlZDpwbGFudGVk {TOKEN}",
    f'{{"Authorization": "Bearer {TOKEN}"}}',
    f"('authorization', 'Bearer {TOKEN}')",
    f"GET https://storage.googleapis.com/b/o?access_token={TOKEN}&alt=json",
    "PUT https://storage.googleapis.com/upload?uploadType=resumable&upload_id=planted-session-id",
    "https://host/o?X-Goog-Credential=planted&X-Goog-Signature=planted0123",
    "https://host/o?GoogleAccessId=planted&Signature=planted%3D",
    "https://user:planted-password@host/path",
    "HF_TOKEN=hf_planted0123 python train.py",
    "export WANDB_API_KEY='planted 0123'",
    "password: planted",
    "train --wandb-api-key=planted --access-key=planted",
    f"credentials are {JWT} as sent",
    json.dumps({"private_key": KEY, "private_key_id": "planted", "client_secret": "GOCSPX-planted-0123456"}),
    KEY,
    "-----BEGIN RSA PRIVATE KEY-----\nplanted, and the log ends here",
    "refresh 1//0gplanted-refresh-token-0123",
    "key AIzaplantedplantedplantedplantedplanted0",
    "secret_access_key = planted/plus+slash=",
]


@pytest.mark.parametrize("text", TEXTS)
def test_whatever_looks_like_a_credential_is_masked(text):
    masked = redact(text)
    assert "planted" not in masked
    assert MASK in masked
    assert redact(masked) == masked


PARTS = st.sampled_from(
    ["ya29.", "bearer ", "BASIC ", "kEy=", "pAsswd: ", "A" * 30, "AIza", "GOOG", "eyJ", "a.b", "://u:p@", "?", "&sig=", "ſecret=x", " "]
)


@given(st.lists(PARTS | st.text(max_size=4), max_size=8).map("".join))
def test_text_that_is_passed_on_because_it_has_no_sign_of_a_credential_has_none(text):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(secrets, "_may_hold", lambda text: True)
        whole = redact(text)
    assert redact(text) == whole


@pytest.mark.parametrize("text", TEXTS)
def test_each_sign_counts_in_letters_of_any_case(text):
    assert secrets._may_hold(text)


@pytest.mark.parametrize(
    "text",
    [
        "Resuming from checkpointed step 95.",
        "projects/our-project/locations/europe-west4/jobs/train",
        "next_page_token=CAEQAA page_token: abc",
        "step 12: 4096 tokens, 1.5 tokens/s",
        "train.py --tokenizer gpt2 --max-token 4096 --use_auth_token True --read-token --verbose --out a-token file",
        "gs://our-bucket/harness/ab12/checkpoints/train-task-0-checkpoint.txt#1700000000000000",
        "https://docs.cloud.google.com/run/docs?key_concepts=1",
        "the key of the dictionary is 'keyboard'",
        "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region europe-west1.",
        "me@our-project.iam.gserviceaccount.com",
        "",
    ],
)
def test_what_is_none_stays_as_it_is(text):
    assert redact(text) == text


@pytest.mark.parametrize("part", ["a.", "token-", "http+", "eyJplanted-", "-----BEGIN PRIVATE KEY-----"])
def test_a_line_of_the_longest_kind_is_read_once_and_not_at_each_of_its_words(part):
    line = part * (LOG_LINE_BYTES_MAX // len(part))

    assert redact(f"{line} token=planted").endswith(MASK)


def test_a_credential_of_no_known_form_is_masked_once_it_is_known():
    secrets = Secrets()
    secrets.learn("correct horse battery")
    secrets.learn("")
    secrets.learn(None)
    secrets.learn("abc")  # it would mask half of every text
    assert secrets.redact("said 'correct horse battery' to abc") == f"said '{MASK}' to abc"


def test_variables_that_are_named_like_secrets_are_learned():
    environment = {"MY_DB_PASSWORD": "swordfish", "PATH": "/bin", "apiKey": "tuna-tuna", "PAGE_TOKEN": "page-two", "TOKENIZER": "bpe-bpe"}
    secrets = Secrets()
    secrets.learn_environment(environment)
    assert secrets.redact("swordfish tuna-tuna page-two bpe-bpe") == f"{MASK} {MASK} page-two bpe-bpe"


@pytest.mark.parametrize("number", ["100000", "100_000", "1,000,000", "0.00001", "1.5e-05", "-100000"])
def test_a_number_is_no_credential_however_it_is_named_and_masks_no_step(number: str):
    secrets = Secrets([number])
    secrets.learn_environment({"MAX_TOKEN": number})
    assert secrets.redact(f"step {number} saved") == f"step {number} saved"


def test_digits_without_number_are_learned():
    assert Secrets(["90210" * 4]).redact(f"with {'90210' * 4}") == f"with {MASK}"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("HF_TOKEN", True),
        ("accessToken", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", True),
        ("x-goog-signature", True),
        ("PASSWORD2", True),
        ("nextPageToken", False),
        ("page_token", False),
        ("MAX_TOKENS", False),
        ("KEYBOARD", False),
        ("author", False),
    ],
)
def test_names_of_secrets(name, is_one):
    assert is_secret_name(name) == is_one


def test_a_document_is_masked_by_fields_and_by_looks():
    document = {
        "labels": {"api-key": "planted", "team": "vision"},
        "env": [{"value": f"Bearer {TOKEN}"}],
        "count": 3,
        TOKEN: None,
        "token": "",
    }
    masked = redact_document(document)
    assert masked == {
        "labels": {"api-key": MASK, "team": "vision"},
        "env": [{"value": f"Bearer {MASK}"}],
        "count": 3,
        MASK: None,
        "token": "",
    }


@given(before=st.text(max_size=30), after=st.text(max_size=30))
def test_a_known_credential_is_masked_wherever_it_stands(before, after):
    secrets = Secrets(["planted-0123456789"])
    assert "planted-0123456789" not in secrets.redact(f"{before}planted-0123456789{after}")


# ---- errors ----------------------------------------------------------------------------------------------------------

REQUEST = Request(service="run.googleapis.com", method="Jobs.GetJob", resource="projects/p/locations/r/jobs/j", effect=Effect.READ)


class FakeCall(grpc.RpcError, grpc.Call):
    """A failed call that still holds what was sent."""

    def __init__(self) -> None:
        super().__init__(f"metadata: authorization: Bearer {TOKEN}")

    def code(self):
        return grpc.StatusCode.PERMISSION_DENIED

    def details(self):
        return f"denied to the bearer of {TOKEN}"

    def trailing_metadata(self):
        return (("authorization", f"Bearer {TOKEN}"),)

    initial_metadata = trailing_metadata
    is_active = time_remaining = cancel = add_callback = lambda self, *_: None


def over_http() -> Exception:
    response = requests.Response()
    response.status_code = 403
    response._content = json.dumps({"error": {"code": 403, "message": f"no: {TOKEN}", "errors": [{"reason": TOKEN}]}}).encode()
    address = f"https://example.invalid/upload?upload_id={TOKEN}"
    response.request = requests.Request("PUT", address, headers={"Authorization": f"Bearer {TOKEN}"}, data=TOKEN).prepare()
    return exceptions.from_http_response(response)


def with_details() -> Exception:
    from google.rpc.error_details_pb2 import ErrorInfo

    info = ErrorInfo(reason=f"Bearer {TOKEN}", metadata={TOKEN: TOKEN, "permission": TOKEN})
    return exceptions.from_grpc_status(grpc.StatusCode.PERMISSION_DENIED, f"sent {TOKEN}", details=(info,), error_info=info)


RAISED = {
    "gRPC": FakeCall,
    "HTTP": over_http,
    "details": with_details,
    "refresh": lambda: RefreshError("Reauthentication is needed.", {"access_token": TOKEN, "refresh_token": TOKEN}),
    "connection": lambda: requests.exceptions.ConnectionError(f"HTTPSConnectionPool: /o?access_token={TOKEN}"),
}


def chain(error: BaseException) -> list[BaseException]:
    """The error and all that hangs on it."""
    found, waiting = [], [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__]
    return found


@pytest.mark.parametrize("kind", RAISED)
def test_no_error_drags_a_credential_along(kind, caplog):
    caller = Caller(clock=ManualClock())

    def send(timeout_s: float) -> None:
        error = RAISED[kind]()
        raise error

    with caplog.at_level(logging.DEBUG), pytest.raises(CallError) as caught:
        caller.call(REQUEST, send, deadline_s=10.0)
    error = caught.value
    told = ["".join(traceback.format_exception(error)), caplog.text, repr(error.failure), str(error.failure)]
    for one in chain(error):
        told += [str(one), repr(one), repr(one.args), repr(vars(one)), *getattr(one, "__notes__", [])]
        assert type(one).__module__.startswith("harness."), f"{type(one)} holds the request"
    assert all(TOKEN not in text for text in told)
    assert all("planted" not in text for text in told)


def frames(traceback_: TracebackType | None) -> list[dict[str, object]]:
    found = []
    while traceback_ is not None:
        found.append(traceback_.tb_frame.f_locals)
        traceback_ = traceback_.tb_next
    return found


@pytest.mark.parametrize("kind", RAISED)
def test_what_prints_the_variables_of_frames_prints_no_credential(kind):
    def send(timeout_s: float) -> None:
        error = RAISED[kind]()
        raise error

    with pytest.raises(CallError) as caught:
        Caller(clock=ManualClock()).call(REQUEST, send, deadline_s=10.0)
    ours = [local for local in frames(caught.value.__traceback__) if local.get("send") is None or "self" in local]
    assert ours
    assert all(TOKEN not in repr(value) for local in ours for value in local.values())


def test_an_error_can_be_sent_to_another_process_without_one():
    def send(timeout_s: float) -> None:
        raise over_http()

    with pytest.raises(CallError) as caught:
        Caller(clock=ManualClock()).call(REQUEST, send)
    assert TOKEN.encode() not in pickle.dumps((str(caught.value), caught.value.failure))
