"""What of a log is held against a server."""
from server import harm

TURN = "warn front[7] a turn of the loop took {} ms, more than 50"


def test_one_turn_alone_may_be_the_machines():
    assert harm(["a line", TURN.format(59)]) == []


def test_a_longer_one_and_a_second_are_harm():
    for log in ([TURN.format(101)], [TURN.format(51)] * 2):
        assert harm(log) == log


def test_who_looks_at_turns_allows_none():
    assert harm([TURN.format(51)], 0) == [TURN.format(51)]


def test_reports_of_sanitizers_are_harm():
    log = ["ERROR: AddressSanitizer: x", "a.c:1: runtime error: y"]
    assert harm([*log, "a line", TURN.format(59)]) == log
