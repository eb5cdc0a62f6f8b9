"""The one-player environment: a card filled alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from generala_env.envs.observation import observation_layout
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import TurnBatch, compile_variant, instant_win_points
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    KEEPS,
    THROWS,
    next_throw_table,
    roll_of,
)
from generala_env.rules.game import GameState, IllegalActionError, Phase, Player, Turn
from generala_env.rules.variants import DEFAULT_VARIANT, Variant, get_variant

IllegalAction = Literal["raise", "penalty", "terminate"]
ILLEGAL_ACTIONS: tuple[str, ...] = ("raise", "penalty", "terminate")


class GeneralaEnv(gym.Env[NDArray[np.float32], np.int64]):
    """Fill a Generala card alone.

    ## Game
    Five dice, up to three throws a turn. After each throw the player closes a box of the
    card with the dice on the table or, after the first two, keeps some dice and throws the
    rest. Each box is closed once; the episode ends when the card is full, or at once with a
    served Generala where the variant says that it wins.

    ## Actions
    ``Discrete(31 + boxes)``. Ids 0 to 30 keep the dice whose bit is set in the id, of the
    five in ascending order (bit 0 is the lowest die); id ``31 + i`` closes box ``i``. Masks
    that keep equal dice are one decision: only the lowest id is offered, unless
    ``canonical_keeps=False``.

    ## Masks
    ``action_masks()`` returns bool ``(n_actions,)``; ``info["action_mask"]`` is an int8 copy,
    fresh at each step. Both are all zeros once the episode is over.

    ## Observations
    A float32 vector in [0, 1] made of blocks; ``env.unwrapped.layout.table()`` prints which
    block is where, and ``observation_blocks`` chooses them.

    ## Rewards
    The points of the closing action, 0.0 for a keep, and on an instant win what
    ``instant_win`` says on top. The sum of rewards is the final score, so train with
    ``gamma=1``.

    ## Instant win
    A throw that wins ends the episode within the step that made it. If the very first throw
    of an episode wins, there is no step to end: the environment then offers a single action,
    which ends the episode and pays the win. With ``"play_on"`` nothing is won at once.

    ## Episode end
    ``terminated`` when the card is full or the game is won; never ``truncated``. The last
    observation shows the last dice and the final card.

    ## Info
    ``action_mask``, ``dice`` (five ascending ints), ``throw`` (1 to 3), ``served``,
    ``open_boxes`` (names), ``score``; at the end ``instant_win`` and ``final_score``; after an
    illegal action that did not raise, ``illegal_action`` with its id.

    ## Seeding
    One uniform draw of ``np_random`` per throw and nothing else: the same seed and actions
    give the same episode.

    ## Version history
    * v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium has it

    def __init__(
        self,
        variant: str | Mapping[str, Any] | Variant = DEFAULT_VARIANT,
        *,
        instant_win: Literal["perfect", "play_on"] | float = "perfect",
        illegal_action: IllegalAction = "raise",
        illegal_reward: float = -1.0,
        canonical_keeps: bool = True,
        observation_blocks: Sequence[str] | None = None,
        render_mode: str | None = None,
        dice: str = "standard",
        language: str = "en",
    ) -> None:
        """Make the environment.

        Args:
            variant: A preset's name, a mapping of overrides with ``base``, or a ``Variant``.
            instant_win: ``"perfect"`` ends the episode and pays the variant's perfect score, a
                number pays that many points instead, ``"play_on"`` goes on.
            illegal_action: ``"raise"`` an ``IllegalActionError`` and change nothing,
                ``"penalty"`` give ``illegal_reward`` and change nothing, or ``"terminate"``
                give it and end the episode.
            illegal_reward: The reward of an illegal action that does not raise.
            canonical_keeps: Offer one id per kept multiset.
            observation_blocks: Names of the blocks in the observation.
            render_mode: ``"ansi"`` or ``None``.
            dice: Which dice are shown to people, ``"standard"`` or ``"poker"``.
            language: Language shown to people, ``"en"``, ``"es"`` or ``"pt"``.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        if illegal_action not in ILLEGAL_ACTIONS:
            allowed = ", ".join(ILLEGAL_ACTIONS)
            raise ValueError(f"illegal_action: {illegal_action!r} is not one of {allowed}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode: {render_mode!r} is not one of {self.metadata['render_modes']}")
        self.variant = get_variant(variant)
        self.compiled = compile_variant(self.variant)
        self.instant_win = instant_win
        self.instant_win_points = instant_win_points(self.compiled, instant_win)
        self.illegal_action = illegal_action
        self.illegal_reward = float(illegal_reward)
        self.canonical_keeps = canonical_keeps
        self.layout = observation_layout(self.compiled, observation_blocks)
        self.render_mode = render_mode
        self.dice = dice
        self.language = language
        self.observation_space = spaces.Box(0.0, 1.0, (self.layout.size,), np.float32)
        self.action_space = spaces.Discrete(self.compiled.num_actions)
        self._is_over = True
        self._is_won = False
        self._card = self._throw = self._kept = 0
        self._throw_number = 1
        self._served = True
        self._sheet: list[int | None] = []
        self._bonus = 0
        self._score = 0.0
        self._mask = np.zeros(self.compiled.num_actions, dtype=bool)

    @property
    def state(self) -> GameState:
        """The position as the engine and the solvers know it."""
        card = self.compiled.card(self._card)
        turn = Turn(self._throw_number, THROWS[self._throw], KEEPS[self._kept])
        player = Player(card, tuple(self._sheet), self._bonus)
        closed = self.compiled.num_boxes - card.num_open
        return GameState(
            Phase.OVER if self._is_over or self._is_won else Phase.TURNS,
            (player,),
            first_player=0,
            round=min(closed + 1, self.compiled.num_boxes),
            turn=turn,
            winners=(0,) if self._is_over or self._is_won else (),
            is_instant_win=self._is_won,
        )

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now; (n_actions,) bool, all false at the end."""
        return self._mask.copy()

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
        self._score = 0.0
        self._begin_turn()
        self._update_mask()
        return self._observe(), self._info()

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Keep dice and throw the rest, or close a box and begin the next turn.

        Raises:
            IllegalActionError: The action is not legal and ``illegal_action`` is ``"raise"``.
            gymnasium.error.ResetNeeded: The episode is over.
        """
        if self._is_over:
            raise gym.error.ResetNeeded("the episode is over (or not begun): call reset()")
        if not self.action_space.contains(np.int64(action)) or not self._mask[action]:
            return self._illegal(action)
        reward = 0.0
        if self._is_won:
            self._is_over = True
        elif action < NUM_KEEP_ACTIONS:
            self._make_throw(int(KEEP_OF_MASK[self._throw, action]), self._throw_number + 1)
        else:
            reward = self._close(int(action) - NUM_KEEP_ACTIONS)
            if self.compiled.num_open[self._card]:
                self._begin_turn()
            else:
                self._is_over = True
        if self._is_won:
            assert self.instant_win_points is not None
            reward += self.instant_win_points
            self._is_over = True
        self._score += reward
        self._update_mask()
        return self._observe(), reward, self._is_over, False, self._info()

    def _illegal(
        self, action: np.int64 | int
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        if self.illegal_action == "raise":
            legal = np.flatnonzero(self._mask).tolist()
            raise IllegalActionError(f"action {action} is not legal here; legal: {legal}")
        if self.illegal_action == "terminate":
            self._is_over = True
            self._update_mask()
        info = self._info()
        info["illegal_action"] = int(action)
        return self._observe(), self.illegal_reward, self._is_over, False, info

    def _begin_turn(self) -> None:
        self._make_throw(EMPTY_KEEP, 1)

    def _make_throw(self, keep: int, throw_number: int) -> None:
        self._kept = keep
        self._throw_number = throw_number
        self._throw = int(next_throw_table()[keep, roll_of(self.np_random.random())])
        self._served = bool(self.compiled.is_served[throw_number - 1, int(keep == EMPTY_KEEP)])
        self._is_won = bool(
            self.instant_win_points is not None
            and self._served
            and IS_FIVE_EQUAL[self._throw]
            and self.compiled.instant_win[self._card]
        )

    def _close(self, box: int) -> float:
        compiled, served = self.compiled, int(self._served)
        before = compiled.card_status[self._card]
        points = int(compiled.points[before, box, served, self._throw])
        after = compiled.next_status[before, box, served, self._throw]
        bonus = 0
        if compiled.statuses[after].is_bonus_taken and not compiled.statuses[before].is_bonus_taken:
            bonus = self.variant.doble.points
        self._sheet[box] = points - bonus
        self._bonus += bonus
        self._card = int(compiled.card_index[int(compiled.card_open[self._card]) & ~(1 << box), after])
        return float(points)

    def _batch(self) -> TurnBatch:
        return TurnBatch(
            np.array([self._card]),
            np.array([self._throw]),
            np.array([self._throw_number]),
            np.array([self._served]),
            np.array([self._kept]),
        )

    def _update_mask(self) -> None:
        if self._is_over:
            self._mask = np.zeros(self.compiled.num_actions, dtype=bool)
            return
        self._mask = self.compiled.action_masks(self._batch(), canonical=self.canonical_keeps)[0]
        if self._is_won:
            # The first throw of the episode has won: one action, which ends it.
            only = NUM_KEEP_ACTIONS + int(self._mask[NUM_KEEP_ACTIONS:].argmax())
            self._mask[:] = False
            self._mask[only] = True

    def _observe(self) -> NDArray[np.float32]:
        observation: NDArray[np.float32] = self.layout.encode(self._batch())[0]
        return observation

    def _info(self) -> dict[str, Any]:
        opened = int(self.compiled.card_open[self._card])
        info: dict[str, Any] = {
            "action_mask": self._mask.astype(np.int8),
            "dice": THROWS[self._throw],
            "throw": self._throw_number,
            "served": self._served,
            "open_boxes": tuple(
                box.value for index, box in enumerate(self.variant.boxes) if opened >> index & 1
            ),
            "score": self._score,
        }
        if self._is_over:
            info["instant_win"] = self._is_won
            info["final_score"] = self._score
        return info

    def render(self) -> str | None:
        """Return the dice and the score sheet as text when ``render_mode`` is ``"ansi"``."""
        if self.render_mode is None:
            gym.logger.warn("render() without a render_mode: make the environment with render_mode='ansi'")
            return None
        from generala_env.envs.rendering import render_text

        return render_text(self.variant, self.state, language=self.language, dice=self.dice)
