"""The builder says beforehand what missing pieces take: lanes side by side, then what is made of both."""

from harness.kind.bundle.builder import expected_text
from harness.kind.bundle.pieces import ASSEMBLED, COMPILED, INSTALLED, all_pieces
from harness.kind.bundle.programs import KIND_PROGRAM


def test_everything_takes_about_half_an_hour() -> None:
    assert expected_text(all_pieces()) in {f"about {minutes} minutes" for minutes in range(25, 36)}


def test_the_shorter_lane_costs_nothing() -> None:
    assert expected_text((*COMPILED, *INSTALLED)) == expected_text(COMPILED)


def test_seconds_are_said_as_seconds() -> None:
    assert expected_text((KIND_PROGRAM,)) == "about 15 s"


def test_every_piece_has_one_name() -> None:
    names = [piece.name for piece in all_pieces()]

    assert len(names) == len(set(names)) == len((*COMPILED, *INSTALLED, *ASSEMBLED))
