"""Environments taken through whatever can be done to them, in any order, beside the readable engine.

The model is a position of the engine. Where chance comes in, the dice that the environment shows must be
dice that the engine could throw there, and the position must be the engine's after them.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.typing import NDArray

from generala_env.envs.solo import GeneralaEnv
from generala_env.envs.table import raw_env
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules.actions import action_id, action_of
from generala_env.rules.compiled import InstantWin
from generala_env.rules.game import Game, GameState, IllegalActionError, Phase
from generala_env.rules.variants import get_variant

pytestmark = pytest.mark.slow

NUM_ENVS = 3
SEEDS = st.integers(0, 2**63 - 1)
CHOICES = st.integers(0, 10**6)


class Model:
    """A game of the engine that is told which dice fell."""

    def __init__(self, name: str, num_players: int, instant_win: InstantWin) -> None:
        variant = get_variant(name)
        if instant_win == "play_on":
            # Alone, such a throw is an ordinary served one.
            variant = variant.override(served_generala_wins="never")
        self.game = Game(variant, num_players, solo=num_players == 1)
        self.state = self.game.initial_state()
        self.chance = self.state

    def begin(self, shown: GameState) -> None:
        self.chance = self.game.initial_state()
        self.state = self.game.apply_chance(self.chance, shown.turn.dice)

    def act(self, action: int, shown: GameState) -> None:
        state = self.game.apply(self.state, action_of(action, self.game.variant.num_boxes))
        if self.game.is_chance(state):
            self.chance = state
            state = self.game.apply_chance(state, shown.turn.dice)
        self.state = state

    def legal(self, *, canonical: bool = True) -> list[int]:
        return [action_id(action) for action in self.game.legal_actions(self.state, canonical=canonical)]


class SoloMachine(RuleBasedStateMachine):
    """An environment that is reset, stepped, laid out, pickled and copied, and a twin that never leaves."""

    name = "clasica"
    instant_win: InstantWin = "play_on"
    canonical = True

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        options: Any = {"instant_win": self.instant_win, "canonical_keeps": self.canonical}
        self.env, self.twin = (GeneralaEnv(self.name, **options) for _ in range(2))
        self.model = Model(self.name, 1, self.instant_win)
        self.known: list[tuple[GameState, GameState]] = []
        self.reset(seed)

    @rule(seed=st.none() | SEEDS)
    def reset(self, seed: int | None) -> None:
        assert data_equivalence(self.env.reset(seed=seed), self.twin.reset(seed=seed))
        self.model.begin(self.env.state)
        self.waits = bool(self.env.action_masks().any())

    @precondition(lambda self: self.waits)
    @rule(choice=CHOICES)
    def step(self, choice: int) -> None:
        legal = np.flatnonzero(self.env.action_masks())
        action = int(legal[choice % len(legal)])
        has_won = self.model.state.is_instant_win
        points = self.model.state.players[0].score
        step = self.env.step(action)
        assert data_equivalence(step, self.twin.step(action))
        if not has_won:
            self.known.append((self.model.chance, self.model.state))
            self.model.act(action, self.env.state)
        is_over = self.model.game.is_over(self.model.state)
        won = self.env.compiled.perfect_score if self.model.state.is_instant_win else 0
        assert step[1] == self.model.state.players[0].score - points + won
        assert step[2] == is_over
        assert step[3] is False
        self.waits = not is_over

    @rule(choice=CHOICES)
    def step_wrongly(self, choice: int) -> None:
        wrong = np.flatnonzero(~self.env.action_masks())
        action = int(wrong[choice % len(wrong)]) if len(wrong) else -1
        with pytest.raises(IllegalActionError if self.waits else gym.error.ResetNeeded):
            self.env.step(action)

    @rule(choice=CHOICES, uniform=st.floats(0, 1, exclude_max=True))
    def lay_out(self, choice: int, uniform: float) -> None:
        """Go to another throw of a position that was met, five equal dice among them."""
        known = [*self.known, (self.model.chance, self.model.state)]
        self.model.chance = known[choice % len(known)][0]
        outcomes = [dice for dice, _ in self.model.game.chance_outcomes(self.model.chance)]
        equal = [dice for dice in outcomes if isinstance(dice, tuple) and len(set(dice)) == 1]
        among = equal if equal and choice % 3 == 0 else outcomes
        self.model.state = self.model.game.apply_chance(self.model.chance, among[int(uniform * len(among))])
        assert data_equivalence(self.env.set_state(self.model.state), self.twin.set_state(self.model.state))
        self.waits = bool(self.env.action_masks().any())
        assert self.waits is not self.model.game.is_over(self.model.state)

    @rule()
    def pickle(self) -> None:
        self.env = pickle.loads(pickle.dumps(self.env))

    @rule(choice=CHOICES, seed=SEEDS)
    def copy(self, choice: int, seed: int) -> None:
        """Go on with a copy; what is done to the one it was made of does not reach it."""
        left = self.env
        self.env = copy.deepcopy(left)
        if self.waits:
            legal = np.flatnonzero(left.action_masks())
            left.step(int(legal[choice % len(legal)]))
        left.reset(seed=seed)

    @invariant()
    def is_where_the_engine_is(self) -> None:
        for env in (self.env, self.twin):
            assert env.state == self.model.state
            expected = self.model.legal(canonical=self.canonical)
            if self.waits and self.model.state.is_instant_win:
                assert env.action_masks().sum() == 1
            else:
                assert np.flatnonzero(env.action_masks()).tolist() == expected


class PerfectMachine(SoloMachine):
    name = "ruibal"
    instant_win = "perfect"


class LockedMachine(SoloMachine):
    name = "doble_fija"
    instant_win = "perfect"
    canonical = False


class OrderedMachine(SoloMachine):
    name = "clasica_obligada"


class VectorMachine(RuleBasedStateMachine):
    """A batch that is reset in parts, stepped, put back, pickled and copied, each row beside the engine."""

    mode = AutoresetMode.NEXT_STEP
    name = "ruibal"
    instant_win: InstantWin = "perfect"

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        self.vector, self.twin = (
            GeneralaVectorEnv(NUM_ENVS, self.name, instant_win=self.instant_win, autoreset_mode=self.mode)
            for _ in range(2)
        )
        self.models = [Model(self.name, 1, self.instant_win) for _ in range(NUM_ENVS)]
        self.is_over = np.zeros(NUM_ENVS, dtype=bool)
        self.kept: list[tuple[dict[str, NDArray[Any]], list[Model], NDArray[np.bool_]]] = []
        self.reset(seed % 2**62)

    @rule(seed=st.none() | st.integers(0, 2**62))
    def reset(self, seed: int | None) -> None:
        assert data_equivalence(self.vector.reset(seed=seed), self.twin.reset(seed=seed))
        for index, model in enumerate(self.models):
            model.begin(self.vector.state(index))
        self.is_over[:] = False

    @rule(rows=st.lists(st.booleans(), min_size=NUM_ENVS, max_size=NUM_ENVS).filter(any))
    def reset_some(self, rows: list[bool]) -> None:
        mask = np.array(rows)
        options = {"reset_mask": mask}
        assert data_equivalence(self.vector.reset(options=options), self.twin.reset(options=options))
        for index in np.flatnonzero(mask).tolist():
            self.models[index].begin(self.vector.state(index))
        self.is_over[mask] = False

    def _may_step(self) -> bool:
        return self.mode is AutoresetMode.NEXT_STEP or not self.is_over.any()

    @precondition(lambda self: self._may_step())
    @rule(choices=st.lists(CHOICES, min_size=NUM_ENVS, max_size=NUM_ENVS))
    def step(self, choices: list[int]) -> None:
        legal = [np.flatnonzero(mask) for mask in self.vector.action_masks()]
        actions = np.array(
            [
                # The step that resets takes any action.
                int(row[choice % len(row)]) if len(row) else choice % self.vector.compiled.num_actions
                for row, choice in zip(legal, choices, strict=True)
            ]
        )
        step = self.vector.step(actions)
        assert data_equivalence(step, self.twin.step(actions))
        _, rewards, terminated, _, _ = step
        for index, model in enumerate(self.models):
            shown = self.vector.state(index)
            if self.is_over[index]:
                model.begin(shown)
                assert rewards[index] == 0
                assert not terminated[index]
                self.is_over[index] = False
                continue
            points = model.state.players[0].score
            if not model.state.is_instant_win:
                model.act(int(actions[index]), shown)
            won = self.vector.compiled.perfect_score if model.state.is_instant_win else 0
            assert rewards[index] == model.state.players[0].score - points + won
            assert terminated[index] == model.game.is_over(model.state)
            self.is_over[index] = terminated[index]

    @rule()
    def keep(self) -> None:
        self.kept.append((self.vector.get_state(), copy.deepcopy(self.models), self.is_over.copy()))

    @precondition(lambda self: self.kept)
    @rule(choice=CHOICES)
    def put_back(self, choice: int) -> None:
        state, models, is_over = self.kept[choice % len(self.kept)]
        self.vector.set_state(state)
        self.twin.set_state(state)
        self.models, self.is_over = copy.deepcopy(models), is_over.copy()

    @rule()
    def pickle(self) -> None:
        self.vector = pickle.loads(pickle.dumps(self.vector))

    @rule(seed=st.integers(0, 2**62))
    def copy(self, seed: int) -> None:
        left = self.vector
        self.vector = copy.deepcopy(left)
        left.reset(seed=seed)

    @invariant()
    def is_where_the_engine_is(self) -> None:
        for vector in (self.vector, self.twin):
            masks = vector.action_masks()
            for index, model in enumerate(self.models):
                assert vector.state(index) == model.state
                if self.is_over[index]:
                    continue
                if model.state.is_instant_win:
                    assert masks[index].sum() == 1
                else:
                    assert np.flatnonzero(masks[index]).tolist() == model.legal()


class PatientVectorMachine(VectorMachine):
    mode = AutoresetMode.DISABLED
    name = "doble_fija"
    instant_win = "play_on"


class TableMachine(RuleBasedStateMachine):
    """A table of three in PettingZoo's dress: reset, stepped, pickled and copied."""

    name = "clasica"
    num_players = 3

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        self.table, self.twin = (raw_env(self.num_players, self.name, first_player=0) for _ in range(2))
        self.model = Model(self.name, self.num_players, "perfect")
        self.reset(seed)

    @rule(seed=st.none() | SEEDS)
    def reset(self, seed: int | None) -> None:
        for table in (self.table, self.twin):
            table.reset(seed=seed)
        shown = self.table.state_of_game
        start = replace(self.model.game.initial_state(), phase=shown.phase, contest=None, first_player=0)
        if shown.is_instant_win:
            start = replace(start, phase=Phase.TURNS)
        self.model.chance = start
        self.model.state = self.model.game.apply_chance(start, shown.turn.dice)
        self.is_decided = False

    @precondition(lambda self: not self.is_decided)
    @rule(choice=CHOICES)
    def step(self, choice: int) -> None:
        legal = np.flatnonzero(self.table.action_masks())
        action = int(legal[choice % len(legal)])
        for table in (self.table, self.twin):
            table.step(action)
        if not self.model.state.is_instant_win:
            self.model.act(action, self.table.state_of_game)
        self.is_decided = self.model.game.is_over(self.model.state)
        assert any(self.table.terminations.values()) == self.is_decided

    @rule()
    def pickle(self) -> None:
        self.table = pickle.loads(pickle.dumps(self.table))

    @rule(seed=SEEDS)
    def copy(self, seed: int) -> None:
        left = self.table
        self.table = copy.deepcopy(left)
        left.reset(seed=seed)

    @invariant()
    def is_where_the_engine_is(self) -> None:
        for table in (self.table, self.twin):
            assert table.state_of_game == self.model.state
            if not self.is_decided and not self.model.state.is_instant_win:
                assert np.flatnonzero(table.action_masks()).tolist() == self.model.legal()


MACHINES: list[type[RuleBasedStateMachine]] = [
    SoloMachine,
    PerfectMachine,
    LockedMachine,
    OrderedMachine,
    VectorMachine,
    PatientVectorMachine,
    TableMachine,
]


@pytest.mark.parametrize("machine", MACHINES)
def test_no_order_of_doings_leaves_the_rules(machine: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
