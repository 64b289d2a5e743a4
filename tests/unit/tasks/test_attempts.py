"""An attempt is one message in one process."""

from tasks.base import attempt_token


def test_the_same_message_on_another_process_is_another_attempt() -> None:
    first = attempt_token("6f1a", "load@host1", 7)
    assert first == attempt_token("6f1a", "load@host1", 7)
    others = {
        attempt_token("6f1a", "load@host1", 8),
        attempt_token("6f1a", "load@host2", 7),
        attempt_token("6f1b", "load@host1", 7),
    }
    assert first not in others
    assert len(others) == 3
