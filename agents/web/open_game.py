"""One game of the page: a record, the agents of its table, and what is known about its choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from agents.games.advice import Adviser
from agents.games.record import GameRecord, Table
from agents.games.seating import Seating, is_person
from agents.games.verdicts import Verdict, verdict_on, verdicts_of
from agents.web.daily import daily_result
from agents.web.errors import Refused
from agents.web.views import advice_view, explained_view, game_view, seat_views, verdict_view
from generala_env.envs.dealing import DealtGame
from generala_env.rules.compiled import compile_variant

DAILY = "daily"


class OpenGame:
    """A game that is being played, watched or looked at again.

    Attributes:
        identifier: Its name.
        record: The game and its file.
    """

    def __init__(
        self, identifier: str, record: GameRecord, *, store: Path | None, seat: Callable[[str], str]
    ) -> None:
        """Open a game.

        Args:
            identifier: Its name.
            record: The game and its file.
            store: Folder of solved two-player games; ``None`` is the default place.
            seat: Turns the name of an agent into what is made, or refuses it.
        """
        self.identifier = identifier
        self.record = record
        self._store = store
        self._seat = seat
        self._verdicts: list[Verdict | None] = []

    @cached_property
    def seating(self) -> Seating:
        """The agents, made when one of them is first to move.

        Raises:
            AgentError: An agent cannot be made.
            Refused: A run is not where runs may be.
        """
        table = self.record.table
        seats = tuple(seat if is_person(seat) else self._seat(seat) for seat in table.seats)
        return Seating(Table(table.variant, seats, table.seed), self._store)

    def require_agents(self) -> None:
        """Make the agents now.

        Raises:
            AgentError: An agent cannot be made.
            Refused: A run is not where runs may be.
        """
        _ = self.seating

    @cached_property
    def adviser(self) -> Adviser:
        """What the choices are worth."""
        return Adviser(compile_variant(self.record.table.variant), len(self.record.table.seats), self._store)

    @property
    def is_daily(self) -> bool:
        """Whether this is the deal of a day."""
        return self.identifier.startswith(f"{DAILY}-")

    def _positions(self) -> Iterator[DealtGame]:
        """Yield the game before each decision and after the last; one object, moved on."""
        dealt = self.record.table.deal()
        yield dealt
        for action in self.record.actions:
            dealt.apply(action)
            yield dealt

    def view(self, at: int | None = None) -> dict[str, Any]:
        """Return the game as it stands, or as it stood before a decision.

        Raises:
            Refused: There is no such decision.
        """
        at = len(self.record.actions) if at is None else at
        for number, dealt in enumerate(self._positions()):
            if number == at:
                return {
                    **game_view(self.identifier, self.record, dealt, at),
                    "is_daily": self.is_daily,
                    "daily": self._daily(at),
                }
        raise Refused("not_found", f"at: {at} is not from 0 to {len(self.record.actions)}")

    def summary(self) -> dict[str, Any]:
        """Return the game in a few words, for a list of games."""
        table, state = self.record.table, self.record.dealt.state
        return {
            "variant": table.variant.name,
            "seats": seat_views(table.seats),
            "is_daily": self.is_daily,
            "is_over": self.record.dealt.is_over,
            "round": state.round,
            "num_rounds": table.variant.num_boxes,
            "scores": list(state.scores),
            "winners": list(state.winners),
        }

    def _daily(self, at: int) -> dict[str, Any] | None:
        if not self.is_daily or not self.record.dealt.is_over or at < len(self.record.actions):
            return None
        return daily_result(self.record, self.adviser)

    def take(self, at: int, action: int, *, judge: bool) -> dict[str, Any]:
        """Take a person's action.

        An action that was taken already, at the same place, is answered as it was: the page asks
        again where an answer was lost.

        Raises:
            IllegalActionError: The action is not legal; nothing has changed.
            Refused: The page is not up to date, or an agent is to move.
        """
        actions = self.record.actions
        if at < len(actions) and actions[at] == action:
            return self._answer(at, judge=judge)
        if at != len(actions):
            raise Refused("stale", f"at: {at} decisions are known to the page, {len(actions)} were taken")
        if self.record.dealt.is_over:
            raise Refused("bad_request", "the game is over")
        if not is_person(self.record.table.seats[self.record.dealt.state.current_player]):
            raise Refused("bad_request", "an agent is to move")
        self.record.take(action)
        return self._answer(at, judge=judge)

    def step(self, at: int, *, judge: bool) -> dict[str, Any]:
        """Let the agent to move take one decision; nothing where it was taken already.

        Raises:
            Refused: The page knows of more than there is, or a person is to move.
        """
        actions = self.record.actions
        if at > len(actions):
            raise Refused("stale", f"at: {at} decisions are known to the page, {len(actions)} were taken")
        if at == len(actions):
            dealt = self.record.dealt
            if dealt.is_over:
                raise Refused("bad_request", "the game is over")
            if is_person(self.record.table.seats[dealt.state.current_player]):
                raise Refused("bad_request", "a person is to move")
            self.record.take(self.seating.decide(dealt.state, dealt.action_mask()))
        return self._answer(at, judge=judge)

    def _answer(self, at: int, *, judge: bool) -> dict[str, Any]:
        may = judge and not self._keeps_quiet
        return {"game": self.view(), "verdict": self.verdict(at) if may else None}

    @property
    def _keeps_quiet(self) -> bool:
        """Whether nobody is told what choices are worth: the deal of a day is a contest."""
        return self.is_daily and not self.record.dealt.is_over

    def _require_talk(self) -> None:
        if self._keeps_quiet:
            raise Refused("not_now", "the deal of the day is played without help; it is judged at the end")

    def advice(self, at: int) -> dict[str, Any]:
        """Return what every option of the decision to be taken is worth.

        Raises:
            Refused: The page is not up to date, nothing is to be decided, or help is not allowed.
        """
        self._require_talk()
        dealt = self.record.dealt
        if at != len(self.record.actions):
            raise Refused("stale", f"at: {at} is not {len(self.record.actions)}, the decision to be taken")
        if dealt.is_over:
            raise Refused("bad_request", "the game is over")
        return advice_view(self.record.table.variant, dealt.state, dealt.action_mask(), self.adviser)

    def verdict(self, at: int) -> dict[str, Any] | None:
        """Return what a decision cost; ``None`` where there was no choice.

        Raises:
            Refused: There is no such decision, or help is not allowed.
        """
        self._require_talk()
        if not 0 <= at < len(self.record.actions):
            raise Refused("not_found", f"at: {at} is not from 0 to {len(self.record.actions) - 1}")
        for number, dealt in enumerate(self._positions()):
            if number == at:
                mask = dealt.action_mask()
                if mask.sum() == 1:
                    return None
                verdict = verdict_on(dealt.state, mask, self.record.actions[at], self.adviser)
                return explained_view(self.record.table.variant, verdict, self.adviser)
        raise AssertionError("every decision has its position")

    def review(self) -> dict[str, Any]:
        """Return what every decision cost, in order, and each seat's sum.

        Raises:
            Refused: Help is not allowed.
        """
        self._require_talk()
        record = self.record
        if len(self._verdicts) != len(record.actions):
            self._verdicts = list(verdicts_of(record, self.adviser))
        variant = record.table.variant
        decisions = [None if one is None else verdict_view(variant, one) for one in self._verdicts]
        seats = []
        for seat in range(len(record.table.seats)):
            own = [one for one in self._verdicts if one is not None and one.state.current_player == seat]
            seats.append(
                {
                    "num_decisions": len(own),
                    "num_optimal": sum(one.is_optimal for one in own),
                    "total_cost": sum(one.cost for one in own),
                }
            )
        return {"is_exact": self.adviser.is_exact, "decisions": decisions, "seats": seats}
