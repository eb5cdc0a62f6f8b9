"""Action ids: keeps first, then boxes, and back."""

import pytest

from generala_env.rules import Box
from generala_env.rules.actions import (
    NUM_KEEP_ACTIONS,
    Action,
    Close,
    Keep,
    action_id,
    action_of,
    action_text,
    num_actions,
)


@pytest.mark.parametrize("num_boxes", [1, 10, 11])
def test_ids_round_trip(num_boxes: int) -> None:
    actions = [action_of(identifier, num_boxes) for identifier in range(num_actions(num_boxes))]
    assert actions == [*map(Keep, range(31)), *map(Close, range(num_boxes))]
    assert [action_id(action) for action in actions] == list(range(31 + num_boxes))


def test_the_layout_of_the_ids() -> None:
    assert NUM_KEEP_ACTIONS == 31
    assert num_actions(10) == 41
    assert action_id(Keep(0)) == 0
    assert action_id(Keep(30)) == 30
    assert action_id(Close(0)) == 31
    assert action_of(41, 11) == Close(10)


@pytest.mark.parametrize(
    ("action", "points", "text"),
    [
        (Keep(0b00011), None, "keep 2 2"),
        (Keep(0b10001), 7, "keep 2 5"),
        (Keep(0), None, "keep nothing"),
        (Close(1), None, "close poker"),
        (Close(0), 4, "close twos for 4"),
        (Close(1), 0, "strike poker"),
    ],
)
def test_an_action_in_identifiers(action: Action, points: int | None, text: str) -> None:
    boxes = (Box.TWOS, Box.POKER)
    assert action_text(action_id(action), (2, 2, 3, 4, 5), boxes, points) == text


def test_an_unknown_id_has_no_text() -> None:
    with pytest.raises(ValueError, match="action 33 is not from 0 to 32"):
        action_text(33, (1, 2, 3, 4, 5), (Box.TWOS, Box.POKER))


@pytest.mark.parametrize("identifier", [-1, 41, 1_000])
def test_an_unknown_id_is_refused_with_the_range(identifier: int) -> None:
    with pytest.raises(ValueError, match=f"^action {identifier} is not from 0 to 40$"):
        action_of(identifier, 10)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Close(3, strike=True), "deliberate strike, which has no action id"),
        (Keep(31), "has no action id: masks are from 0 to 30"),
        (Keep(-1), "has no action id: masks are from 0 to 30"),
        (Close(-1), "has no action id: boxes are counted from 0"),
    ],
)
def test_an_action_without_an_id_is_refused(action: Action, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        action_id(action)


def test_actions_are_values() -> None:
    assert Keep(3) == Keep(3) != Keep(4)
    assert Close(3) != Close(3, strike=True)
    assert len({Keep(3), Keep(3), Close(3), Close(3, strike=True)}) == 3
