"""The terminal game: people and agents at one table, with hints, records and reviews."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from agents.base import Agent, AgentError, make_agent
from agents.game_record import GameRecord, described
from agents.opponents import SeatAgent, SoloOptimalAgent, make_seat_agent
from agents.play_words import text
from generala_env.envs.duel import ask
from generala_env.envs.rendering import die_lines, is_kept, sheet_rows, status_line
from generala_env.envs.table_observation import TableBatch, table_batch
from generala_env.rules.actions import NUM_KEEP_ACTIONS, Close, Keep, action_id, action_of
from generala_env.rules.card import Card, box_points
from generala_env.rules.compiled import CompiledVariant, compile_variant
from generala_env.rules.dice import (
    KEEP_OF_MASK,
    NUM_DICE,
    THROW_INDEX,
    THROWS_PER_TURN,
    Dice,
    canonical_mask,
    counts_of,
    select,
)
from generala_env.rules.game import GameState, Phase
from generala_env.rules.names import DiceSkin, box_name, face_label, word
from generala_env.rules.variants import Variant
from generala_env.solver.solo import solve_solo

PERSON: Final = "me"
HINT_CHOICES: Final = 8
REVIEW_CHOICES: Final = 8
NEGLIGIBLE: Final = 1e-9
LOG_LINES: Final = 12
WIDE: Final = 110
"""From this many columns on, the dice stand beside the sheet."""
SHEET_LINES: Final = 5
"""Lines of the sheet beside those of the boxes."""
TURN_LINES: Final = 10
"""Lines of the dice, the status, the frame and the prompt."""


class Leave(Exception):  # noqa: N818 - leaving is not an error
    """A person leaves the table; the record can be resumed."""


def is_person(seat: str) -> bool:
    """Tell whether a seat is a person's: ``me`` or ``me:NAME``."""
    return seat == PERSON or seat.startswith(f"{PERSON}:")


def seat_names(seats: Sequence[str], language: str) -> list[str]:
    """Return what the players are called, numbered where a name comes more than once."""
    names = []
    for seat in seats:
        name = seat.partition(":")[2] if is_person(seat) else Path(seat).name
        names.append(name or word("you", language))
    return [
        f"{name} {names[: index + 1].count(name)}" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


# --- advice ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """One choice of a decision.

    Attributes:
        action: Its id.
        win: Probability of winning, draws counting as shares; ``None`` when playing alone.
        points: Expected points still to come; in a playoff those of the turn.
    """

    action: int
    win: float | None
    points: float


class Adviser:
    """Knows what every choice is worth: exact points, and the chance of winning.

    For two players the exactly solved game is used where it is in the store, otherwise, and
    for more players, the estimate of ``race``.

    Attributes:
        is_exact: Whether the chances of winning are exact.
    """

    def __init__(self, compiled: CompiledVariant, num_players: int, store: Path | None = None) -> None:
        """Bind the adviser to a table; solutions are made when the first advice is asked for."""
        self.compiled = compiled
        self.num_players = num_players
        self._store = store
        self._winning: SeatAgent | None = None
        self._points: SeatAgent | None = None
        self.is_exact = False

    def _prepare(self) -> None:
        if self.num_players == 1 or self._winning is not None:
            return
        self._points = SoloOptimalAgent(self.compiled, self.num_players)
        winning: SeatAgent | Agent | None = None
        if self.num_players == 2:
            try:
                winning = make_seat_agent("duel_optimal", self.compiled, num_players=2, store=self._store)
                self.is_exact = True
            except AgentError:
                winning = None
        if winning is None:
            winning = make_seat_agent("race", self.compiled, num_players=self.num_players)
        assert isinstance(winning, SeatAgent)
        self._winning = winning

    def choices(self, state: GameState, mask: NDArray[np.bool_]) -> list[Choice]:
        """Return the legal choices of a position, the best first."""
        self._prepare()
        actions = np.flatnonzero(mask).tolist()
        if self._winning is None or self._points is None:
            points = solve_solo(self.compiled).q_values_batch(self.compiled.turn_batch(state))[0]
            chosen = [Choice(action, None, float(points[action])) for action in actions]
        else:
            batch: TableBatch = table_batch(self.compiled, state, state.current_player)
            win, points = self._winning.values(batch)[0], self._points.values(batch)[0]
            chosen = [Choice(action, float(win[action]), float(points[action])) for action in actions]
        return sorted(chosen, key=lambda choice: (-worth(choice), -choice.points, choice.action))


def worth(choice: Choice) -> float:
    """Return what a choice is judged by: the chance of winning, or points when playing alone."""
    return choice.points if choice.win is None else choice.win


# --- reading what a person types ------------------------------------------------------------------


class NotUnderstood(ValueError):  # noqa: N818 - it is shown to the person who typed
    """What was typed is no move; the message says why, in the person's language."""


def parse_dice(typed: str, skin: str) -> Dice | None:
    """Read faces: ``4 4 4``, ``444``, or ``K K 10`` on poker dice; ``None`` if they are none."""
    labels = {face_label(face, skin).upper(): face for face in range(1, 7)}
    left = typed.upper().replace(",", " ")
    faces = []
    while left := left.lstrip():
        # The longest label first, since 10 begins with a character of its own.
        label = next(
            (label for label in sorted(labels, key=len, reverse=True) if left.startswith(label)), None
        )
        if label is None:
            return None
        faces.append(labels[label])
        left = left[len(label) :]
    return tuple(sorted(faces)) if faces else None


def parse_move(
    typed: str, variant: Variant, state: GameState, mask: NDArray[np.bool_], language: str, skin: str
) -> int:
    """Read a move and return its action id.

    Args:
        typed: What was typed.
        variant: The rules.
        state: The position.
        mask: (num_actions,) bool, what is legal.
        language: Of names and of messages.
        skin: Of the dice.

    Raises:
        NotUnderstood: It is no move, or not one of these.
    """
    dice = state.turn.dice
    typed = typed.strip()
    box = _parse_box(typed, variant, language, skin)
    if box is not None:
        action = action_id(Close(box)) if box < variant.num_boxes else -1
        if action < 0 or not mask[action]:
            raise NotUnderstood(text("not_open", language))
        return action
    kept = _parse_keep(typed, dice, skin)
    if kept is None:
        raise NotUnderstood(text("not_understood", language, text=typed))
    try:
        keep_mask = canonical_mask(dice, kept)
    except ValueError:
        raise NotUnderstood(text("no_such_dice", language)) from None
    if len(kept) == NUM_DICE:
        raise NotUnderstood(text("all_five", language))
    if state.turn.throw == THROWS_PER_TURN:
        raise NotUnderstood(text("no_more_throws", language))
    if not mask[keep_mask]:
        raise NotUnderstood(text("locked_dice", language))
    return action_id(Keep(keep_mask))


def _parse_keep(typed: str, dice: Dice, skin: str) -> Dice | None:
    if typed == "-":
        return ()
    if typed.startswith("#"):
        places = [character for character in typed[1:] if not character.isspace() and character != ","]
        if not places or not all(place in "12345" for place in places) or len(set(places)) < len(places):
            return None
        return tuple(sorted(dice[int(place) - 1] for place in places))
    return parse_dice(typed, skin)


def _parse_box(typed: str, variant: Variant, language: str, skin: str) -> int | None:
    lowered = typed.lower()
    if lowered[:1] == "c" and lowered[1:].strip().isdecimal():
        number = int(lowered[1:])
        return number - 1 if number else variant.num_boxes
    if len(lowered) < 2 or parse_dice(typed, skin) is not None:
        return None
    matches = [
        index
        for index, box in enumerate(variant.boxes)
        if box.value == lowered or box_name(box, language, skin).lower() == lowered
    ]
    matches = matches or [
        index
        for index, box in enumerate(variant.boxes)
        if box_name(box, language, skin).lower().startswith(lowered)
    ]
    return matches[0] if len(matches) == 1 else None


# --- the screen -----------------------------------------------------------------------------------


class Screen:
    """Draws the table with rich: the sheet of everybody, the dice, what has happened."""

    def __init__(
        self, console: Console, variant: Variant, names: Sequence[str], *, language: str, skin: str
    ) -> None:
        """Bind the screen to a table."""
        self.console = console
        self.variant = variant
        self.names = list(names)
        self.language = language
        self.skin = skin
        self.log: deque[str] = deque(maxlen=LOG_LINES)

    def say(self, key: str, **values: object) -> str:
        """Return a sentence in the language of the table."""
        return text(key, self.language, **values)

    def faces(self, dice: Dice) -> str:
        """Return dice as their labels."""
        return " ".join(face_label(face, self.skin) for face in dice)

    def move(self, state: GameState, action: int) -> str:
        """Return what an action does, in words."""
        move = action_of(action, self.variant.num_boxes)
        if isinstance(move, Keep):
            kept = select(state.turn.dice, move.mask)
            if not kept:
                return self.say("will_throw_all")
            return self.say("will_keep", what=self.faces(kept), count=NUM_DICE - len(kept))
        name = box_name(self.variant.boxes[move.box], self.language, self.skin)
        points = self.pays(state, move.box)
        return (
            self.say("will_close", what=name, points=points) if points else self.say("will_strike", what=name)
        )

    def pays(self, state: GameState, box: int) -> int:
        """Return what closing a box would pay now, the Doble bonus left out."""
        served = self._is_served(state)
        card = Card.empty(self.variant) if state.phase is Phase.PLAYOFF else state.card
        return box_points(
            self.variant, card, self.variant.boxes[box], counts_of(state.turn.dice), served=served
        )

    def _is_served(self, state: GameState) -> bool:
        compiled = compile_variant(self.variant)
        return bool(compiled.is_served[state.turn.throw - 1, int(state.turn.is_full_throw)])

    def dice(self, state: GameState, pending: Dice | None = None) -> Columns:
        """Draw the dice; those set aside are green, those about to be yellow."""
        kept = is_kept(state.turn.dice, state.turn.kept)
        chosen = is_kept(state.turn.dice, pending or ())
        drawn = []
        for place, face in enumerate(state.turn.dice):
            style = "bold yellow" if chosen[place] else "green" if kept[place] else "white"
            drawn.append(Text("\n".join((*die_lines(face, self.skin), f"{place + 1:^9}")), style=style))
        return Columns(drawn, padding=(0, 1))

    def sheet(self, state: GameState, mask: NDArray[np.bool_] | None = None) -> RichTable:
        """Draw everybody's sheet, and what each box would pay the player to move."""
        table = RichTable(show_edge=False, pad_edge=False)
        table.add_column("", justify="right", style="dim")
        table.add_column(word("box", self.language), no_wrap=True)
        playing = None if state.phase is Phase.OVER else state.current_player
        for seat, name in enumerate(self.names):
            mark = "▸ " if seat == playing else ""
            winner = state.phase is Phase.OVER and seat in state.winners
            style = "bold green" if winner else "bold" if seat == playing else ""
            table.add_column(f"{mark}{name}", justify="right", style=style)
        if mask is not None:
            table.add_column(self.say("pays"), justify="right", style="cyan")
        rows = sheet_rows(self.variant, state, language=self.language, dice=self.skin)
        for index, row in enumerate(rows):
            is_box = index < self.variant.num_boxes
            cells = [str(index + 1) if is_box else "", *row]
            if mask is not None:
                can = is_box and bool(mask[NUM_KEEP_ACTIONS + index])
                cells.append(str(self.pays(state, index) or "—") if can else "")
            table.add_row(*cells, end_section=index == len(rows) - 2)
        return table

    def draw(
        self, state: GameState, *, mask: NDArray[np.bool_] | None = None, pending: Dice | None = None
    ) -> None:
        """Clear the terminal and draw everything."""
        self.console.clear()
        sheet = self.sheet(state, mask)
        turn: list[Any] = []
        is_wide = self.console.width >= WIDE
        room = self.console.height - TURN_LINES - (0 if is_wide else self.variant.num_boxes + SHEET_LINES)
        if self.log:
            turn.append(Text("\n".join(list(self.log)[-max(room, 2) :]), style="dim"))
        turn.append(Text(status_line(self.variant, state, self.names, language=self.language), style="bold"))
        if state.turn.dice:
            turn.append(self.dice(state, pending))
        title = f"Generala · {self.variant.name}"
        if is_wide:
            both = RichTable.grid(padding=(0, 3))
            both.add_row(sheet, Group(*turn))
            self.console.print(Panel(both, title=title, expand=False))
        else:
            self.console.print(Panel(Group(sheet, *turn), title=title, expand=False))

    def note(self, state: GameState, action: int) -> None:
        """Add a move to what has happened."""
        self.log.append(
            self.say(
                "does",
                name=self.names[state.current_player],
                dice=self.faces(state.turn.dice),
                what=self.move(state, action),
            )
        )

    def hint(self, state: GameState, choices: Sequence[Choice], *, is_exact: bool) -> None:
        """Show the best choices and what each is worth."""
        table = RichTable(title=self.say("hint_title"), title_style="bold")
        table.add_column(self.say("choice"))
        alone = choices[0].win is None
        if not alone:
            how = self.say("by_duel" if is_exact else "by_race")
            table.add_column(f"{self.say('win')} % ({how})", justify="right")
        table.add_column(self.say("points_to_come"), justify="right")
        for choice in choices[:HINT_CHOICES]:
            cells = [self.move(state, choice.action)]
            if choice.win is not None:
                cells.append(f"{100 * choice.win:.2f}")
            table.add_row(*cells, f"{choice.points:.2f}")
        self.console.print(table)

    def cost(self, value: float, *, alone: bool) -> str:
        """Return a cost in its unit: points alone, otherwise percent of winning."""
        return self.say("points_unit", value=value) if alone else f"{100 * value:.2f} %"


# --- playing --------------------------------------------------------------------------------------

Input = Callable[[str], str]


class TerminalGame:
    """A game between people and agents in one terminal.

    Args:
        record: The game and its file.
        console: Where it is drawn.
        language: ``es``, ``pt`` or ``en``.
        skin: ``standard`` or ``poker``.
        pause: Seconds to wait after each move of an agent.
        read: Reads one line after showing a prompt; raises ``EOFError`` at the end of input.
        store: Folder of solved two-player games.

    Raises:
        AgentError: An agent cannot be made.
    """

    def __init__(
        self,
        record: GameRecord,
        console: Console,
        *,
        language: str = "en",
        skin: str = DiceSkin.STANDARD,
        pause: float = 0.0,
        read: Input | None = None,
        store: Path | None = None,
    ) -> None:
        """Seat everybody."""
        self.record = record
        self.variant = record.table.variant
        self.compiled = compile_variant(self.variant)
        seats = record.table.seats
        self.screen = Screen(console, self.variant, seat_names(seats, language), language=language, skin=skin)
        self.language = language
        self.skin = skin
        self.pause = pause
        self.read = read if read is not None else console.input
        self.adviser = Adviser(self.compiled, len(seats), store)
        self.agents = [
            None if is_person(seat) else self._agent(seat, index, store) for index, seat in enumerate(seats)
        ]

    def _agent(self, name: str, index: int, store: Path | None) -> SeatAgent | Agent:
        seed = self.record.table.seed + index
        num_players = len(self.record.table.seats)
        if num_players == 1:
            return make_agent(name, self.compiled, seed=seed)
        return make_seat_agent(name, self.compiled, num_players=num_players, seed=seed, store=store)

    def play(self) -> None:
        """Play to the end.

        Raises:
            Leave: A person leaves, or the input ends.
        """
        dealt = self.record.dealt
        if not self.record.actions and not dealt.is_over and len(self.agents) > 1:
            name = self.screen.names[dealt.state.current_player]
            self.screen.log.append(self.screen.say("starts", name=name))
        while not dealt.is_over:
            state = dealt.state
            mask = dealt.action_mask()
            agent = self.agents[state.current_player]
            action = self._ask_person(state, mask) if agent is None else self._ask_agent(agent, state, mask)
            self.screen.note(state, action)
            self.record.take(action)
            if agent is not None and self.pause > 0:
                self.screen.draw(dealt.state)
                time.sleep(self.pause)
        if not self.record.actions:
            self.screen.log.append(self.screen.say("first_throw_won"))
        self.screen.draw(dealt.state)

    def _ask_agent(self, agent: SeatAgent | Agent, state: GameState, mask: NDArray[np.bool_]) -> int:
        if mask.sum() == 1:
            return int(mask.argmax())
        if len(self.agents) == 1:
            assert isinstance(agent, Agent)
            observation = agent.layout.encode(self.compiled.turn_batch(state))
            action = int(agent.act(observation, mask[None])[0])
        else:
            batch = table_batch(self.compiled, state, state.current_player)
            action = int(ask(agent, batch, mask[None], deterministic=True)[0])
        # A trained agent may name something illegal; at a table it then takes the lowest legal action.
        return action if mask[action] else int(mask.argmax())

    def _ask_person(self, state: GameState, mask: NDArray[np.bool_]) -> int:
        console, say = self.screen.console, self.screen.say
        self.screen.draw(state, mask=mask)
        prompt = f"{say('prompt')} (h, ?, u, x): "
        while True:
            typed = self._read(prompt)
            if typed in ("h", "help"):
                console.print(say("help"), markup=False, highlight=False)
            elif typed == "?":
                self.screen.hint(state, self.adviser.choices(state, mask), is_exact=self.adviser.is_exact)
            elif typed not in ("", "u"):
                try:
                    action = parse_move(typed, self.variant, state, mask, self.language, self.skin)
                except NotUnderstood as error:
                    console.print(str(error), style="red", markup=False, highlight=False)
                    continue
                if self._confirms(state, mask, action):
                    return action
                self.screen.draw(state, mask=mask)

    def _confirms(self, state: GameState, mask: NDArray[np.bool_], action: int) -> bool:
        """Show what is about to happen; an empty line does it, ``u`` takes it back."""
        move = action_of(action, self.variant.num_boxes)
        if isinstance(move, Keep):
            self.screen.draw(state, mask=mask, pending=select(state.turn.dice, move.mask))
        what = self.screen.move(state, action)
        while True:
            typed = self._read(f"{what} — {self.screen.say('confirm')}: ")
            if typed in ("", "u"):
                return typed == ""

    def _read(self, prompt: str) -> str:
        try:
            typed = self.read(prompt).strip()
        except EOFError:
            raise Leave from None
        if typed.lower() == "x":
            raise Leave
        return typed


# --- afterwards -----------------------------------------------------------------------------------


def replay(record: GameRecord, screen: Screen, wait: Callable[[], None]) -> None:
    """Show every position of a recorded game with the move that was made in it."""
    for state, action in record.history():
        kept = None
        move = action_of(action, record.table.variant.num_boxes)
        if isinstance(move, Keep):
            kept = select(state.turn.dice, move.mask)
        screen.draw(state, pending=kept)
        screen.console.print(
            f"{screen.names[state.current_player]}: {screen.move(state, action)}",
            markup=False,
            highlight=False,
        )
        wait()
        screen.note(state, action)
    screen.draw(record.dealt.state)


@dataclass(frozen=True)
class Verdict:
    """What one decision of a recorded game cost.

    Attributes:
        state: The position.
        action: What was done.
        best: What was best.
        cost: What it lost: chance of winning, or points when playing alone.
    """

    state: GameState
    action: int
    best: int
    cost: float


def judge(record: GameRecord, adviser: Adviser) -> list[list[Verdict]]:
    """Judge every decision of a recorded game where there was a choice, seat by seat."""
    verdicts: list[list[Verdict]] = [[] for _ in record.table.seats]
    dealt = record.table.deal()
    for action in record.actions:
        state, mask = dealt.state, dealt.action_mask()
        dealt.apply(action)
        if mask.sum() == 1:
            continue
        choices = adviser.choices(state, mask)
        done = _canonical(state, action)
        chosen = next(choice for choice in choices if choice.action == done)
        cost = max(0.0, worth(choices[0]) - worth(chosen))
        best = done if cost <= NEGLIGIBLE else choices[0].action
        verdicts[state.current_player].append(Verdict(state, done, best, cost))
    return verdicts


def _canonical(state: GameState, action: int) -> int:
    """Return the lowest action id that does the same."""
    if action >= NUM_KEEP_ACTIONS:
        return action
    row = KEEP_OF_MASK[THROW_INDEX[state.turn.dice]]
    return int(np.flatnonzero(row[:NUM_KEEP_ACTIONS] == row[action])[0])


def review(record: GameRecord, screen: Screen, adviser: Adviser) -> None:
    """Print, for each seat, its share of optimal decisions and the ones that cost most."""
    alone = len(record.table.seats) == 1
    for name, verdicts in zip(screen.names, judge(record, adviser), strict=True):
        total = sum(verdict.cost for verdict in verdicts)
        good = sum(verdict.cost <= NEGLIGIBLE for verdict in verdicts)
        line = screen.say(
            "review_sum", name=name, good=good, count=len(verdicts), cost=screen.cost(total, alone=alone)
        )
        screen.console.print(line, style="bold", markup=False, highlight=False)
        worst = sorted((v for v in verdicts if v.cost > NEGLIGIBLE), key=lambda v: -v.cost)[:REVIEW_CHOICES]
        if not worst:
            continue
        table = RichTable(title=screen.say("review_title", name=name))
        for heading in (word("round", screen.language), word("throw", screen.language)):
            table.add_column(heading, justify="right")
        table.add_column(word("dice", screen.language), no_wrap=True)
        for key in ("did", "best"):
            table.add_column(screen.say(key))
        table.add_column(screen.say("cost"), justify="right", no_wrap=True)
        for verdict in worst:
            state = verdict.state
            table.add_row(
                word("playoff", screen.language) if state.phase is Phase.PLAYOFF else str(state.round),
                str(state.turn.throw),
                screen.faces(state.turn.dice),
                screen.move(state, verdict.action),
                screen.move(state, verdict.best),
                screen.cost(verdict.cost, alone=alone),
            )
        screen.console.print(table)


def review_json(record: GameRecord, adviser: Adviser, names: Sequence[str]) -> dict[str, Any]:
    """Return a review as JSON types."""
    variant = record.table.variant
    verdicts = judge(record, adviser)
    return {
        "variant": variant.name,
        "fingerprint": variant.fingerprint,
        "unit": "points" if len(names) == 1 else "probability of winning",
        "is_exact": adviser.is_exact or len(names) == 1,
        "seats": [
            {
                "name": name,
                "num_decisions": len(own),
                "num_optimal": sum(verdict.cost <= NEGLIGIBLE for verdict in own),
                "total_cost": sum(verdict.cost for verdict in own),
                "mistakes": [
                    {
                        "round": verdict.state.round,
                        "throw": verdict.state.turn.throw,
                        "dice": list(verdict.state.turn.dice),
                        "did": described(variant, verdict.state, verdict.action),
                        "best": described(variant, verdict.state, verdict.best),
                        "cost": verdict.cost,
                    }
                    for verdict in sorted(own, key=lambda verdict: -verdict.cost)
                    if verdict.cost > NEGLIGIBLE
                ],
            }
            for name, own in zip(names, verdicts, strict=True)
        ],
    }
