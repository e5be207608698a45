"""docs/dws.md says what the code says, and what the real Kueue was seen to do."""

import pytest

from tests.cluster.kueue_trials import CONTEXTS, named, read_record, sequences_in
from tests.docs.dws_tables import PAGE, TABLES, written_anew
from tests.docs.tables import tables_in


def test_tables_say_what_the_code_says_and_what_was_recorded():
    page = PAGE.read_text(encoding="utf-8")

    assert page == written_anew(page)


def test_every_table_is_shown():
    assert sorted(tables_in(PAGE.read_text(encoding="utf-8"))) == sorted(TABLES)


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_legal_sequence_was_recorded(context: str):
    looks = read_record().looks[context]
    steps = {named(sequence[: length + 1]) for sequence in sequences_in(context) for length in range(len(sequence))}

    assert set(looks) == steps
