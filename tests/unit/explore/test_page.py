"""What the page of an exploration is filled with, and the page itself: whole, harmless, and honest about what was not proved."""

import re

import msgspec
import pytest

from harness.explore.models.rows import DIRECTORY_RENAME_ORDER
from harness.explore.page import page_of, render_page
from harness.explore.result import Exploration, Recorded, Surface
from harness.explore.states import Cause
from harness.verdict import Outcome
from tests.unit.explore.explorations import Log, exploration, overwriting, prefixes, state, surface, undecided
from tests.unit.report.test_page import ATTACK, read, words

ROW = DIRECTORY_RENAME_ORDER.name


def valid() -> Exploration:
    log, _ = overwriting()
    return exploration(log, surface("posix", "process", log, prefixes(log, {})), seconds=9.0, judged_seconds=4.4)


def invalid(*, saves: int = 3) -> Exploration:
    log, wrong = overwriting(saves)
    surfaces = [surface(model, scope, log, prefixes(log, wrong)) for model, scope in (("posix", "process"), ("gcsfuse-flat", "node"))]
    return exploration(log, *surfaces, outcome=Outcome.INVALID, reasons=("12 states are invalid",))


def blind() -> Exploration:
    log, _ = overwriting()
    why = "process 7 mapped state.bin"
    states = [undecided(f"s{at}", log.moment(at), why=why) for at in range(len(log.strips) + 1)]
    return exploration(log, surface("posix", "process", log, states), outcome=Outcome.UNKNOWN, blind=(why,), reasons=(f"not seen: {why}",))


def cut() -> Exploration:
    log, _ = overwriting()
    states = prefixes(log, {}, unjudged=range(10, len(log.strips) + 1))
    shown = surface("posix", "process", log, states, cut=len(states) - 10)
    return exploration(log, shown, outcome=Outcome.UNKNOWN, budget="10 s", reasons=("the budget was spent",))


def unseen() -> Exploration:
    recorded = Recorded(seconds=2.0, operations=0, saves=0, is_exact=False, why_not="seccomp user notification is missing")
    return exploration(Log(), outcome=Outcome.UNKNOWN, recorded=recorded, reasons=("operations were not seen",))


ALL = [valid, invalid, blind, cut, unseen]


def shades(page: bytes) -> list[str]:
    return [
        (attributes["class"] or "").removeprefix("cell ") for attributes in read(page).of("li") if "cell" in (attributes.get("class") or "")
    ]


@pytest.mark.parametrize("make", ALL)
def test_every_page_is_whole_by_itself_and_acts_on_nothing(make):
    page = read(render_page(make()))

    names = [name for _, attributes in page.elements for name in attributes]
    assert [name for name in names if name.startswith("on") or name in ("src", "srcset", "action", "poster")] == []
    assert page.of("link") == []
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    assert {(attributes["href"] or "").removeprefix("#") for attributes in page.of("a")} <= set(identities)


def test_nothing_wrong_is_valid_and_says_how_many_states_that_are():
    page = render_page(valid())

    assert "Recovery keeps every promise in all 23 states that a crash can leave." in words(page)
    assert "1 run, 3 saves, 13 operations in 4.10 s" in words(page)
    assert set(shades(page)) == {"valid"}
    assert "Vulnerabilities" not in words(page)


def test_what_nobody_could_decide_is_nowhere_valid():
    page = render_page(blind())

    assert "Nothing is proved: not seen: process 7 mapped state.bin." in words(page)
    assert set(shades(page)) == {"unknown"}
    assert {attributes["class"] for attributes in read(page).of("span") if "badge" in (attributes.get("class") or "")} == {"badge unknown"}
    assert "process 7 mapped state.bin (23 states)" in words(page)


def test_a_blind_recording_whose_states_were_all_survived_is_unknown():
    seen = valid()
    page = page_of(msgspec.structs.replace(seen, outcome=Outcome.UNKNOWN, recorded=msgspec.structs.replace(seen.recorded, blind=("x",))))

    assert [page.outcome_of(part) for part in page.surfaces] == ["unknown"]


def test_without_operations_the_page_says_why():
    text = words(render_page(unseen()))

    assert "Operations were not seen, only markers: seccomp user notification is missing" in text
    assert "1 run, 0 saves, no operations in 2.00 s" in text


def test_what_the_budget_cut_is_not_shown_as_valid():
    page = render_page(cut())

    assert "10 of 23 (43%) the budget cut 13" in words(page)
    assert set(shades(page)) == {"valid", "unjudged"}
    assert page_of(cut()).surfaces[0].outcome == "unknown"


def test_a_vulnerability_is_one_card_wherever_it_was_seen():
    page = page_of(invalid())

    (card,) = page.cards
    assert card.says == "`open ckpt/state.bin` to `write ckpt/state.sum` must be atomic"
    assert [each.surface for each in card.seen] == ["posix × process", "gcsfuse-flat × node"]
    assert {each.leads_to for each in card.seen} == {"4 states lose acknowledged work, 4 cannot recover"}
    assert card.files == ("ckpt/state.bin", "ckpt/state.sum")
    text = words(render_page(invalid()))
    assert "open ckpt/state.bin to write ckpt/state.sum must be atomic" in text
    assert card.replay in text


def test_where_something_must_hold_the_page_says_what_to_call_for_it():
    text = words(render_page(invalid()))

    assert "A create, mkdir, rename, link or unlink is durable after fsync of the directory that has the name" in text
    assert "fsync of the directory" not in words(render_page(valid()))


def test_what_must_be_durable_before_the_same_operation_shares_a_card():
    log = Log()
    writes = [log.do("write", name) for name in "ab"]
    rename = log.do("rename", "step_*")
    log.do("sync", ".")
    other = state("torn", log.moment(rename, Cause(kind="renaming", operation=rename)), broken=["saves-at-its-cadence"])
    missing = [state(f"no-{at}", log.moment(rename, Cause(kind="omitted", operation=at)), broken=["recovers"]) for at in writes]
    found = exploration(log, surface("posix-weak", "node", log, [*prefixes(log, {}), other, *missing]), outcome=Outcome.INVALID)

    shared, alone = page_of(found).cards

    assert shared.says == "2 operations must be durable before `rename step_*`"
    assert [(part.operation, part.replay.split()[-1]) for part in shared.parts] == [("write a", "no-1"), ("write b", "no-2")]
    assert shared.files == ("a", "b", "step_*")
    assert alone.parts == ()
    text = words(render_page(found))
    assert "2 operations must be durable before rename step_*, and 1 other thing must hold too." in text
    assert "vulnerabilities3" in text.replace(" ", "")


def test_the_sentence_names_the_worst_thing_that_must_hold():
    assert "Recovery is wrong in 8 of 46 states that were judged: open ckpt/state.bin to write ckpt/state.sum must be atomic." in words(
        render_page(invalid())
    )


def test_a_surface_on_which_nothing_is_assumed_gives_the_example():
    log, wrong = overwriting()
    assumed = [
        msgspec.structs.replace(each, moments=tuple(msgspec.structs.replace(moment, assumed=(ROW,)) for moment in each.moments))
        for each in prefixes(log, wrong)
    ]
    sure = [msgspec.structs.replace(each, state=f"sure-{each.state}") for each in prefixes(log, wrong)]
    page = page_of(
        exploration(log, surface("gcsfuse-flat", "node", log, assumed), surface("posix", "process", log, sure), outcome=Outcome.INVALID)
    )

    (card,) = page.cards
    assert [each.assumed for each in card.seen] == [(ROW,), ()]
    assert card.replay.split()[-1].startswith("sure-")
    assert [(row.row, row.states) for row in page.surfaces[0].assumed] == [(ROW, 23)]
    assert page.surfaces[1].assumed == []


def test_a_state_that_a_confirmed_moment_leads_to_rests_on_nothing():
    log, _ = overwriting()
    both = state("both", log.moment(1, assumed=(ROW,)), log.moment(2))
    (part,) = page_of(exploration(log, surface("gcsfuse-flat", "node", log, [both, state("one", log.moment(3, assumed=(ROW,)))]))).surfaces

    assert [(row.row, row.states) for row in part.assumed] == [(ROW, 1)]


def test_what_is_assumed_is_told_with_its_source():
    log, _ = overwriting()
    states = [state("a", log.moment(1, assumed=(ROW, "a-row-of-another-version")))]
    page = render_page(exploration(log, surface("gcsfuse-flat", "node", log, states)))

    text = words(page)
    assert f"{ROW}: {DIRECTORY_RENAME_ORDER.says}" in text
    assert re.sub(r"https?://", "", DIRECTORY_RENAME_ORDER.source) in text
    assert "a-row-of-another-version" in text


def test_the_worst_card_comes_first_whatever_surface_it_is_of():
    log = Log()
    mild, bad = log.do("write", "mild"), log.do("write", "fine") + 1
    log.do("write", "bad")
    log.do("write", "fine")
    first = surface("posix", "process", log, prefixes(log, {mild: ["saves-at-its-cadence"]}))
    second = surface("gcsfuse-flat", "node", log, prefixes(log, {bad: ["keeps-what-was-acknowledged"]}))

    assert [card.files[0] for card in page_of(exploration(log, first, second, outcome=Outcome.INVALID)).cards] == ["bad", "mild"]


def test_cells_show_the_worst_state_that_ends_at_each_operation():
    log, wrong = overwriting(saves=2)
    rename = next(strip.index for strip in log.strips if strip.kind == "write")
    half = state("half", log.moment(rename, Cause(kind="torn", operation=rename)), broken=["recovers"])
    shown = surface("posix-weak", "node", log, [*prefixes(log, wrong), half])
    changes = [strip for strip in log.strips if strip.kind != "event"]

    found = shades(render_page(exploration(log, shown, outcome=Outcome.INVALID)))

    assert found == ["valid", *("invalid" if strip.index in (*wrong, rename) else "valid" for strip in changes)]


def test_what_is_wrong_after_a_word_belongs_to_the_operation_before_it():
    log = Log()
    log.do("write", "a")
    said = log.say("save.end")
    log.do("write", "b")
    shown = surface("posix", "process", log, prefixes(log, {said: ["keeps-what-was-acknowledged"]}))

    operations = page_of(exploration(log, shown, outcome=Outcome.INVALID)).surfaces[0].operations

    assert [(each.number, each.name, each.shade) for each in operations] == [
        (0, "before the first operation", "valid"),
        (1, "write a", "invalid"),
        (2, "write b", "valid"),
    ]


def test_crashes_in_recoveries_are_a_row_for_each_storage_and_scope_with_their_states_together():
    log, wrong = overwriting()
    own = surface("posix", "process", log, prefixes(log, {}))
    assumed = [state("a", log.moment(1, assumed=(ROW,)))]
    relapses = [
        surface("posix", "process", log, prefixes(log, wrong), after="a" * 64),
        surface("posix", "process", log, prefixes(log, {}), after="b" * 64),
        *(surface("gcsfuse-flat", "node", log, assumed, after=letter * 64) for letter in "ab"),
    ]
    found = exploration(log, own, *relapses, outcome=Outcome.INVALID)
    page = page_of(found)

    told = words(render_page(found))
    assert "crashes in recovery: 4 strips" in told
    assert told.count("process, crashes in 2 recoveries") == 1
    assert [(row.name, row.outcome, row.kill_points, row.total) for row in page.rows] == [
        ("posix × process", "valid", 23, 23),
        ("posix × process, crashes in 2 recoveries", "invalid", 46, 46),
        ("gcsfuse-flat × node, crashes in 2 recoveries", "valid", 2, 2),
    ]
    assert [(row.row, row.states) for row in page.rows[-1].assumed] == [(ROW, 2)]
    assert page.states() == 71


def test_on_a_narrow_screen_a_figure_has_its_name_beside_it():
    cells = read(render_page(valid())).of("td")

    assert [cell["data-label"] for cell in cells if "data-label" in cell][:3] == ["kill points", "states", "invalid"]


def test_what_decided_it_is_told_where_no_card_does():
    told = "What decided it"

    assert told not in words(render_page(invalid()))
    assert told in words(render_page(msgspec.structs.replace(valid(), outcome=Outcome.INVALID, reasons=("another",))))
    assert "Why it is unknown" in words(render_page(blind()))


def test_hundreds_of_states_are_few_cards_few_cells_and_a_small_page():
    long = invalid(saves=300)
    page = render_page(long)

    assert sum(len(each.states) for each in long.surfaces) > 4_000
    assert len(page_of(long).cards) == 1
    assert len(shades(page)) <= 2 * 160
    assert len(page) < 400_000
    assert "operations and shows the worst of them" in words(page)


def test_a_scope_that_leaves_the_same_states_says_so_and_has_no_strip():
    log, _ = overwriting()
    same = Surface(model="gcsfuse-flat", scope="sidecar", kill_points=0, same_as="node", assumed=("sidecar-loses-open-files",))
    page = render_page(exploration(log, surface("gcsfuse-flat", "node", log, prefixes(log, {})), same))

    assert "leaves the same states as node" in words(page)
    assert words(page).count("gcsfuse-flat × sidecar") == 1, "only what it rests on is told of it"
    assert "sidecar-loses-open-files: when the mount's own process dies alone" in words(page)


def test_many_reasons_of_doubt_are_summed_up():
    log, _ = overwriting()
    states = [undecided(f"s{at}", log.moment(at), why=f"reason {at if at > 3 else 0}") for at in range(12)]
    (part,) = page_of(exploration(log, surface("posix", "process", log, states), outcome=Outcome.UNKNOWN)).surfaces

    assert page_of(valid()).surfaces[0].doubts == []
    assert part.doubts[0].says == "reason 0"
    assert part.doubts[0].states == 4
    assert (part.doubts[-1].says, part.doubts[-1].states) == ("4 other reasons", 4)


def test_names_that_others_chose_are_shown_and_do_nothing():
    log = Log()
    log.say(ATTACK)
    bad = log.do("write", ATTACK)
    log.do("write", f"`{ATTACK}\x1b[31m\u202e")
    hostile = exploration(
        log,
        surface("posix", "process", log, [*prefixes(log, {bad: ["recovers"]}), undecided("u", log.moment(bad), why=ATTACK)]),
        outcome=Outcome.INVALID,
        blind=(ATTACK,),
        reasons=(ATTACK,),
        budget=ATTACK,
        judge=ATTACK,
    )
    hostile = msgspec.structs.replace(hostile, workload=ATTACK, command=("sh", "-c", ATTACK))
    page = render_page(hostile)

    tags = {name for name, _ in read(page).elements}
    assert "img" not in tags
    assert read(page).of("script") == [{}]
    assert words(page).count("alert(1)") > 5
    assert "\x1b" not in page.decode()
    assert "\u202e" not in page.decode()


def test_a_path_that_is_no_text_is_shown():
    log = Log()
    log.do("write", "caf\udce9")

    assert re.search(
        r"write caf.</span>|write caf.;", render_page(exploration(log, surface("posix", "process", log, prefixes(log, {})))).decode()
    )


def test_a_document_that_was_written_and_read_gives_the_same_page():
    for make in ALL:
        again = msgspec.json.decode(msgspec.json.encode(make()), type=Exploration)
        assert render_page(again) == render_page(make())
