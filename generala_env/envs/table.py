"""The table as a PettingZoo environment: two or more players, one decision at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from generala_env.envs.dealing import DealtGame, FirstSeat, key_from, only_action
from generala_env.envs.outcomes import check_reward, how_ended, outcome_rewards, winners_of
from generala_env.envs.picture import DEFAULT_SIZE, Frame
from generala_env.envs.showing import RENDER_FPS, RENDER_MODES, Showing, Shown
from generala_env.envs.table_observation import table_batch, table_layout
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import GameState, IllegalActionError
from generala_env.rules.variants import DEFAULT_VARIANT, Variant, get_variant

Observation = dict[str, NDArray[Any]]


class raw_env(AECEnv):  # type: ignore[misc]  # noqa: N801 - PettingZoo's convention
    """Generala at a table, without PettingZoo's order-enforcing wrapper.

    ## Agents
    ``player_0`` to ``player_{n-1}``, one for each seat. Who starts is found by the variant's
    ``first_player`` rule, roll-offs included, or is a fixed seat.

    ## Actions
    Those of the one-player environment: ids 0 to 30 keep dice and throw the others, ``31 + i``
    closes box ``i``. In a playoff turn only the best box may be closed. An illegal action
    raises ``IllegalActionError`` and changes nothing.

    ## Observations
    A dict of ``observation``, float32 in [-1, 1], and ``action_mask``, int8. All cards are open:
    the own card and the dice on the table stand first, in the layout of the one-player
    environment, then the other cards in playing order, the score differences, whose turn it
    is, the round and the playoff; ``env.unwrapped.layout.table()`` prints which block is where. The
    mask is all zeros for players who are not to move, and for everybody at the end.

    ## Rewards
    All rewards come at the end, so the sum of what ``last()`` returns for a seat is its final
    reward. ``reward="outcome"``: for two players 1, 0, -1; for more, 1 shared among the
    winners. ``"win_value"``: 1 shared among the winners for two players also. ``"points"``: the points on
    the sheet. ``"rank"``: the share of the others who ended behind, ties counting half.

    ## Episode end
    When a game is decided, by points, a tie-break, a playoff or an instant win, everybody is
    terminated at once. If the very first throw of a game wins, its player is offered a single
    action, which ends the game. Nobody is ever truncated.

    ## Info
    For every player ``round``, ``throw``, ``dice``, ``scores`` (by seat); at the end also
    ``winners`` (seats), ``instant_win`` and ``decided_by`` (``points``, ``instant_win``,
    ``draw`` or the tie-break).

    ## Seeding
    ``reset(seed=...)`` draws one dice key; every throw follows from it and from its own place
    (stage, round, throw, seat). ``options={"dice_key": (seed, game)}`` names the key, so that
    the game is the one a match plays under the same seed and number.

    ## Version history
    * v0: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": list(RENDER_MODES),
        "name": "generala_table_v0",
        "is_parallelizable": False,
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        num_players: int = 2,
        variant: str | Mapping[str, Any] | Variant = DEFAULT_VARIANT,
        *,
        first_player: FirstSeat = "variant",
        reward: str = "outcome",
        canonical_keeps: bool = True,
        observation_blocks: Sequence[str] | None = None,
        render_mode: str | None = None,
        dice: str = "standard",
        language: str = "en",
        render_size: int = DEFAULT_SIZE,
        render_theme: str = "light",
    ) -> None:
        """Set up a table.

        Args:
            num_players: How many play.
            variant: A preset's name, a mapping of overrides with ``base``, or a ``Variant``.
            first_player: ``"variant"`` or a seat.
            reward: ``"outcome"``, ``"win_value"``, ``"points"`` or ``"rank"``.
            canonical_keeps: Offer one id per kept multiset.
            observation_blocks: Names of the blocks of the one-player part.
            render_mode: ``"ansi"`` (text), ``"rgb_array"`` (pictures), ``"human"`` (a window) or ``None``.
            dice: Which dice are shown to people, ``"standard"`` or ``"poker"``.
            language: Language shown to people, ``"en"``, ``"es"`` or ``"pt"``.
            render_size: Width of pictures in pixels, from 320; they are a quarter higher.
            render_theme: Colours of pictures, ``"light"`` or ``"dark"``.

        Raises:
            ValueError: An option has a value that it does not know, or the variant is not for
                that many players.
        """
        super().__init__()
        check_reward(reward)
        self.variant = get_variant(variant)
        self._showing = Showing(
            self.variant, render_mode, language=language, dice=dice, size=render_size, theme=render_theme
        )
        self._dealt = DealtGame(self.variant, num_players, first_player=first_player)
        self.compiled = compile_variant(self.variant)
        self.layout = table_layout(self.compiled, num_players, observation_blocks)
        self.reward = reward
        self.canonical_keeps = canonical_keeps
        self.render_mode = render_mode
        self.dice = dice
        self.language = language
        self.possible_agents = [f"player_{seat}" for seat in range(num_players)]
        self.agents: list[str] = []
        mask_space = spaces.Box(0, 1, (self.compiled.num_actions,), np.int8)
        self._observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(-1.0, 1.0, (self.layout.size,), np.float32),
                    "action_mask": mask_space,
                }
            )
            for agent in self.possible_agents
        }
        self._action_spaces = {
            agent: spaces.Discrete(self.compiled.num_actions) for agent in self.possible_agents
        }
        self._np_random: np.random.Generator | None = None
        self._is_decided = False

    @property
    def state_of_game(self) -> GameState:
        """The position as the engine knows it."""
        return self._dealt.state

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the observation space of a player, the same object each time."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the action space of a player, the same object each time."""
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a game and throw until somebody has to decide.

        Args:
            seed: Seed of the generator; ``None`` goes on with the present one.
            options: ``{"dice_key": (seed, game)}`` names the dice instead of drawing them.
        """
        if seed is not None or self._np_random is None:
            self._np_random, _ = seeding.np_random(seed)
        self._dealt.start(key_from(options, self._np_random))
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._is_decided = False
        self._after_move()
        if self.render_mode == "human":
            self.render()

    def _after_move(self) -> None:
        state = self._dealt.state
        self.agent_selection = self.possible_agents[state.current_player]
        info: dict[str, Any] = {
            "round": state.round,
            "throw": state.turn.throw,
            "dice": state.turn.dice,
            "scores": state.scores,
        }
        if self._is_decided:
            info["winners"] = state.winners
            info["instant_win"] = state.is_instant_win
            info["decided_by"] = how_ended(self.variant, state, was_tied=self._dealt.was_tied)
        for agent in self.agents:
            # PettingZoo compares infos by identity first, so each player keeps one dict a step.
            self.infos[agent] = dict(info)

    def observe(self, agent: str) -> Observation:
        """Return what a player sees: ``observation`` and ``action_mask``."""
        seat = self.possible_agents.index(agent)
        batch = table_batch(self.compiled, self._dealt.state, seat)
        return {
            "observation": self.layout.encode(batch)[0],
            "action_mask": self._mask(seat).astype(np.int8),
        }

    def _mask(self, seat: int) -> NDArray[np.bool_]:
        state = self._dealt.state
        if self._is_decided or seat != state.current_player:
            return np.zeros(self.compiled.num_actions, dtype=bool)
        if self._dealt.is_over:
            # The first throw of the game has won: one action, which ends it.
            return only_action(self.compiled.num_actions)
        return self._dealt.action_mask(canonical=self.canonical_keeps)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal for the player to move, (num_actions,) bool."""
        return self._mask(self._dealt.state.current_player)

    def step(self, action: int | np.integer[Any] | None) -> None:
        """Take the action of the player to move, or ``None`` for one who is done.

        Raises:
            IllegalActionError: The action is not legal; nothing has changed.
        """
        if not self.agents:
            raise gym.error.ResetNeeded("the game is over (or not begun): call reset()")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        mask = self.action_masks()
        if action is None or not 0 <= action < len(mask) or not mask[action]:
            legal = np.flatnonzero(mask).tolist()
            raise IllegalActionError(f"action {action} is not legal for {agent}; legal: {legal}")
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if not self._dealt.is_over:
            self._dealt.apply(int(action))
        self._is_decided = self._dealt.is_over
        if self._is_decided:
            state = self._dealt.state
            paid = outcome_rewards(self.reward, np.array([state.scores]), winners_of(state)[None])[0]
            for seat, player in enumerate(self.possible_agents):
                self.rewards[player] = float(paid[seat])
                self.terminations[player] = True
        self._accumulate_rewards()
        self._after_move()
        self._deads_step_first()
        if self.render_mode == "human":
            self.render()

    def render(self) -> str | Frame | None:
        """Return the game as text (``"ansi"``) or as a picture (``"rgb_array"``), or show it (``"human"``).

        Raises:
            gymnasium.error.DependencyNotInstalled: What draws or shows pictures is not installed.
        """
        return self._showing.one(Shown(self._dealt.state, self._dealt.last_boxes))

    def close(self) -> None:
        """Close the window if one is open."""
        self._showing.close()


def env(**kwargs: Any) -> AECEnv:
    """Return the table with PettingZoo's checks of the order of calls; see ``raw_env``."""
    return wrappers.OrderEnforcingWrapper(raw_env(**kwargs))


def parallel_env(**kwargs: Any) -> Any:
    """Return the table through PettingZoo's parallel interface for turn-based games.

    Every player hands in an action at each step and only that of the player to move counts.
    """
    return turn_based_aec_to_parallel(env(**kwargs))
