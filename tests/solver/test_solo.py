"""The one-player solution against published anchors, brute force and its own simulation."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from generala_env.rules import (
    PRESETS,
    BoxStatus,
    Card,
    Game,
    GameState,
    Phase,
    TurnBatch,
    Variant,
    VariantError,
    compile_variant,
)
from generala_env.rules.actions import Close, Keep, action_id, action_of
from generala_env.rules.compiled import InstantWin
from generala_env.rules.dice import IS_FIVE_EQUAL, KEEP_OF_MASK, next_throw_table
from generala_env.rules.game import Player, Turn
from generala_env.solver import SoloSolution, solve_solo

# --- anchors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "overrides", "expected"),
    [
        ("ruibal", {}, 151.935017),
        ("clasica", {}, 156.575245),
        ("ruibal", {"order": "forced"}, 75.185491),
    ],
)
def test_anchors_of_the_rules_document(name: str, overrides: dict[str, str], expected: float) -> None:
    solution = solve_solo(PRESETS[name].override(**overrides), instant_win="play_on")
    assert solution.expected_score == pytest.approx(expected, abs=1e-5)


# --- brute force -----------------------------------------------------------------------------


@dataclass
class BruteForce:
    """Optimal points to come by plain recursion over the readable engine.

    It asks the engine for outcomes, legal actions and what follows, and knows nothing of
    tables, classes or lattices. To play on after a served Generala, the variant itself is
    changed so that none wins.

    Attributes:
        variant: The rules, already without wins where the game plays on.
        win_points: What a win pays; ``None`` when it cannot happen.
        forgets: Take states for one that differ only in dice kept before, where these decide
            neither whether the throw is served nor what may be kept. A few times faster; the
            slow tests do without.
    """

    variant: Variant
    win_points: float | None
    forgets: bool = True
    values: dict[tuple[Card, Turn], float] = field(default_factory=dict)
    states: list[GameState] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Sit down at a table for one."""
        self.game = Game(self.variant, 1, solo=True)

    def value(self, state: GameState) -> float:
        """Return the points to come from a state, its own win included."""
        if state.phase is Phase.OVER:
            if not state.is_instant_win:
                return 0.0
            assert self.win_points is not None
            return self.win_points
        key = (state.card, self.remembered(state.turn))
        if key not in self.values:
            self.states.append(state)
            if self.game.is_chance(state):
                self.values[key] = math.fsum(
                    chance * self.value(self.game.apply_chance(state, outcome))
                    for outcome, chance in self.game.chance_outcomes(state)
                )
            else:
                self.values[key] = max(self.action_values(state).values())
        return self.values[key]

    def remembered(self, turn: Turn) -> Turn:
        """Return what of the turn the value may depend on."""
        if not self.forgets or not turn.dice or not turn.kept:
            return turn
        if self.variant.is_locked and turn.throw == 2:
            return turn
        return replace(turn, kept=turn.dice[:1])

    def action_values(self, state: GameState) -> dict[int, float]:
        """Return the value of every legal action by its id."""
        values = {}
        for action in self.game.legal_actions(state):
            after = self.game.apply(state, action)
            gained = after.scores[0] - state.scores[0]
            values[action_id(action)] = gained + self.value(after)
        return values


def perfect_by_search(variant: Variant) -> int:
    """Return the most points of any line of play without a win, by trying all closings."""
    game = Game(variant, 1, solo=True)
    best: dict[Card, int] = {}

    def search(player: Player) -> int:
        if player.card.is_complete:
            return 0
        if player.card not in best:
            most = 0
            # Throws of all five dice, and throws beside a kept die, which are not served.
            for turn in (Turn(), *(Turn(2, (), (face,)) for face in range(1, 7))):
                state = GameState(Phase.TURNS, (player,), first_player=0, turn=turn)
                for outcome, _ in game.chance_outcomes(state):
                    thrown = game.apply_chance(state, outcome)
                    for action in game.legal_actions(thrown):
                        if isinstance(action, Close):
                            after = game.apply(thrown, action).players[0]
                            most = max(most, after.score - player.score + search(after))
            best[player.card] = most
        return best[player.card]

    return search(game.initial_state().players[0])


CUT_DOWN: dict[str, Variant] = {
    "bonus_any_full": PRESETS["clasica"].override(boxes=["sixes", "generala"]),
    "bonus_locked_al_as": PRESETS["clasica_fija"].override(boxes=["generala", "escalera"]),
    "bonus_forced_first": PRESETS["clasica_obligada"].override(boxes=["generala", "poker"]),
    "doble_box_locked": PRESETS["doble_fija"].override(boxes=["generala", "doble_generala"]),
    "doble_box_forced": PRESETS["doble_obligada"].override(boxes=["generala", "ones", "doble_generala"]),
    "no_generala_box": PRESETS["ruibal"].override(boxes=["full"]),
    "one_box": PRESETS["ruibal"].override(boxes=["poker"]),
    "one_box_locked": PRESETS["ruibal"].override(boxes=["escalera"], kept_dice="locked"),
    "odd_rules": PRESETS["doble"].override(
        boxes=["doble_generala", "generala"],
        doble="box(33, 77)",
        served_on="any_full_throw",
        served_generala_wins="unless_struck",
        kept_dice="locked",
        generala_points=11,
    ),
    "takes_five": PRESETS["ruibal"].override(
        boxes=["full", "poker"], full_takes_five=True, poker_takes_five=False, served_bonus=13
    ),
}

THREE_BOXES: dict[str, Variant] = {
    "clasica": PRESETS["clasica"].override(boxes=["sixes", "poker", "generala"]),
    "clasica_fija": PRESETS["clasica_fija"].override(boxes=["escalera", "generala", "ones"]),
    "doble": PRESETS["doble"].override(boxes=["full", "generala", "doble_generala"]),
    "doble_fija": PRESETS["doble_fija"].override(boxes=["fours", "generala", "doble_generala"]),
}


def brute_force(variant: Variant, instant_win: InstantWin, *, forgets: bool) -> BruteForce:
    if instant_win == "play_on":
        return BruteForce(variant.override(served_generala_wins="never"), None, forgets)
    if instant_win == "perfect":
        return BruteForce(variant, perfect_by_search(variant), forgets)
    assert not isinstance(instant_win, str)
    return BruteForce(variant, float(instant_win), forgets)


def assert_solves(
    variant: Variant, instant_win: InstantWin, *, num_states: int, forgets: bool = True
) -> None:
    """Compare the value of the game, of many states and of all their actions."""
    truth = brute_force(variant, instant_win, forgets=forgets)
    solution = solve_solo(variant, instant_win=instant_win)
    expected = truth.value(truth.game.initial_state())
    assert solution.expected_score == pytest.approx(expected, abs=1e-10)
    rng = np.random.default_rng(1)
    chosen = rng.choice(len(truth.states), size=min(num_states, len(truth.states)), replace=False)
    for state in (truth.states[place] for place in chosen.tolist()):
        assert solution.state_value(state) == pytest.approx(truth.value(state), abs=1e-10)
        if truth.game.is_chance(state):
            continue
        q_values = solution.q_values(state)
        assert q_values.dtype == np.float64
        assert q_values.shape == (31 + variant.num_boxes,)
        found = {int(place): q_values[place] for place in np.flatnonzero(np.isfinite(q_values))}
        assert found == pytest.approx(truth.action_values(state), abs=1e-10)
        assert solution.state_value(state) == q_values.max() == q_values[solution.policy(state)]


@pytest.mark.parametrize(
    ("name", "instant_win"),
    [
        *((name, "perfect") for name, variant in CUT_DOWN.items() if not variant.is_locked),
        ("no_generala_box", 17),
        ("bonus_forced_first", "play_on"),
        # Locked dice have many more states; the slow tests have the other variants.
        ("one_box_locked", "play_on"),
    ],
)
def test_cut_down_variants_agree_with_brute_force(name: str, instant_win: InstantWin) -> None:
    assert_solves(CUT_DOWN[name], instant_win, num_states=150)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "instant_win"),
    [
        *((name, "perfect") for name in CUT_DOWN),
        ("bonus_locked_al_as", "play_on"),
        ("doble_box_locked", 17),
        ("odd_rules", 17),
    ],
)
def test_cut_down_variants_agree_with_brute_force_that_forgets_nothing(
    name: str, instant_win: InstantWin
) -> None:
    assert_solves(CUT_DOWN[name], instant_win, num_states=3_000, forgets=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "instant_win"),
    [
        *((name, "perfect") for name in THREE_BOXES),
        ("clasica", "play_on"),
        ("clasica_fija", 0.5),
        ("doble_fija", "play_on"),
    ],
)
def test_three_boxes_agree_with_brute_force(name: str, instant_win: InstantWin) -> None:
    assert_solves(THREE_BOXES[name], instant_win, num_states=3_000)


@pytest.mark.parametrize("name", [*CUT_DOWN, "doble_fija"])
def test_the_perfect_score_agrees_with_a_search(name: str) -> None:
    variant = {**CUT_DOWN, **THREE_BOXES}[name]
    assert solve_solo(variant).perfect_score == perfect_by_search(variant)


# --- the whole game --------------------------------------------------------------------------


def random_decisions(solution: SoloSolution, count: int, seed: int) -> list[GameState]:
    """Draw reachable decision states of the full card."""
    compiled = solution.compiled
    game = Game(compiled.variant, 1, solo=True)
    rng = np.random.default_rng(seed)
    states: list[GameState] = []
    while len(states) < count:
        card = compiled.card(int(rng.integers(compiled.num_cards)))
        if card.is_complete:
            continue
        sheet = tuple(None if card.is_open(box) else 0 for box in range(compiled.num_boxes))
        state = GameState(Phase.TURNS, (Player(card, sheet),), first_player=0)
        stop = int(rng.integers(1, 4))
        while True:
            state = game.apply_chance(state, game.sample_chance(state, float(rng.random())))
            if state.phase is Phase.OVER or state.turn.throw == stop:
                break
            keeps = [action for action in game.legal_actions(state) if isinstance(action, Keep)]
            state = game.apply(state, keeps[rng.integers(len(keeps))])
        if state.phase is not Phase.OVER:
            states.append(state)
    return states


@pytest.mark.parametrize(
    ("name", "instant_win"),
    [*((name, "perfect") for name in PRESETS), ("clasica_fija", 40), ("ruibal", "play_on")],
)
def test_values_follow_from_one_step_through_the_engine(name: str, instant_win: InstantWin) -> None:
    """Bellman's equation on the full card: every action is worth what it leads to."""
    solution = solve_solo(name, instant_win=instant_win)
    game = Game(PRESETS[name], 1, solo=True)
    for state in random_decisions(solution, count=8, seed=len(name)):
        q_values = solution.q_values(state)
        legal = game.legal_actions(state)
        assert np.flatnonzero(np.isfinite(q_values)).tolist() == [action_id(action) for action in legal]
        assert solution.state_value(state) == q_values.max()
        for action in legal:
            after = game.apply(state, action)
            gained = after.scores[0] - state.scores[0]
            worth = solution.state_value(after)
            assert q_values[action_id(action)] == pytest.approx(gained + worth, abs=1e-9)
        pending = game.apply(state, legal[0])
        if game.is_chance(pending):
            total = math.fsum(
                chance * solution.state_value(game.apply_chance(pending, outcome))
                for outcome, chance in game.chance_outcomes(pending)
            )
            assert solution.state_value(pending) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("name", PRESETS)
def test_treatments_of_the_instant_win_are_ordered(name: str) -> None:
    """More pay for a win is never worse; a win that pays the perfect score beats playing on."""
    perfect = solve_solo(name, instant_win="perfect")
    assert perfect.instant_win_points == perfect.perfect_score == compile_variant(name).perfect_score
    by_points = [solve_solo(name, instant_win=points).expected_score for points in (0, 50, 120.5)]
    assert by_points == sorted(by_points)
    play_on = solve_solo(name, instant_win="play_on")
    assert play_on.instant_win_points is None
    assert by_points[0] < play_on.expected_score < perfect.expected_score < perfect.perfect_score
    same = solve_solo(name, instant_win=perfect.perfect_score)
    assert same.expected_score == perfect.expected_score


def test_playing_on_is_the_game_in_which_a_served_generala_never_wins() -> None:
    for name in ("ruibal", "clasica_fija", "doble_obligada"):
        never = solve_solo(PRESETS[name].override(served_generala_wins="never"))
        play_on = solve_solo(name, instant_win="play_on")
        assert play_on.expected_score == pytest.approx(never.expected_score, abs=1e-11)


def test_fewer_choices_are_never_worth_more() -> None:
    def worth(name: str, **overrides: str) -> float:
        return solve_solo(PRESETS[name].override(**overrides), instant_win="play_on").expected_score

    for name in ("ruibal", "clasica"):
        assert worth(name, order="forced") < worth(name, kept_dice="locked") < worth(name)
    assert worth("doble") < worth("doble_al_as")


def test_a_card_is_worth_at_least_what_closing_its_boxes_one_by_one_leaves() -> None:
    """Opening one more box never makes a card worth less (free order, no memory involved)."""
    solution = solve_solo("ruibal", instant_win="play_on")
    compiled, values = solution.compiled, solution.card_values
    assert values.shape == (compiled.num_cards,)
    assert (values[compiled.num_open == 0] == 0).all()
    for card in range(0, compiled.num_cards, 17):
        for box in range(9):
            if compiled.closable[card, box]:
                closed = compiled.card_index[
                    compiled.card_open[card] ^ (1 << box), compiled.card_status[card]
                ]
                assert values[card] > values[closed]


# --- its own policy, played ------------------------------------------------------------------


def play(solution: SoloSolution, num_games: int, seed: int) -> NDArray[np.float64]:
    """Play whole games by the solution's policy, all at once; return their scores."""
    compiled = solution.compiled
    rng = np.random.default_rng(seed)
    card = np.zeros(num_games, dtype=np.intp)
    score = np.zeros(num_games)
    is_won = np.zeros(num_games, dtype=bool)
    for _ in range(compiled.num_boxes):
        turn = np.flatnonzero(~is_won)
        kept = np.zeros(len(turn), dtype=np.intp)
        for number in (1, 2, 3):
            throw = next_throw_table()[kept, rng.integers(7_776, size=len(turn))].astype(np.intp)
            served = compiled.is_served[number - 1, (kept == 0).astype(np.intp)]
            won = served & IS_FIVE_EQUAL[throw] & compiled.instant_win[card[turn]]
            if solution.instant_win_points is not None and won.any():
                score[turn[won]] += solution.instant_win_points
                is_won[turn[won]] = True
                turn, kept, throw, served = turn[~won], kept[~won], throw[~won], served[~won]
            batch = TurnBatch(card[turn], throw, np.full(len(turn), number), served, kept)
            action = solution.actions(batch)
            closes = action >= 31
            rows, box, flag = turn[closes], action[closes] - 31, served[closes].astype(np.intp)
            score[rows] += compiled.points[compiled.card_status[card[rows]], box, flag, throw[closes]]
            card[rows] = compiled.next_card(card[rows], box, flag, throw[closes])
            kept = KEEP_OF_MASK[throw[~closes], action[~closes]].astype(np.intp)
            turn = turn[~closes]
        assert not len(turn)
    assert (compiled.num_open[card[~is_won]] == 0).all()
    return score


def assert_mean_is_expected(solution: SoloSolution, num_games: int) -> None:
    scores = play(solution, num_games, seed=2024)
    # 3.3 standard errors: the seed is fixed, and one in a thousand seeds would lie outside.
    half_width = 3.3 * scores.std(ddof=1) / math.sqrt(num_games)
    assert half_width < 0.01 * solution.expected_score * math.sqrt(100_000 / num_games)
    assert scores.mean() == pytest.approx(solution.expected_score, abs=half_width)


@pytest.mark.parametrize(("name", "instant_win"), [("ruibal", "perfect"), ("clasica_fija", "play_on")])
def test_simulated_games_have_the_expected_mean(name: str, instant_win: InstantWin) -> None:
    assert_mean_is_expected(solve_solo(name, instant_win=instant_win), 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("instant_win", ["perfect", "play_on", 10], ids=str)
@pytest.mark.parametrize("name", PRESETS)
def test_a_hundred_thousand_games_have_the_expected_mean(name: str, instant_win: InstantWin) -> None:
    assert_mean_is_expected(solve_solo(name, instant_win=instant_win), 100_000)


def test_one_game_through_the_engine_by_the_policy() -> None:
    """The policy's ids are actions of the engine, from the first throw to the last."""
    for name in PRESETS:
        solution = solve_solo(name, instant_win="perfect")
        game = Game(PRESETS[name], 1, solo=True)
        rng = np.random.default_rng(8)
        state = game.initial_state()
        while not game.is_over(state):
            if game.is_chance(state):
                state = game.apply_chance(state, game.sample_chance(state, float(rng.random())))
            else:
                action = action_of(solution.policy(state), PRESETS[name].num_boxes)
                assert action in game.legal_actions(state)
                state = game.apply(state, action)
        assert state.scores[0] > 0


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instant_win", ["Perfect", "", None, True, float("nan"), float("inf"), "50", [50]], ids=repr
)
def test_a_treatment_that_is_not_known_is_refused(instant_win: InstantWin) -> None:
    with pytest.raises(ValueError, match=r"^instant_win: .* is not 'perfect', 'play_on' or a finite number"):
        solve_solo("ruibal", instant_win=instant_win)


def test_a_variant_that_is_not_known_is_refused() -> None:
    with pytest.raises(VariantError, match="did you mean ruibal"):
        solve_solo("ruibla")


@pytest.mark.parametrize(
    "card",
    [
        Card(0b1111111111, generala=BoxStatus.SCORED),
        Card(0b0111111111),
        Card(0b11111111111),
        Card(0b0111111110, generala=BoxStatus.SCORED, is_bonus_taken=True),
    ],
)
def test_an_unreachable_state_is_refused(card: Card) -> None:
    solution = solve_solo("ruibal")
    player = Player(card, (None,) * 10)
    state = GameState(Phase.TURNS, (player,), first_player=0, turn=Turn(1, (1, 2, 3, 4, 5)))
    for ask in (solution.q_values, solution.state_value, solution.policy):
        with pytest.raises(ValueError, match="is not reachable under ruibal"):
            ask(state)
    with pytest.raises(ValueError, match="is not reachable under ruibal"):
        solution.state_value(replace(state, turn=Turn()))


def test_nothing_is_decided_before_a_throw_or_after_the_end() -> None:
    solution = solve_solo("clasica", instant_win="perfect")
    game = Game(PRESETS["clasica"], 1, solo=True)
    state = game.initial_state()
    with pytest.raises(ValueError, match="no dice on the table: nothing is to be decided"):
        solution.q_values(state)
    assert solution.state_value(state) == solution.expected_score
    won = game.apply_chance(state, (4,) * 5)
    with pytest.raises(ValueError, match="has won at once: nothing is to be decided"):
        solution.q_values(won)
    with pytest.raises(ValueError, match="has won at once: nothing is to be decided"):
        solution.policy(won)
    assert solution.state_value(won) == solution.perfect_score
    # The same throw is a decision when the game plays on.
    play_on = solve_solo("clasica", instant_win="play_on")
    assert play_on.state_value(won) == play_on.q_values(won).max() > play_on.expected_score
    for box in range(10):
        state = game.apply(game.apply_chance(state, (1, 2, 2, 4, 6)), Close(box))
    assert game.is_over(state)
    assert solution.state_value(state) == 0.0
    with pytest.raises(ValueError, match=r"the card is complete \(phase over\)"):
        solution.q_values(state)


def test_only_the_card_of_the_current_player_counts() -> None:
    solution = solve_solo("ruibal")
    game = Game(PRESETS["ruibal"], 3)
    state = game.apply_chance(game.initial_state(), (1, 2, 2, 4, 6))
    alone = Game(PRESETS["ruibal"], 1, solo=True)
    lonely = alone.apply_chance(alone.initial_state(), (1, 2, 2, 4, 6))
    np.testing.assert_array_equal(solution.q_values(state), solution.q_values(lonely))


def test_solving_twice_gives_the_same_read_only_values() -> None:
    one, other = solve_solo("doble_fija"), solve_solo("doble_fija")
    np.testing.assert_array_equal(one.class_values, other.class_values)
    np.testing.assert_array_equal(one.class_keep_values, other.class_keep_values)
    for array in (one.class_values, one.class_keep_values):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
