"""The one-player environment: a card filled alone."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from generala_env.envs.observation import ObservationLayout, keep_rows, observation_layout, row_tables
from generala_env.envs.picture import DEFAULT_SIZE, Frame
from generala_env.envs.positions import Position, game_state, position_of
from generala_env.envs.showing import RENDER_FPS, RENDER_MODES, Showing, Shown
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import (
    DEFAULT_INSTANT_WIN,
    CompiledVariant,
    InstantWin,
    compile_variant,
    instant_win_points,
)
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    NUM_ORDERED_THROWS,
    NUM_THROWS,
    THROWS,
    THROWS_PER_TURN,
    next_throw_table,
)
from generala_env.rules.game import GameState, IllegalActionError
from generala_env.rules.variants import DEFAULT_VARIANT, Variant, get_variant

IllegalAction = Literal["raise", "penalty", "terminate"]
ILLEGAL_ACTIONS: tuple[str, ...] = ("raise", "penalty", "terminate")


def check_illegal_action(illegal_action: str) -> None:
    """Check the option that says what an illegal action does.

    Raises:
        ValueError: It is not one of ``ILLEGAL_ACTIONS``.
    """
    if illegal_action not in ILLEGAL_ACTIONS:
        raise ValueError(f"illegal_action: {illegal_action!r} is not one of {', '.join(ILLEGAL_ACTIONS)}")


class _Sequences(NamedTuple):
    """The compiled tables as Python sequences, which are read one entry at a time much faster.

    Attributes:
        next_throw: By keep, the throw after each roll.
        keep_of_mask: By throw and keep action.
        served: By throw number (from 1) and whether all dice were thrown.
        five_equal: By throw.
        instant_win: By card.
        num_open: By card.
        open_mask: By card.
        status: By card.
        keeps: By context and throw, the part of the mask for keeps as bytes; see ``keep_rows``.
        closes: By card, the part of the mask for boxes as bytes.
        turn: Rows of observations as bytes; see ``RowTables``.
        locked: Likewise.
        card: Likewise.
        pays: Rows as integers of the same bytes, so that one ``&`` blanks the closed boxes.
        closable: What to ``&`` them with, by card: all bits of each box that may be closed.
        dice: Rows as bytes.
        pays_bytes: The bytes of a row of ``pays``.
        open_names: By open mask, the names of the open boxes.
    """

    next_throw: list[bytes]
    keep_of_mask: list[list[int]]
    served: list[list[bool]]
    five_equal: list[bool]
    instant_win: list[bool]
    num_open: list[int]
    open_mask: list[int]
    status: list[int]
    keeps: list[list[bytes]]
    closes: list[bytes]
    turn: list[bytes]
    locked: list[bytes]
    card: list[bytes]
    pays: list[int]
    closable: list[int]
    dice: list[bytes]
    pays_bytes: int
    open_names: list[tuple[str, ...]]


def _integers(rows: NDArray[Any]) -> list[int]:
    """Return the bytes of each row as an integer."""
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


@lru_cache(maxsize=32)
def _sequences(compiled: CompiledVariant, layout: ObservationLayout, canonical_keeps: bool) -> _Sequences:
    rows = row_tables(layout)
    boxes = [box.value for box in compiled.variant.boxes]
    return _Sequences(
        next_throw=[row.tobytes() for row in next_throw_table()],
        keep_of_mask=KEEP_OF_MASK.tolist(),
        served=[[], *compiled.is_served.tolist()],
        five_equal=IS_FIVE_EQUAL.tolist(),
        instant_win=compiled.instant_win.tolist(),
        num_open=compiled.num_open.tolist(),
        open_mask=compiled.card_open.tolist(),
        status=compiled.card_status.tolist(),
        keeps=[[row.tobytes() for row in context] for context in keep_rows(compiled, canonical_keeps)],
        closes=[row.tobytes() for row in compiled.closable.astype(np.int8)],
        turn=[row.tobytes() for row in rows.turn],
        locked=[row.tobytes() for row in rows.locked],
        card=[row.tobytes() for row in rows.card],
        pays=_integers(rows.pays) or [0] * (len(compiled.statuses) * 2 * NUM_THROWS),
        closable=_integers(np.where(rows.closable > 0, np.uint32(0xFFFFFFFF), np.uint32(0))),
        dice=[row.tobytes() for row in rows.dice],
        pays_bytes=rows.pays.shape[1] * rows.pays.itemsize,
        open_names=[
            tuple(name for index, name in enumerate(boxes) if opened >> index & 1)
            for opened in range(1 << len(boxes))
        ],
    )


class GeneralaEnv(gym.Env[NDArray[np.float32], np.int64]):
    """Fill a Generala card alone.

    ## Description
    Five dice, up to three throws a turn. After each throw the player closes a box of the
    card with the dice on the table or, after the first two, keeps some dice and throws the
    rest. Each box is closed once. Which boxes there are and what they pay is the variant's.

    ## Action Space
    ``Discrete(31 + boxes)``. Ids 0 to 30 keep the dice whose bit is set in the id, of the
    five in ascending order (bit 0 is the lowest die); id ``31 + i`` closes box ``i``. Masks
    that keep equal dice are one decision: only the lowest id is offered, unless
    ``canonical_keeps=False``.

    ``action_masks()`` returns bool ``(n_actions,)``; ``info["action_mask"]`` is an int8 copy,
    fresh at each step. Both are all zeros once the episode is over.

    ## Observation Space
    A float32 vector in [0, 1] made of named blocks; ``env.unwrapped.layout.table()`` prints
    which block is where, and ``observation_blocks`` chooses them.

    ## Starting State
    An empty card, and the first throw on the table. Each throw takes one uniform draw of
    ``np_random``, and nothing else does: the same seed and actions give the same episode.

    ## Rewards
    The points of the closing action, 0.0 for a keep, and on an instant win what
    ``instant_win`` says on top. The sum of rewards is the final score, so train with
    ``gamma=1``.

    ## Episode End
    ``terminated`` when the card is full, or when a served Generala wins at once; never
    ``truncated``. The last observation shows the last dice and the final card.

    By default, ``instant_win="play_on"``, nothing is won at once: the throw is an ordinary served
    one. With ``"perfect"`` or a number, and where the variant says so, a throw that wins ends the
    episode within the step that made it. If the very first throw of an episode wins, there is no
    step to end: the environment then offers a single action, which ends the episode and pays the
    win.

    ## Information
    ``action_mask``, ``dice`` (five ascending ints), ``throw`` (1 to 3), ``served``,
    ``open_boxes`` (names), ``score``; at the end ``instant_win`` and ``final_score``; after an
    illegal action that did not raise, ``illegal_action`` with its id.

    ## Arguments
    Those of ``__init__``; ``gym.make`` passes them on by name.

    ## Version History
    * v0: first version.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium has it
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        variant: str | Mapping[str, Any] | Variant = DEFAULT_VARIANT,
        *,
        instant_win: InstantWin = DEFAULT_INSTANT_WIN,
        illegal_action: IllegalAction = "raise",
        illegal_reward: float = -1.0,
        canonical_keeps: bool = True,
        observation_blocks: Sequence[str] | None = None,
        render_mode: str | None = None,
        dice: str = "standard",
        language: str = "en",
        render_size: int = DEFAULT_SIZE,
        render_theme: str = "light",
    ) -> None:
        """Make the environment.

        Args:
            variant: A preset's name, a mapping of overrides with ``base``, or a ``Variant``.
            instant_win: What a served Generala that wins does: ``"play_on"`` goes on, ``"perfect"``
                ends the episode and pays the variant's perfect score, a number pays that many
                points instead.
            illegal_action: ``"raise"`` an ``IllegalActionError`` and change nothing,
                ``"penalty"`` give ``illegal_reward`` and change nothing, or ``"terminate"``
                give it and end the episode.
            illegal_reward: The reward of an illegal action that does not raise.
            canonical_keeps: Offer one id per kept multiset.
            observation_blocks: Names of the blocks in the observation.
            render_mode: ``"ansi"`` (text), ``"rgb_array"`` (pictures), ``"human"`` (a window) or ``None``.
            dice: Which dice are shown to people, ``"standard"`` or ``"poker"``.
            language: Language shown to people, ``"en"``, ``"es"`` or ``"pt"``.
            render_size: Width of pictures in pixels, from 320; they are a quarter higher.
            render_theme: Colours of pictures, ``"light"`` or ``"dark"``.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        check_illegal_action(illegal_action)
        self.variant = get_variant(variant)
        self._showing = Showing(
            self.variant, render_mode, language=language, dice=dice, size=render_size, theme=render_theme
        )
        self.compiled = compile_variant(self.variant)
        self.instant_win = instant_win
        self.instant_win_points = instant_win_points(self.compiled, instant_win)
        self.illegal_action = illegal_action
        self.illegal_reward = float(illegal_reward)
        self.canonical_keeps = canonical_keeps
        self.layout = observation_layout(self.compiled, observation_blocks)
        self.render_mode = render_mode
        self._is_watched = render_mode == "human"
        self.dice = dice
        self.language = language
        self.observation_space = spaces.Box(0.0, 1.0, (self.layout.size,), np.float32)
        self.action_space = spaces.Discrete(self.compiled.num_actions)
        self._sequences = _sequences(self.compiled, self.layout, canonical_keeps)
        self._size = self.layout.size
        self._is_locked = self.variant.is_locked
        self._num_actions = self.compiled.num_actions
        self._is_over = True
        self._is_won = False
        self._card = self._throw = self._kept = 0
        self._throw_number = 1
        self._served = True
        self._sheet: list[int | None] = []
        self._bonus = 0
        self._last_box: int | None = None
        self._score = 0.0
        self._mask = bytes(self._num_actions)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the tables: they follow from the variant, and are large."""
        state = vars(self).copy()
        del state["compiled"], state["_sequences"], state["layout"]
        return {**state, "blocks": self.layout.names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the tables of the variant again."""
        blocks = state.pop("blocks")
        vars(self).update(state)
        self.compiled = compile_variant(self.variant)
        self.layout = observation_layout(self.compiled, blocks)
        self._sequences = _sequences(self.compiled, self.layout, self.canonical_keeps)

    @property
    def state(self) -> GameState:
        """The position as the engine and the solvers know it."""
        position = Position(
            self._card,
            self._throw,
            self._throw_number,
            self._served,
            self._kept,
            self._is_over,
            self._is_won,
            self._bonus,
        )
        return game_state(self.compiled, position, self._sheet)

    def set_state(self, state: GameState) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Lay a position on the table and go on from it; the generator goes on as it was.

        The score is what the sheet shows, and the win if the game was won at once. A game that is over
        offers no action; a decision whose throw has won offers the one action that ends the game.

        Args:
            state: A position of a game played alone: a decision, or the end.

        Returns:
            Observation and ``info``, as ``reset`` does.

        Raises:
            ValueError: The environment cannot be in that position; nothing has changed.
        """
        wins_at_once = self.instant_win_points is not None
        position = position_of(self.compiled, state, wins_at_once=wins_at_once)
        self._card, self._throw, self._throw_number = position.card, position.throw, position.throw_number
        self._served, self._kept = bool(position.served), position.kept
        self._is_over, self._is_won = bool(position.is_over), bool(position.is_won)
        self._sheet, self._bonus = list(state.players[0].sheet), position.bonus
        self._score = float(state.players[0].score)
        if self._is_over and self._is_won:
            self._score += self.instant_win_points or 0.0
        self._update_mask()
        return self._observe(), self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now; (n_actions,) bool, all false at the end."""
        return np.ndarray(self._num_actions, np.bool_, bytearray(self._mask))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start a new card and make the first throw.

        Args:
            seed: Seed of ``np_random``; ``None`` goes on with the present generator.
            options: Not used.
        """
        del options
        super().reset(seed=seed)
        self._is_over = self._is_won = False
        self._card = 0
        self._sheet = [None] * self.compiled.num_boxes
        self._bonus = 0
        self._last_box = None
        self._score = 0.0
        self._make_throw(EMPTY_KEEP, 1)
        self._update_mask()
        if self._is_watched:
            self.render()
        return self._observe(), self._info()

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Keep dice and throw the rest, or close a box and begin the next turn.

        Raises:
            IllegalActionError: The action is not legal and ``illegal_action`` is ``"raise"``.
            gymnasium.error.ResetNeeded: The episode is over.
        """
        if self._is_over:
            raise gym.error.ResetNeeded("the episode is over (or not begun): call reset()")
        try:
            chosen = operator.index(action)
        except TypeError:
            raise IllegalActionError(f"action {action!r} is not an integer") from None
        if not 0 <= chosen < self._num_actions or not self._mask[chosen]:
            return self._illegal(chosen)
        tables = self._sequences
        reward = 0.0
        if self._is_won:
            self._is_over = True
        elif chosen < NUM_KEEP_ACTIONS:
            self._make_throw(tables.keep_of_mask[self._throw][chosen], self._throw_number + 1)
        else:
            reward = self._close(chosen - NUM_KEEP_ACTIONS)
            if tables.num_open[self._card]:
                self._make_throw(EMPTY_KEEP, 1)
            else:
                self._is_over = True
        if self._is_won:
            assert self.instant_win_points is not None
            reward += self.instant_win_points
            self._is_over = True
        self._score += reward
        self._update_mask()
        if self._is_watched:
            self.render()
        return self._observe(), reward, self._is_over, False, self._info()

    def _illegal(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        if self.illegal_action == "raise":
            legal = np.flatnonzero(self.action_masks()).tolist()
            raise IllegalActionError(f"action {action} is not legal here; legal: {legal}")
        if self.illegal_action == "terminate":
            self._is_over = True
            self._update_mask()
        info = self._info()
        info["illegal_action"] = action
        return self._observe(), self.illegal_reward, self._is_over, False, info

    def _make_throw(self, keep: int, throw_number: int) -> None:
        tables = self._sequences
        self._kept = keep
        self._throw_number = throw_number
        # The roll is that of rules.dice.roll_of.
        throw = self._throw = tables.next_throw[keep][int(self.np_random.random() * NUM_ORDERED_THROWS)]
        served = self._served = tables.served[throw_number][keep == EMPTY_KEEP]
        self._is_won = (
            served
            and tables.five_equal[throw]
            and self.instant_win_points is not None
            and tables.instant_win[self._card]
        )

    def _close(self, box: int) -> float:
        compiled, tables = self.compiled, self._sequences
        before = tables.status[self._card]
        where = (before, box, int(self._served), self._throw)
        points = compiled.points.item(where)
        after = compiled.next_status.item(where)
        bonus = compiled.bonus.item(before, after)
        self._sheet[box] = points - bonus
        self._last_box = box
        self._bonus += bonus
        self._card = compiled.card_index.item(tables.open_mask[self._card] & ~(1 << box), after)
        return float(points)

    def _update_mask(self) -> None:
        if self._is_over:
            self._mask = bytes(self._num_actions)
            return
        tables = self._sequences
        closes = tables.closes[self._card]
        if self._is_won:
            # The first throw of the episode has won: one action, which ends it.
            first = closes.index(1)
            self._mask = bytes(NUM_KEEP_ACTIONS + first) + b"\1" + bytes(len(closes) - first - 1)
            return
        context = 0
        if self._throw_number < THROWS_PER_TURN:
            context = self._kept + 1 if self._is_locked else 1
        self._mask = tables.keeps[context][self._throw] + closes

    def _observe(self) -> NDArray[np.float32]:
        """Gather the observation as ``ObservationLayout.encode`` does, for one state."""
        tables, card, throw, served = self._sequences, self._card, self._throw, int(self._served)
        row = served * NUM_THROWS + throw
        pays = tables.pays[tables.status[card] * 2 * NUM_THROWS + row] & tables.closable[card]
        parts = (
            tables.turn[(self._throw_number - 1) * 2 * NUM_THROWS + row],
            tables.locked[self._kept],
            tables.card[card],
            pays.to_bytes(tables.pays_bytes, "little"),
            tables.dice[throw],
        )
        # The array owns the bytearray, so it may be written to. Copying five rows into an array
        # one by one takes twice as long.
        return np.ndarray(self._size, np.float32, bytearray(b"".join(parts)))

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "action_mask": np.ndarray(self._num_actions, np.int8, bytearray(self._mask)),
            "dice": THROWS[self._throw],
            "throw": self._throw_number,
            "served": self._served,
            "open_boxes": self._sequences.open_names[self._sequences.open_mask[self._card]],
            "score": self._score,
        }
        if self._is_over:
            info["instant_win"] = self._is_won
            info["final_score"] = self._score
        return info

    def render(self) -> str | Frame | None:
        """Return the game as text (``"ansi"``) or as a picture (``"rgb_array"``), or show it (``"human"``).

        Raises:
            gymnasium.error.DependencyNotInstalled: What draws or shows pictures is not installed.
        """
        return self._showing.one(Shown(self.state, (self._last_box,)))

    def close(self) -> None:
        """Close the window if one is open."""
        self._showing.close()
