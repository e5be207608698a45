"""What a run tells leaves the target without credentials."""

import msgspec
import pytest

from harness.history import Event, FaultFailed, LogLine, ObservationLost, StepDone, TaskFinished
from harness.targets.gcp.masking import EntryMask, Mask
from harness.targets.gcp.private_keys import LINES_MAX
from harness.targets.gcp.secrets import Secrets

TOKEN, KEY = "ya29.a0AfB_planted-token", "planted-without-a-known-form"
SAID = f"connects with {TOKEN}, then password=hunter22 and {KEY}"


@pytest.mark.parametrize(
    "event",
    [
        LogLine(t_s=1.0, task=0, attempt=0, stream="stdout", text=SAID, reason=SAID),
        TaskFinished(t_s=1.0, task=0, succeeded=False, attempts=1, detail=SAID),
        ObservationLost(t_s=1.0, what="logs", count=1, detail=SAID),
        FaultFailed(t_s=1.0, task=0, attempt=0, injection="kill", detail=SAID),
    ],
)
def test_whatever_quotes_somebody_is_masked(event: Event):
    (masked,) = Mask(Secrets([KEY])).of([event])
    written = msgspec.json.encode(masked).decode()
    for secret in (TOKEN, "hunter22", KEY):
        assert secret not in written
    assert "connects with [redacted]" in written


def test_what_holds_no_credential_is_what_it_was():
    events = [
        StepDone(t_s=1.0, task=0, attempt=0, step=3, digests={"model": "ab"}),
        LogLine(t_s=1.0, task=0, attempt=0, stream="stdout", text="step 3"),
    ]
    assert Mask(Secrets()).of(events) == events


PEM = (
    "-----BEGIN RSA PRIVATE KEY-----",
    "Proc-Type: 4,ENCRYPTED",
    "",
    "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgHcTz6sE2I2yPB",
    "aFDrBz9vFqU4yTpZzJ0k2KqXw5mYb1n",
    "Kw==",
    "-----END RSA PRIVATE KEY-----",
)
BODY = PEM[3:6]


def line(text: str, task: int = 0, stream: str = "stdout") -> LogLine:
    return LogLine(t_s=1.0, task=task, attempt=0, stream=stream, text=text)


def texts_of(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, LogLine)]


def test_a_private_key_is_masked_over_all_its_lines_and_no_line_beyond():
    masked = texts_of(Mask(Secrets()).of([line(text) for text in ("step 1", *PEM, "step 2 aB3")]))
    assert masked == ["step 1", f"{PEM[0]}[redacted]", "[redacted]", "", *["[redacted]"] * 4, "step 2 aB3"]


def test_a_key_that_is_told_in_two_looks_is_one():
    mask = Mask(Secrets())
    first = texts_of(mask.of([line(text) for text in PEM[:4]]))
    assert texts_of(mask.of([line(text) for text in PEM[4:]])) == ["[redacted]"] * 3
    assert BODY[0] not in "".join(first)


def test_lines_of_others_between_those_of_a_key_stay_as_they_are():
    events = [
        line(PEM[0]),
        line("step 7", task=1),
        line(PEM[4]),
        line("Kw==", stream="stderr"),
        line("saved step 3"),
        line(PEM[5]),
        line(PEM[6]),
    ]
    masked = texts_of(Mask(Secrets()).of(events))
    assert masked == [f"{PEM[0]}[redacted]", "step 7", "[redacted]", "Kw==", "saved step 3", "[redacted]", "[redacted]"]


def test_a_key_behind_the_prefix_of_a_logger_is_masked():
    events = [line(f"INFO 12:00 {text}") for text in PEM]
    for masked, body in zip(texts_of(Mask(Secrets()).of(events))[3:5], BODY, strict=False):
        assert masked == "INFO 12:00 [redacted]", body


def test_a_long_line_of_a_key_is_masked_whenever_it_comes():
    """Entries of a log come in any order."""
    for pair in ((PEM[3], PEM[0]), (f"  {PEM[3]}", "step 1")):
        assert BODY[0] not in "".join(texts_of(Mask(Secrets()).of([line(text) for text in pair])))


@pytest.mark.parametrize("text", ["0" * 32 + "abcdef" * 5 + "ab", "ABCDEF01" * 8, "sha512: " + "aB3" * 30, "a" * 64])
def test_digests_are_no_keys(text: str):
    assert texts_of(Mask(Secrets()).of([line(text)])) == [text]


def test_a_key_that_never_ends_does_not_mask_a_log_for_ever():
    events = [line(PEM[0]), *[line("word")] * (LINES_MAX + 1)]
    masked = texts_of(Mask(Secrets()).of(events))
    assert (masked[1], masked[-1]) == ("[redacted]", "word")


def test_several_lines_in_one_text_are_masked_and_the_next_text_goes_on():
    masked = texts_of(Mask(Secrets()).of([line("\n".join(PEM[:5])), line("\n".join((*PEM[5:], "step 4")))]))
    assert masked[1] == "[redacted]\n[redacted]\nstep 4"
    assert not any(body in masked[0] for body in BODY)


# ---- entries, as they are kept ---------------------------------------------------------------------------------------


def test_a_key_over_several_entries_is_masked_and_all_else_is_kept():
    mask = EntryMask(Secrets())
    kept = [msgspec.json.decode(mask.line_of("a", {"insertId": "1f3g5hABCDEF0123456789", "textPayload": text})) for text in PEM]
    assert [entry["textPayload"] for entry in kept[3:]] == ["[redacted]"] * 4
    assert {entry["insertId"] for entry in kept} == {"1f3g5hABCDEF0123456789"}
    assert msgspec.json.decode(mask.line_of("a", {"textPayload": "step 4"})) == {"textPayload": "step 4"}


def test_a_key_in_structured_entries_is_masked_source_by_source():
    mask = EntryMask(Secrets())
    mask.line_of("a", {"jsonPayload": {"message": PEM[0], "lines": ["x"]}})
    assert BODY[1] not in mask.line_of("a", {"jsonPayload": {"message": "k", "lines": [BODY[1], 7]}})
    assert BODY[1] in mask.line_of("b", {"jsonPayload": {"message": BODY[1]}})


def test_a_service_accounts_key_in_one_entry_is_masked_whole():
    key = {"type": "service_account", "private_key_id": "0" * 40, "private_key": "\n".join(PEM), "client_email": "a@b"}
    for payload in ({"jsonPayload": key}, {"textPayload": msgspec.json.encode(key).decode()}):
        line = EntryMask(Secrets()).line_of("a", payload)
        assert not any(secret in line for secret in (*BODY, "0" * 40))
        assert "a@b" in line
