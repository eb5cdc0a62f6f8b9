"""Many one-player environments stepped at once; ``gym.make_vec`` makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from generala_env.envs.kernel_tables import KernelTables, make_tables
from generala_env.envs.picture import DEFAULT_SIZE, Frame
from generala_env.envs.positions import Position, game_state
from generala_env.envs.resets import autoreset_mode_of, reset_mask, seeds_of
from generala_env.envs.showing import Showing, Shown
from generala_env.envs.solo import ILLEGAL_ACTIONS, GeneralaEnv, IllegalAction
from generala_env.envs.stepping import (
    ALL_THROWN,
    CARD,
    DISABLED,
    ENDED,
    FINAL_SCORES,
    IS_OVER,
    KEPT,
    NEXT_STEP,
    PRESENT,
    RAISE,
    REWARDS,
    SAME_STEP,
    SCORES,
    SERVED,
    TERMINATED,
    THROW,
    THROW_NUMBER,
    TRUNCATED,
    WON,
    Batch,
    Description,
    bundle,
    empty_batch,
    pcg64_words,
    reset_chosen,
    step,
    step_in_shares,
    write_all,
)
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin, TurnBatch
from generala_env.rules.dice import (
    NUM_DICE,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROW_DICE,
    THROWS_PER_TURN,
)
from generala_env.rules.game import GameState, IllegalActionError
from generala_env.rules.variants import DEFAULT_VARIANT, Variant

_AUTORESET_CODE: Final = {
    AutoresetMode.NEXT_STEP: NEXT_STEP,
    AutoresetMode.SAME_STEP: SAME_STEP,
    AutoresetMode.DISABLED: DISABLED,
}


def _info(
    dice: NDArray[np.int8],
    throw: NDArray[np.int32],
    served: NDArray[np.bool_],
    open_boxes: NDArray[np.bool_],
    score: NDArray[np.float64],
    action_mask: NDArray[np.int8],
    present: NDArray[np.bool_],
) -> dict[str, Any]:
    """Name the arrays as the single environment's ``info`` does; ``present`` tells whose they are."""
    return {
        "dice": dice,
        "_dice": present,
        "throw": throw,
        "_throw": present,
        "served": served,
        "_served": present,
        "open_boxes": open_boxes,
        "_open_boxes": present,
        "score": score,
        "_score": present,
        "action_mask": action_mask,
        "_action_mask": present,
    }


class GeneralaVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.integer[Any]], NDArray[Any]]):
    """Fill many Generala cards at once, each alone; see ``GeneralaEnv`` for the game.

    Sub-environment ``i`` reset with seed ``s`` plays, for the same actions, the very episode
    that the single environment plays with seed ``s``: each has a PCG64 of its own, seeded
    by NumPy and advanced in the kernel.

    ``action_masks()`` returns bool ``(num_envs, n_actions)``; ``info["action_mask"]`` is an
    int8 copy. In NEXT_STEP mode, Gymnasium's default, the action after the end of an episode is
    ignored, so that the masks offer all actions there: a distribution over what is allowed never
    meets a row without anything. The other entries of ``info`` are arrays: ``dice`` (num_envs, 5),
    ``throw``, ``served``, ``score`` (num_envs,), ``open_boxes`` (num_envs, boxes) bool; where
    an episode ended ``instant_win`` and ``final_score``; each with its ``_``-mask. In
    SAME_STEP mode those of the finished episode are in ``final_info``, and ``final_obs`` holds
    its last observation. What a step returns is the caller's and never written again; rewards and
    scores lie in one array, and so do the flags, so that keeping one keeps its like.

    Actions must be integers of shape ``(num_envs,)``. With ``illegal_action="raise"`` an
    illegal one raises before any environment has moved.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - the base class declares it like this
        **GeneralaEnv.metadata,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    _showing: Showing | None = None  # until the options are checked: closing comes also after an error

    def __init__(
        self,
        num_envs: int = 1,
        variant: str | Mapping[str, Any] | Variant = DEFAULT_VARIANT,
        *,
        instant_win: InstantWin = DEFAULT_INSTANT_WIN,
        illegal_action: IllegalAction = "raise",
        illegal_reward: float = -1.0,
        canonical_keeps: bool = True,
        observation_blocks: Sequence[str] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        num_threads: int = 1,
        render_mode: str | None = None,
        dice: str = "standard",
        language: str = "en",
        render_size: int = DEFAULT_SIZE,
        render_theme: str = "light",
    ) -> None:
        """Make the environments.

        Args:
            num_envs: How many.
            variant: As for ``GeneralaEnv``, like every option not named here.
            instant_win: What a served Generala that wins does.
            illegal_action: What an illegal action does.
            illegal_reward: The reward of an illegal action that does not raise.
            canonical_keeps: Offer one id per kept multiset.
            observation_blocks: Names of the blocks in the observation.
            autoreset_mode: Whether environments are reset in the step after the one that ended
                the episode, in the same step, or by the caller with
                ``reset(options={"reset_mask": ...})``.
            num_threads: Threads that share the step. More than one pays from about a thousand
                environments on, and only while the cores are idle.
            render_mode: As for ``GeneralaEnv``, in tuples; a window shows the first environments in a grid.
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
        if num_threads < 1:
            raise ValueError(f"num_threads: {num_threads} is not at least 1")
        # One single environment checks the options and lends its spaces.
        self._prototype = GeneralaEnv(
            variant,
            instant_win=instant_win,
            illegal_action=illegal_action,
            illegal_reward=illegal_reward,
            canonical_keeps=canonical_keeps,
            observation_blocks=observation_blocks,
            render_mode=render_mode,
            dice=dice,
            language=language,
            render_size=render_size,
            render_theme=render_theme,
        )
        self._showing = Showing(
            self._prototype.variant,
            render_mode,
            language=language,
            dice=dice,
            size=render_size,
            theme=render_theme,
        )
        self._last_boxes = np.full(num_envs, -1, dtype=np.int64)
        self.autoreset_mode = autoreset_mode_of(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.num_envs = num_envs
        self.num_threads = num_threads
        self.variant = self._prototype.variant
        self.compiled = self._prototype.compiled
        self.layout = self._prototype.layout
        self.instant_win = instant_win
        self.instant_win_points = self._prototype.instant_win_points
        self.illegal_action = illegal_action
        self.illegal_reward = self._prototype.illegal_reward
        self.canonical_keeps = canonical_keeps
        self.render_mode = render_mode
        self.dice = dice
        self.language = language
        self.single_observation_space = self._prototype.observation_space
        self.single_action_space = self._prototype.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._tables = make_tables(
            self.compiled,
            self.layout,
            canonical_keeps=canonical_keeps,
            wins_at_once=self.instant_win_points is not None,
        )
        self._win_points = 0.0 if self.instant_win_points is None else self.instant_win_points
        self._illegal_mode = ILLEGAL_ACTIONS.index(illegal_action)
        self._autoreset_code = _AUTORESET_CODE[self.autoreset_mode]
        self._is_seeded = np.zeros(num_envs, dtype=bool)
        self._is_begun = np.zeros(num_envs, dtype=bool)
        self._has_begun = False  # all of them
        self._batch = empty_batch(num_envs, self.compiled.num_boxes)
        self._final_observations = np.zeros((num_envs, self.layout.size), dtype=np.float32)
        self._actions = np.zeros(num_envs, dtype=np.int64)
        self._num_boxes, self._num_actions = self.compiled.num_boxes, self.compiled.num_actions
        self._observations_shape = num_envs, self.layout.size
        self._nobody_asks = self._description(0)
        self._bundles: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now; (num_envs, n_actions) bool."""
        return self._batch.masks.view(np.bool_).copy()

    @property
    def tables(self) -> KernelTables:
        """What the kernel reads; to be read, not written."""
        return self._tables

    @property
    def batch(self) -> Batch:
        """The arrays that the kernel works on; to be read, not written."""
        return self._batch

    @property
    def final_observations(self) -> NDArray[np.float32]:
        """(num_envs, size) float32: last observations, valid where an episode ended in a SAME_STEP."""
        return self._final_observations

    def turn_batch(self) -> TurnBatch:
        """Return the states of all environments as the solvers read them."""
        state = self._batch.state
        return TurnBatch(
            state[:, CARD].copy(),
            state[:, THROW].copy(),
            state[:, THROW_NUMBER].copy(),
            state[:, SERVED].astype(bool),
            state[:, KEPT].copy(),
        )

    def state(self, index: int) -> GameState:
        """Return the position of one environment as the engine knows it."""
        sheet = [None if points < 0 else points for points in self._batch.sheet[index].tolist()]
        return game_state(self.compiled, Position(*self._batch.state[index].tolist()), sheet)

    # --- reset --------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start new cards and make their first throws.

        Args:
            seed: An integer ``s`` seeds environment ``i`` with ``s + i``; a sequence seeds each
                with its own; ``None``, for all or for one, goes on with the present generator.
            options: ``{"reset_mask": (num_envs,) bool}`` resets only some.

        Raises:
            ValueError: The seeds or the mask do not fit the number of environments.
            gymnasium.error.Error: A seed is not a non-negative integer.
        """
        chosen = reset_mask(options, self.num_envs)
        seeds = seeds_of(seed, chosen)
        for index in np.flatnonzero(chosen).tolist():
            if seeds[index] is not None or not self._is_seeded[index]:
                own = np.random.PCG64(np.random.SeedSequence(seeds[index]))
                self._batch.generator[index] = pcg64_words(own)
                self._is_seeded[index] = True
        self._is_begun |= chosen
        self._has_begun = bool(self._is_begun.all())
        reset_chosen(chosen, *self._bundled())
        observations = self.observe()
        if self.render_mode == "human":
            self.render()
        batch = self._batch
        return observations, self._info_of(batch.state, batch.score, batch.masks.copy(), chosen)

    def observe(self) -> NDArray[np.float32]:
        """Return the observations of the present states; (num_envs, size) float32."""
        observations = np.empty(self._observations_shape, dtype=np.float32)
        write_all(self._batch.state, self._tables, observations, self._batch.masks)
        if self._autoreset_code == NEXT_STEP:
            self._batch.masks[self._batch.state[:, IS_OVER] != 0] = 1
        return observations

    # --- step ---------------------------------------------------------------------------

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Take one action in every environment.

        Raises:
            IllegalActionError: An action is not legal and ``illegal_action`` is ``"raise"``; nothing
                has changed.
            gymnasium.error.ResetNeeded: An environment is over (DISABLED), or was never reset.
            ValueError: The actions are not integers of shape ``(num_envs,)``.
        """
        description = self._description(self.num_envs)
        observations, num_ended = self._advance(actions, description)
        numbers, flags, throw, dice, open_boxes, masks = description
        info = _info(dice, throw, flags[ALL_THROWN], open_boxes, numbers[SCORES], masks, flags[PRESENT])
        if num_ended and self._autoreset_code != SAME_STEP:
            info["instant_win"], info["final_score"] = flags[WON], numbers[FINAL_SCORES]
            info["_instant_win"] = info["_final_score"] = flags[ENDED]
        if self._illegal_mode != RAISE or (num_ended and self._autoreset_code == SAME_STEP):
            self._add_what_is_rare(info, description)
        return observations, numbers[REWARDS], flags[TERMINATED], flags[TRUNCATED], info

    def advance(self, actions: NDArray[Any]) -> NDArray[np.float32]:
        """Step without making ``info``: rewards, ends and masks are then in ``batch``.

        It raises what ``step`` raises.

        Returns:
            (num_envs, size) float32, a new array.
        """
        return self._advance(actions, self._nobody_asks)[0]

    def _bundled(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the tables and the batch lie, for the kernel."""
        if self._bundles is None:
            self._bundles = bundle(self._tables), bundle(self._batch)
        return self._bundles

    def _description(self, count: int) -> Description:
        return Description(
            np.empty((3, count), dtype=np.float64),
            np.empty((6, count), dtype=np.bool_),
            np.empty(count, dtype=np.int32),
            np.empty((count, NUM_DICE), dtype=np.int8),
            np.empty((count, self._num_boxes), dtype=np.bool_),
            np.empty((count, self._num_actions), dtype=np.int8),
        )

    def _advance(self, actions: NDArray[Any], description: Description) -> tuple[NDArray[np.float32], int]:
        """Return new observations and how many episodes ended."""
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions: {actions.dtype} {actions.shape} is not integers of shape ({self.num_envs},)"
            )
        actions = self._actions = np.ascontiguousarray(actions, dtype=np.int64)
        batch = self._batch
        if not self._has_begun:
            raise gym.error.ResetNeeded("the episodes are not begun: call reset()")
        if self._autoreset_code == DISABLED and batch.terminated.any():
            over = np.flatnonzero(batch.terminated).tolist()
            raise gym.error.ResetNeeded(f"the episodes of environments {over} are over: call reset()")
        observations = np.empty(self._observations_shape, dtype=np.float32)
        shares = min(self.num_threads, self.num_envs)
        before = (actions, *self._bundled(), observations, self._final_observations)
        after = (self._win_points, self._illegal_mode, self.illegal_reward, self._autoreset_code)
        if shares == 1:
            illegal_at, num_ended = step(*before, *description, *after)
        else:
            illegal_at, num_ended = step_in_shares(shares, *before, description, *after)
        if illegal_at >= 0:
            legal = np.flatnonzero(batch.masks[illegal_at]).tolist()
            raise IllegalActionError(
                f"action {actions[illegal_at]} of environment {illegal_at} is not legal here; legal: {legal}"
            )
        if self.render_mode is not None:
            self._note_boxes(actions)
            if self.render_mode == "human":
                self.render()
        return observations, num_ended

    # --- info ---------------------------------------------------------------------------

    def _info_of(
        self,
        state: NDArray[np.int32],
        score: NDArray[np.float64],
        masks: NDArray[np.int8],
        present: NDArray[np.bool_],
    ) -> dict[str, Any]:
        """Return what ``info`` says of each state; of the arguments, it holds ``masks`` and ``present``."""
        return _info(
            THROW_DICE.take(state[:, THROW], axis=0),
            state[:, THROW_NUMBER].copy(),
            state[:, SERVED].astype(bool),
            self._tables.card_open_boxes.take(state[:, CARD], axis=0),
            score.copy(),
            masks,
            present,
        )

    def _add_what_is_rare(self, info: dict[str, Any], description: Description) -> None:
        """Add the illegal actions, and what ended within this step."""
        illegal = self._batch.illegal.copy()
        ended = description.flags[ENDED]
        if self._autoreset_code == SAME_STEP and ended.any():
            self._add_final(info, description, illegal & ended)
            illegal &= ~ended
        self._add_illegal(info, illegal)

    def _add_illegal(self, info: dict[str, Any], illegal: NDArray[np.bool_]) -> None:
        if illegal.any():
            info["illegal_action"], info["_illegal_action"] = np.where(illegal, self._actions, 0), illegal

    def _add_final(self, info: dict[str, Any], description: Description, illegal: NDArray[np.bool_]) -> None:
        """Add the last observation and ``info`` of the episodes that ended within this step."""
        ended, won = description.flags[ENDED], description.flags[WON]
        observations = np.full(self.num_envs, None, dtype=object)
        where = np.flatnonzero(ended)
        for index, observation in zip(where.tolist(), self._final_observations[where], strict=True):
            observations[index] = observation
        batch = self._batch
        final = self._info_of(batch.final_state, batch.final_score, np.zeros_like(batch.masks), ended)
        final["instant_win"], final["_instant_win"] = won, ended
        final["final_score"], final["_final_score"] = description.numbers[FINAL_SCORES], ended
        self._add_illegal(final, illegal)
        info["final_obs"], info["_final_obs"] = observations, ended
        info["final_info"], info["_final_info"] = final, ended

    # --- resuming and showing -----------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # Copied or pickled, the arrays lie elsewhere.
        return {**self.__dict__, "_bundles": None}

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return everything that decides how the episodes go on, generators included.

        Returns:
            Copies of the arrays of ``batch``, and which environments are seeded and begun.
        """
        arrays = {name: array.copy() for name, array in self._batch._asdict().items()}
        return {**arrays, "is_seeded": self._is_seeded.copy(), "is_begun": self._is_begun.copy()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what ``get_state`` returned.

        Raises:
            ValueError: An array is missing, unknown, of another shape or type, or of other rules or
                another autoreset mode; nothing has changed.
        """
        own = {**self._batch._asdict(), "is_seeded": self._is_seeded, "is_begun": self._is_begun}
        if set(state) != set(own):
            raise ValueError(f"state: the arrays {sorted(state)} are not {sorted(own)}")
        for name, array in own.items():
            given = np.asarray(state[name])
            if given.shape != array.shape or given.dtype != array.dtype:
                raise ValueError(
                    f"state: {name} is {given.dtype} {given.shape} instead of {array.dtype} {array.shape}"
                )
        self._check_ranges(np.asarray(state["state"]))
        for name, array in own.items():
            array[...] = state[name]
        self._has_begun = bool(self._is_begun.all())
        self._last_boxes[:] = -1
        self.observe()  # for the masks: the kernel trusts them

    def _check_ranges(self, state: NDArray[np.int32]) -> None:
        """Raise ``ValueError`` where a number leads out of the tables: the kernel does not look."""
        if self._autoreset_code == SAME_STEP and state[:, IS_OVER].any():
            over = np.flatnonzero(state[:, IS_OVER]).tolist()
            raise ValueError(
                f"state: the episodes of environments {over} are over, and SAME_STEP leaves none so"
            )
        limits = {
            "card": (CARD, 0, self.compiled.num_cards),
            "throw": (THROW, 0, NUM_THROWS),
            "throw number": (THROW_NUMBER, 1, THROWS_PER_TURN + 1),
            "served": (SERVED, 0, 2),
            "kept": (KEPT, 0, NUM_PARTIAL_KEEPS),
        }
        for name, (column, low, high) in limits.items():
            values = state[:, column]
            wrong = (values < low) | (values >= high)
            if wrong.any():
                raise ValueError(
                    f"state: {name} {values[wrong][0]} is not from {low} to {high - 1}; is it of other rules?"
                )

    def render(self) -> tuple[str, ...] | tuple[Frame, ...] | None:
        """Return every game as ``GeneralaEnv.render`` does, in a tuple; a window shows some in a grid.

        Raises:
            gymnasium.error.DependencyNotInstalled: What draws or shows pictures is not installed.
        """
        assert self._showing is not None
        return self._showing.many(self._shown, self.num_envs)

    def _shown(self, index: int) -> Shown:
        last_box = int(self._last_boxes[index])
        return Shown(self.state(index), (None if last_box < 0 else last_box,))

    def _note_boxes(self, actions: NDArray[np.int64]) -> None:
        """Note which boxes were closed; those of cards begun anew are open, and not shown as closed last."""
        closes = (actions >= NUM_KEEP_ACTIONS) & ~self._batch.illegal
        self._last_boxes[closes] = actions[closes] - NUM_KEEP_ACTIONS

    def close_extras(self, **kwargs: Any) -> None:
        """Close the window if one is open."""
        if self._showing is not None:
            self._showing.close()
