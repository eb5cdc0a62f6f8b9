"""Two players as an environment for one learner: the opponent plays inside ``step``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from generala_env.envs.dealing import DealtGame, FirstSeat, key_from, only_action
from generala_env.envs.opponents import NUM_PLAYERS, OpponentPool, Opponents, ask
from generala_env.envs.outcomes import check_reward, how_ended, outcome_rewards, winners_of
from generala_env.envs.picture import DEFAULT_SIZE, Frame
from generala_env.envs.showing import RENDER_FPS, RENDER_MODES, Showing, Shown
from generala_env.envs.solo import IllegalAction, check_illegal_action
from generala_env.envs.table_observation import table_batch, table_layout
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import GameState, IllegalActionError
from generala_env.rules.names import word
from generala_env.rules.variants import DEFAULT_VARIANT, Variant, get_variant


def _check_options(illegal_action: str, reward: str, seat: int | str) -> None:
    check_illegal_action(illegal_action)
    check_reward(reward)
    if seat != "random" and (type(seat) is not int or not 0 <= seat < NUM_PLAYERS):
        raise ValueError(f"seat: {seat!r} is not 'random', 0 or 1")


class GeneralaDuelEnv(gym.Env[NDArray[np.float32], np.int64]):
    """Play Generala against an opponent.

    ## Game
    Two players under the variant's rules, who starts and ties included. The opponent's turns
    are played inside ``reset`` and ``step``, so the learner sees only its own decisions.

    ## Opponents
    ``opponent`` is an agent, a name (after ``import agents``), or a pool: a mapping of names to
    weights, or pairs of agent and weight; each episode draws one.

    ## Actions and masks
    Those of ``generala_env/Generala-v0``: ids 0 to 30 keep, ``31 + i`` closes box ``i``;
    ``action_masks()`` bool, ``info["action_mask"]`` int8, all zeros at the end. In a playoff
    turn the only box offered is the best one.

    ## Observations
    float32 in [-1, 1]; the one-player observation first, then the opponent's card, the
    score difference and the rest of the table: ``env.unwrapped.layout.table()``.

    ## Rewards
    0.0 until the end; then ``reward="outcome"`` 1, 0, -1 for a win, a draw, a loss;
    ``"win_value"`` 1, 1/2, 0; ``"points"`` the own points; ``"rank"`` as ``"win_value"``. Train with
    ``gamma=1``.

    ## Episode end
    ``terminated`` when the game is decided; never ``truncated``. If the game is won
    before the learner's first decision, it is offered a single action, which ends the episode.

    ## Info
    ``action_mask``, ``dice``, ``throw``, ``round``, ``seat``, ``opponent`` (index in the pool),
    ``scores`` (own, opponent's); at the end ``win_value``, ``instant_win`` and ``decided_by``;
    after an illegal action that did not raise, ``illegal_action``.

    ## Seeding
    An episode draws from ``np_random`` its dice key, then the seat if it is drawn, then the
    opponent if there is a pool; ``options={"dice_key": (seed, game)}`` names the dice. Opponents
    that sample draw from their own generators.

    ## Version history
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
        opponent: Opponents = "solo_optimal",
        opponent_deterministic: bool = True,
        seat: int | Literal["random"] = "random",
        first_player: FirstSeat = "variant",
        reward: str = "outcome",
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
            opponent: An agent, its name, or a pool with weights.
            opponent_deterministic: Let opponents take their best actions instead of sampling.
            seat: The learner's seat, 0 or 1, or ``"random"`` for each episode.
            first_player: Who starts: ``"variant"``, for its own rule, or a seat.
            reward: ``"outcome"``, ``"win_value"``, ``"points"`` or ``"rank"``.
            illegal_action: What an illegal action does: ``"raise"``, ``"penalty"``, ``"terminate"``.
            illegal_reward: The reward of an illegal action that does not raise.
            canonical_keeps: Offer one id per kept multiset.
            observation_blocks: Names of the blocks of the one-player part.
            render_mode: ``"ansi"`` (text), ``"rgb_array"`` (pictures), ``"human"`` (a window) or ``None``.
            dice: Which dice are shown to people.
            language: Language shown to people.
            render_size: Width of pictures in pixels, from 320; they are a quarter higher.
            render_theme: Colours of pictures, ``"light"`` or ``"dark"``.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        _check_options(illegal_action, reward, seat)
        self.variant = get_variant(variant)
        self._showing = Showing(
            self.variant, render_mode, language=language, dice=dice, size=render_size, theme=render_theme
        )
        self._dealt = DealtGame(self.variant, NUM_PLAYERS, first_player=first_player)
        self.compiled = compile_variant(self.variant)
        self.layout = table_layout(self.compiled, NUM_PLAYERS, observation_blocks)
        self.pool = OpponentPool(opponent, self.compiled)
        self.opponent_deterministic = opponent_deterministic
        self.reward = reward
        self.illegal_action = illegal_action
        self.illegal_reward = float(illegal_reward)
        self.canonical_keeps = canonical_keeps
        self.render_mode = render_mode
        self.dice = dice
        self.language = language
        self._seat_option = seat
        self.seat = 0
        self._opponent = 0
        self._is_over = True
        self.observation_space = spaces.Box(-1.0, 1.0, (self.layout.size,), np.float32)
        self.action_space = spaces.Discrete(self.compiled.num_actions)

    @property
    def state(self) -> GameState:
        """The position as the engine knows it."""
        return self._dealt.state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a game and play the opponent's turn if the opponent starts.

        Args:
            seed: Seed of ``np_random``; ``None`` goes on with the present generator.
            options: ``{"dice_key": (seed, game)}`` names the dice instead of drawing them.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.pool.reset([seed])
        key = key_from(options, self.np_random)
        self.seat = _draw_seat(self._seat_option, self.np_random)
        self._opponent = self.pool.draw(self.np_random)
        self._is_over = False
        self._dealt.start(key)
        self._play_opponent()
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._info()

    def _play_opponent(self) -> None:
        while not self._dealt.is_over and self._dealt.state.current_player != self.seat:
            # Agents are always asked with one id for each kept multiset.
            mask = self._dealt.action_mask()
            action = int(mask.argmax())
            if mask.sum() > 1:
                batch = table_batch(self.compiled, self._dealt.state, self._dealt.state.current_player)
                opponent = self.pool.opponents[self._opponent]
                action = int(ask(opponent, batch, mask[None], deterministic=self.opponent_deterministic)[0])
            self._dealt.apply(action)

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take the learner's action, then play the opponent until the learner is to decide.

        Raises:
            IllegalActionError: The action is not legal and ``illegal_action`` is ``"raise"``.
            gymnasium.error.ResetNeeded: The episode is over.
        """
        if self._is_over:
            raise gym.error.ResetNeeded("the episode is over (or not begun): call reset()")
        mask = self.action_masks()
        if not self.action_space.contains(np.int64(action)) or not mask[action]:
            return self._illegal(action, mask)
        if not self._dealt.is_over:
            self._dealt.apply(int(action))
            self._play_opponent()
        self._is_over = self._dealt.is_over
        reward = float(self._outcome(self.reward)) if self._is_over else 0.0
        if self.render_mode == "human":
            self.render()
        return self._observe(), reward, self._is_over, False, self._info()

    def _illegal(
        self, action: np.int64 | int, mask: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        if self.illegal_action == "raise":
            raise IllegalActionError(
                f"action {action} is not legal here; legal: {np.flatnonzero(mask).tolist()}"
            )
        self._is_over = self.illegal_action == "terminate"
        info = self._info()
        info["illegal_action"] = int(action)
        return self._observe(), self.illegal_reward, self._is_over, False, info

    def _outcome(self, reward: str) -> float:
        state = self._dealt.state
        return float(outcome_rewards(reward, np.array([state.scores]), winners_of(state)[None])[0, self.seat])

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now, (n_actions,) bool, all false at the end."""
        if self._is_over:
            return np.zeros(self.compiled.num_actions, dtype=bool)
        if self._dealt.is_over:
            return only_action(self.compiled.num_actions)
        return self._dealt.action_mask(canonical=self.canonical_keeps)

    def _observe(self) -> NDArray[np.float32]:
        batch = table_batch(self.compiled, self._dealt.state, self.seat)
        return np.asarray(self.layout.encode(batch)[0])

    def _info(self) -> dict[str, Any]:
        state = self._dealt.state
        info: dict[str, Any] = {
            "action_mask": self.action_masks().astype(np.int8),
            "dice": state.turn.dice,
            "throw": state.turn.throw,
            "round": state.round,
            "seat": self.seat,
            "opponent": self._opponent,
            "scores": (state.scores[self.seat], state.scores[1 - self.seat]),
        }
        if self._is_over and self._dealt.is_over:
            info["win_value"] = self._outcome("win_value")
            info["instant_win"] = state.is_instant_win
            info["decided_by"] = how_ended(self.variant, state, was_tied=self._dealt.was_tied)
        return info

    def render(self) -> str | Frame | None:
        """Return the game as text (``"ansi"``) or as a picture (``"rgb_array"``), or show it (``"human"``).

        Raises:
            gymnasium.error.DependencyNotInstalled: What draws or shows pictures is not installed.
        """
        names = seat_names(self.seat, self.language)
        return self._showing.one(Shown(self._dealt.state, self._dealt.last_boxes, names))

    def close(self) -> None:
        """Close the window if one is open."""
        self._showing.close()


def seat_names(seat: int, language: str) -> tuple[str, ...]:
    """Return what pictures call the two seats of a duel: the learner is you."""
    return tuple(word("you" if player == seat else "opponent", language) for player in range(NUM_PLAYERS))


def _draw_seat(option: int | str, generator: np.random.Generator) -> int:
    return int(generator.random() * NUM_PLAYERS) if option == "random" else int(option)
