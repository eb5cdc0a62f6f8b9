"""Two players as an environment for one learner: the opponent plays inside ``step``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from generala_env.envs.dealing import (
    DealtGame,
    FirstSeat,
    check_reward,
    how_ended,
    key_from,
    only_action,
    outcome_rewards,
)
from generala_env.envs.games import TableGames
from generala_env.envs.observation import ObservationLayout
from generala_env.envs.rendering import render_text
from generala_env.envs.solo import IllegalAction, check_illegal_action
from generala_env.envs.table_observation import TableBatch, TableLayout, table_batch, table_layout
from generala_env.rules.compiled import CompiledVariant, compile_variant
from generala_env.rules.game import GameState, IllegalActionError
from generala_env.rules.variants import DEFAULT_VARIANT, Variant, get_variant

NUM_PLAYERS = 2


class Opponent(Protocol):
    """What can sit opposite the learner: every agent is one.

    Attributes:
        layout: The observations it reads: those of a table, or those of a player alone.
    """

    @property
    def layout(self) -> ObservationLayout | TableLayout:
        """The layout of the observations it reads."""
        ...

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation."""
        ...


OpponentSpec = str | Opponent
Opponents = OpponentSpec | Mapping[str, float] | Sequence[tuple[OpponentSpec, float]]
"""One opponent, or a pool with probabilities from which each episode draws one."""

OpponentResolver = Callable[[str, CompiledVariant], Opponent]

_resolvers: list[OpponentResolver] = []


def set_opponent_resolver(resolver: OpponentResolver) -> None:
    """Let ``opponent="name"`` be made by a function of the name and the variant's tables.

    Importing the package ``agents`` does so; environments themselves know no agents.
    """
    _resolvers[:] = [resolver]


def _resolve(spec: OpponentSpec, compiled: CompiledVariant) -> Opponent:
    opponent: Opponent
    if isinstance(spec, str):
        if not _resolvers:
            raise ValueError(
                f"opponent: {spec!r} is a name, and names are made by the package agents; import it first"
                f' (gym.make("agents:generala_env/GeneralaDuel-v0", opponent={spec!r}) does) or pass an agent'
            )
        opponent = _resolvers[0](spec, compiled)
    else:
        opponent = spec
    layout = getattr(opponent, "layout", None)
    if layout is None or not callable(getattr(opponent, "act", None)):
        raise ValueError(f"opponent: {spec!r} is neither a name nor an agent with layout and act()")
    theirs, ours = layout.compiled.variant, compiled.variant
    if theirs != ours:
        raise ValueError(
            f"opponent: plays {theirs.name} ({theirs.fingerprint}), "
            f"the environment {ours.name} ({ours.fingerprint})"
        )
    if isinstance(layout, TableLayout) and layout.num_players != NUM_PLAYERS:
        raise ValueError(f"opponent: plays at tables of {layout.num_players}, not of {NUM_PLAYERS}")
    return opponent


class OpponentPool:
    """The opponents of an environment and how likely each is to be drawn.

    Attributes:
        opponents: The opponents.
        probabilities: (opponents,) float64, summing to 1.
    """

    def __init__(self, opponents: Opponents, compiled: CompiledVariant) -> None:
        """Make the opponents.

        Args:
            opponents: One opponent, or pairs of opponent and weight.
            compiled: The variant's tables.

        Raises:
            ValueError: An opponent cannot be made or plays other rules, or a weight is wrong.
        """
        pairs: list[tuple[OpponentSpec, float]]
        if isinstance(opponents, Mapping):
            pairs = list(opponents.items())
        elif isinstance(opponents, Sequence) and not isinstance(opponents, str):
            pairs = [(pair[0], pair[1]) for pair in opponents]
        else:
            pairs = [(opponents, 1.0)]
        weights = np.array([weight for _, weight in pairs], dtype=np.float64)
        if not len(pairs) or not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
            raise ValueError(f"opponent: weights {weights.tolist()} are not non-negative with a positive sum")
        self.opponents = tuple(_resolve(spec, compiled) for spec, _ in pairs)
        self.probabilities = weights / weights.sum()
        self._thresholds = np.cumsum(self.probabilities)[:-1]

    def draw(self, generator: np.random.Generator) -> int:
        """Draw the index of an opponent; nothing is drawn where there is only one."""
        if len(self.opponents) == 1:
            return 0
        return int(np.searchsorted(self._thresholds, generator.random(), side="right"))


def ask(
    agent: Opponent, batch: TableBatch, masks: NDArray[np.bool_], *, deterministic: bool
) -> NDArray[np.int64]:
    """Ask an agent for its actions at tables, through whatever it reads.

    Args:
        agent: Who decides.
        batch: The positions, seen by the seat to move.
        masks: (batch, num_actions) bool.
        deterministic: Take the agent's best actions instead of sampling.

    Returns:
        (batch,) int64.
    """
    layout = agent.layout
    observations = layout.encode(batch) if isinstance(layout, TableLayout) else layout.encode(batch.turn)
    return np.asarray(agent.act(observations, masks, deterministic=deterministic), dtype=np.int64)


def _check_options(illegal_action: str, reward: str, seat: int | str, render_mode: str | None) -> None:
    check_illegal_action(illegal_action)
    check_reward(reward)
    if seat != "random" and (type(seat) is not int or not 0 <= seat < NUM_PLAYERS):
        raise ValueError(f"seat: {seat!r} is not 'random', 0 or 1")
    if render_mode not in (None, "ansi"):
        raise ValueError(f"render_mode: {render_mode!r} is not 'ansi'")


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

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium

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
            render_mode: ``"ansi"`` or ``None``.
            dice: Which dice are shown to people.
            language: Language shown to people.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        _check_options(illegal_action, reward, seat, render_mode)
        self.variant = get_variant(variant)
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
        key = key_from(options, self.np_random)
        self.seat = _draw_seat(self._seat_option, self.np_random)
        self._opponent = self.pool.draw(self.np_random)
        self._is_over = False
        self._dealt.start(key)
        self._play_opponent()
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
        won = np.isin(np.arange(NUM_PLAYERS), state.winners)
        return float(outcome_rewards(reward, np.array([state.scores]), won[None])[0, self.seat])

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

    def render(self) -> str | None:
        """Return the dice and both score sheets as text when ``render_mode`` is ``"ansi"``."""
        if self.render_mode is None:
            gym.logger.warn("render() without a render_mode: make the environment with render_mode='ansi'")
            return None
        return render_text(self.variant, self._dealt.state, language=self.language, dice=self.dice)


def _draw_seat(option: int | str, generator: np.random.Generator) -> int:
    return int(generator.random() * NUM_PLAYERS) if option == "random" else int(option)


class GeneralaDuelVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.integer[Any]], NDArray[Any]]):
    """Many duels at once, over the compiled tables; opponents act in batches.

    Options, observations and rewards are those of ``GeneralaDuelEnv``. Sub-environment ``i`` reset
    with seed ``s`` plays, for the same actions, the episode that the single environment plays
    with that seed (against opponents that do not sample).

    ``action_masks()`` returns bool ``(num_envs, n_actions)``; ``info["action_mask"]`` is an
    int8 copy. The other entries of ``info`` are ``seat``, ``opponent``, ``round``, ``throw``
    (num_envs,), ``scores`` (num_envs, 2), and where an episode ended ``win_value`` and
    ``instant_win``; each with its ``_``-mask. In SAME_STEP mode those of the finished
    episode are in ``final_info`` and its last observation in ``final_obs``.

    An illegal action raises before any environment has moved.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium
        **GeneralaDuelEnv.metadata,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        variant: str | Mapping[str, Any] | Variant = DEFAULT_VARIANT,
        *,
        opponent: Opponents = "solo_optimal",
        opponent_deterministic: bool = True,
        seat: int | Literal["random"] = "random",
        first_player: FirstSeat = "variant",
        reward: str = "outcome",
        canonical_keeps: bool = True,
        observation_blocks: Sequence[str] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        """Make the environments; see ``GeneralaDuelEnv`` for the options.

        Args:
            num_envs: How many.
            variant: The rules.
            opponent: An agent, its name, or a pool with weights.
            opponent_deterministic: Let opponents take their best actions instead of sampling.
            seat: The learner's seat, or ``"random"`` for each episode.
            first_player: Who starts.
            reward: What the end of a game pays.
            canonical_keeps: Offer one id per kept multiset.
            observation_blocks: Names of the blocks of the one-player part.
            autoreset_mode: When environments whose episode ended are reset.
            render_mode: Only ``None``.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        super().__init__()
        if num_envs < 1:
            raise ValueError(f"num_envs: {num_envs} is not at least 1")
        if render_mode is not None:
            raise ValueError(f"render_mode: {render_mode!r}: the batched duel does not render")
        _check_options("raise", reward, seat, None)
        self.num_envs = num_envs
        self.variant = get_variant(variant)
        self.compiled = compile_variant(self.variant)
        self.layout = table_layout(self.compiled, NUM_PLAYERS, observation_blocks)
        self.pool = OpponentPool(opponent, self.compiled)
        self.opponent_deterministic = opponent_deterministic
        self.reward = reward
        self.canonical_keeps = canonical_keeps
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = spaces.Box(-1.0, 1.0, (self.layout.size,), np.float32)
        self.single_action_space = spaces.Discrete(self.compiled.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seat_option = seat
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self.games = TableGames(
            self.compiled,
            NUM_PLAYERS,
            np.zeros(num_envs, dtype=np.uint64),
            np.zeros(num_envs, dtype=np.int64),
            first_player=first_player,
        )
        self.seats = np.zeros(num_envs, dtype=np.int64)
        self._opponents = np.zeros(num_envs, dtype=np.int64)
        self._is_over = np.ones(num_envs, dtype=bool)
        self._is_begun = np.zeros(num_envs, dtype=bool)

    # --- reset --------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin games.

        Args:
            seed: An integer ``s`` seeds environment ``i`` with ``s + i``; a sequence seeds each
                with its own; ``None``, for all or for one, goes on with the present generator.
            options: ``{"reset_mask": (num_envs,) bool}`` resets only some;
                ``{"dice_key": (seed, game)}`` gives environment ``i`` the dice of ``(seed, game + i)``.

        Raises:
            ValueError: The seeds or the mask do not fit the number of environments.
        """
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"options['reset_mask']: not a bool array of shape ({self.num_envs},)")
        seeds: Sequence[int | None]
        if seed is None:
            seeds = [None] * self.num_envs
        elif isinstance(seed, int | np.integer):
            seeds = [int(seed) + index for index in range(self.num_envs)]
        else:
            seeds = seed
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: {len(seeds)} seeds for {self.num_envs} environments")
        rows = np.flatnonzero(mask)
        for index in rows.tolist():
            if seeds[index] is not None or self._generators[index] is None:
                self._generators[index], _ = seeding.np_random(seeds[index])
        self._begin(rows, options)
        return self._observe(), self._info(np.zeros(self.num_envs, dtype=bool))

    def _begin(self, rows: NDArray[Any], options: dict[str, Any] | None = None) -> None:
        seeds = np.empty(len(rows), dtype=np.uint64)
        numbers = np.empty(len(rows), dtype=np.int64)
        for position, index in enumerate(rows.tolist()):
            generator = self._generators[index]
            assert generator is not None
            key = key_from(options, generator)
            is_named = "dice_key" in (options or {})
            seeds[position] = key[0] % 2**64
            numbers[position] = key[1] + (index if is_named else 0)
            self.seats[index] = _draw_seat(self._seat_option, generator)
            self._opponents[index] = self.pool.draw(generator)
        self.games.restart(rows, seeds, numbers)
        self._is_over[rows] = False
        self._is_begun[rows] = True
        self._play_opponents(rows)

    def _play_opponents(self, rows: NDArray[Any]) -> None:
        games = self.games
        while True:
            rows = rows[~games.is_over[rows] & (games.current[rows] != self.seats[rows])]
            if not len(rows):
                return
            masks = games.action_masks(rows)
            actions = masks.argmax(axis=1)
            has_choice = masks.sum(axis=1) > 1
            for index, opponent in enumerate(self.pool.opponents):
                asked = np.flatnonzero(has_choice & (self._opponents[rows] == index))
                if len(asked):
                    batch = games.table_batch(rows[asked])
                    actions[asked] = ask(
                        opponent, batch, masks[asked], deterministic=self.opponent_deterministic
                    )
            games.step(rows, actions)

    # --- step ---------------------------------------------------------------------------

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Take one action in every environment and play the opponents to the next decisions.

        Raises:
            IllegalActionError: An action is not legal; nothing has changed.
            gymnasium.error.ResetNeeded: An environment is over (DISABLED), or was never reset.
            ValueError: The actions are not integers of shape ``(num_envs,)``.
        """
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(f"actions: not integers of shape ({self.num_envs},)")
        were_over = self._is_over.copy()
        resets = self.autoreset_mode is AutoresetMode.NEXT_STEP
        if not self._is_begun.all() or (were_over.any() and not resets):
            raise gym.error.ResetNeeded("an environment is over (or not begun): call reset()")
        rows = np.flatnonzero(~were_over)
        masks = self.action_masks()
        in_range = (actions >= 0) & (actions < self.compiled.num_actions)
        legal = in_range & masks[np.arange(self.num_envs), np.where(in_range, actions, 0)]
        if not legal[rows].all():
            index = int(rows[~legal[rows]][0])
            raise IllegalActionError(
                f"action {actions[index]} is not legal in environment {index}; legal: "
                f"{np.flatnonzero(masks[index]).tolist()}"
            )
        self._begin(np.flatnonzero(were_over))
        going = rows[~self.games.is_over[rows]]
        self.games.step(going, actions[going])
        self._play_opponents(going)
        ended = np.zeros(self.num_envs, dtype=bool)
        ended[rows] = self.games.is_over[rows]
        self._is_over = ended.copy()
        rewards = np.where(ended, self._outcomes(self.reward), 0.0)
        observations = self._observe()
        info = self._info(ended)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            finals = {
                "final_obs": observations,
                "_final_obs": ended,
                "final_info": info,
                "_final_info": ended,
            }
            self._begin(np.flatnonzero(ended))
            observations = self._observe()
            info = {**self._info(np.zeros(self.num_envs, dtype=bool)), **finals}
        return observations, rewards, ended, np.zeros(self.num_envs, dtype=bool), info

    def _outcomes(self, reward: str) -> NDArray[np.float64]:
        # Games that go on have no winner; their rows are not read.
        won = self.games.won | ~self.games.is_over[:, None]
        paid = outcome_rewards(reward, self.games.score, won)
        return np.asarray(paid[np.arange(self.num_envs), self.seats])

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now; (num_envs, n_actions) bool."""
        masks = self.games.action_masks(np.arange(self.num_envs), canonical=self.canonical_keeps)
        masks[self.games.is_over & ~self._is_over] = only_action(self.compiled.num_actions)
        masks[self._is_over] = False
        return masks

    def _observe(self) -> NDArray[np.float32]:
        return self.layout.encode(self.games.table_batch(np.arange(self.num_envs), self.seats))

    def _info(self, ended: NDArray[np.bool_]) -> dict[str, Any]:
        own = self.seats[:, None]
        entries: dict[str, NDArray[Any]] = {
            "action_mask": self.action_masks().astype(np.int8),
            "seat": self.seats.copy(),
            "opponent": self._opponents.copy(),
            "round": self.games.round.copy(),
            "throw": self.games.throw_number.copy(),
            "scores": np.take_along_axis(self.games.score, np.concatenate([own, 1 - own], axis=1), axis=1),
        }
        info: dict[str, Any] = {}
        for name, values in entries.items():
            info[name], info[f"_{name}"] = values, np.ones(self.num_envs, dtype=bool)
        if ended.any():
            info["win_value"], info["_win_value"] = np.where(ended, self._outcomes("win_value"), 0.0), ended
            info["instant_win"], info["_instant_win"] = self.games.is_instant_win & ended, ended
        return info
