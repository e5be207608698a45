"""What the cards of the page are about."""

from harness.explore.cards import cards_of
from harness.explore.result import Surface
from harness.explore.states import Cause
from tests.unit.explore.explorations import Log, prefixes, state, surface


def missed(log: Log, at: int, **fields: object) -> Surface:
    """A surface that misses the first operation at one moment, and not before."""
    missing = Cause(kind="omitted", operation=1)
    right = [state(f"right-{each}", log.moment(each, missing)) for each in range(1, at)]
    wrong = state("wrong", log.moment(at, missing), broken=["recovers"])
    return surface("posix-weak", "node", log, [*prefixes(log, {}), *right, wrong], **fields)


def saving() -> Log:
    log = Log()
    log.do("write", "tmp")
    log.do("rename", "tmp")
    log.say("save.end")
    return log


def test_what_the_job_shows_is_counted_of_its_recoveries_and_told_in_the_words_of_the_job():
    log = saving()
    recoveries = [missed(log, 3, after=name * 8) for name in ("290a", "82a5")]

    (card,) = cards_of([*recoveries, missed(log, 2)])

    assert card.says == "`write tmp` must be durable before `rename tmp`"
    assert [(each.surface, each.leads_to) for each in card.seen] == [
        ("posix-weak × node", "1 state cannot recover"),
        ("crashes in 2 recoveries", "show it again"),
    ]


def test_what_only_recoveries_show_is_one_card_that_names_them():
    log = saving()

    (card,) = cards_of([missed(log, 3, after="290a" * 8), missed(log, 2, after="82a5" * 8)])

    assert [each.surface[-12:] for each in card.seen] == ["290a290a290a", "82a582a582a5"]


def test_what_must_be_durable_before_nobody_knows_shares_no_card():
    log = Log()
    for name in "ab":
        log.do("write", name)
    for each in ("rename", "unlink"):
        log.do(each, "tmp")
    late = [state(f"no-{at}", log.moment(4, Cause(kind="omitted", operation=at)), broken=["recovers"]) for at in (1, 2)]

    cards = cards_of([surface("posix-weak", "node", log, [*prefixes(log, {}), *late])])

    assert [card.says for card in cards] == [
        f"`write {name}` must be durable earlier, perhaps before `rename tmp`: what lies between was not judged" for name in "ab"
    ]
