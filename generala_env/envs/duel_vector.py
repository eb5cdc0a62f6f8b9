"""The duel for one learner, many games side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from generala_env.envs.dealing import FirstSeat, key_from, only_action
from generala_env.envs.duel import GeneralaDuelEnv, _check_options, _draw_seat, seat_names
from generala_env.envs.games import TableGames
from generala_env.envs.opponents import NUM_PLAYERS, OpponentPool, Opponents, ask
from generala_env.envs.outcomes import outcome_rewards
from generala_env.envs.picture import DEFAULT_SIZE, Frame
from generala_env.envs.resets import autoreset_mode_of, reset_mask, seeds_of
from generala_env.envs.showing import Showing, Shown
from generala_env.envs.table_observation import table_layout
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import IllegalActionError
from generala_env.rules.variants import DEFAULT_VARIANT, Variant, get_variant


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

    _showing: Showing | None = None  # until the options are checked: closing comes also after an error

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
        dice: str = "standard",
        language: str = "en",
        render_size: int = DEFAULT_SIZE,
        render_theme: str = "light",
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
            render_mode: As for ``GeneralaDuelEnv``, in tuples; a window shows the first games in a grid.
            dice: Which dice are shown to people.
            language: Language shown to people.
            render_size: Width of pictures in pixels, from 320; they are a quarter higher.
            render_theme: Colours of pictures, ``"light"`` or ``"dark"``.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        super().__init__()
        if num_envs < 1:
            raise ValueError(f"num_envs: {num_envs} is not at least 1")
        _check_options("raise", reward, seat)
        self.num_envs = num_envs
        self.variant = get_variant(variant)
        self._showing = Showing(
            self.variant, render_mode, language=language, dice=dice, size=render_size, theme=render_theme
        )
        self.compiled = compile_variant(self.variant)
        self.layout = table_layout(self.compiled, NUM_PLAYERS, observation_blocks)
        self.pool = OpponentPool(opponent, self.compiled)
        self.opponent_deterministic = opponent_deterministic
        self.reward = reward
        self.canonical_keeps = canonical_keeps
        self.render_mode = render_mode
        self.language = language
        self.autoreset_mode = autoreset_mode_of(autoreset_mode)
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
            gymnasium.error.Error: A seed is not a non-negative integer.
        """
        chosen = reset_mask(options, self.num_envs)
        seeds = seeds_of(seed, chosen)
        rows = np.flatnonzero(chosen)
        for index in rows.tolist():
            if seeds[index] is not None or self._generators[index] is None:
                self._generators[index], _ = seeding.np_random(seeds[index])
        given = [own for own in seeds if own is not None]
        if len(given) == self.num_envs and chosen.all():
            self.pool.reset(given)
        self._begin(rows, options)
        if self.render_mode == "human":
            self.render()
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
        if self.render_mode == "human":
            self.render()
        return observations, rewards, ended, np.zeros(self.num_envs, dtype=bool), info

    def _outcomes(self, reward: str) -> NDArray[np.float64]:
        # Games that go on have no winner; their rows are not read.
        won = self.games.won | ~self.games.is_over[:, None]
        paid = outcome_rewards(reward, self.games.score, won)
        return np.asarray(paid[np.arange(self.num_envs), self.seats])

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now; (num_envs, n_actions) bool.

        All are where a game is over and the next action begins another (NEXT_STEP).
        """
        masks = self.games.action_masks(np.arange(self.num_envs), canonical=self.canonical_keeps)
        masks[self.games.is_over & ~self._is_over] = only_action(self.compiled.num_actions)
        masks[self._is_over] = self.autoreset_mode is AutoresetMode.NEXT_STEP
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

    # --- showing ------------------------------------------------------------------------

    def render(self) -> tuple[str, ...] | tuple[Frame, ...] | None:
        """Return every game as ``GeneralaDuelEnv.render`` does, in a tuple; a window shows some in a grid.

        Raises:
            gymnasium.error.DependencyNotInstalled: What draws or shows pictures is not installed.
        """
        assert self._showing is not None
        return self._showing.many(self._shown, self.num_envs)

    def _shown(self, index: int) -> Shown:
        names = seat_names(int(self.seats[index]), self.language)
        return Shown(self.games.state(index), self.games.last_boxes(index), names)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window if one is open."""
        if self._showing is not None:
            self._showing.close()
