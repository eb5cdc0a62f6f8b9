"""The compiled loops of the card learners: acting, throwing dice, targets and gradients.

Tables of outputs are (R, 421) float32, in points, one row per class of cards (``tables``).
``closed`` is their last column on its own, (K,) float32 with zeros for complete cards: it is read
once per box of every decision, and a column of a wide table is slow to walk.

Games are four arrays, one entry per game: class of the card, throw, throw number, dice kept
before the throw. Random numbers come from a state of one word that is passed in and advanced, so
that whoever saves it can go on exactly where a run stopped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.learning.cards.tables import CLOSED, AfterstateTables
from generala_env.compiling import kernel
from generala_env.rules.dice import NUM_PARTIAL_KEEPS

MAX_ACTIONS = 64
"""Room for the legal actions of a decision: 31 keeps and the boxes."""

_LOW_60 = np.uint64((1 << 60) - 1)
_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Games(NamedTuple):
    """Games in progress, each before a decision.

    Attributes:
        card: (games,) int32, class of the card.
        throw: (games,) int16, the dice on the table.
        number: (games,) int16, which throw of the turn, 1 to 3.
        kept: (games,) int16, the dice kept before the throw; 0, none, on the first.
    """

    card: NDArray[np.int32]
    throw: NDArray[np.int16]
    number: NDArray[np.int16]
    kept: NDArray[np.int16]


@kernel(error_model="numpy", inline="always")
def _word(rng: NDArray[np.uint64]) -> Any:
    """Draw 64 random bits by SplitMix64 (Steele, Lea and Flood, 2014)."""
    rng[0] += _GOLDEN_GAMMA
    word = rng[0]
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@kernel(error_model="numpy", inline="always")
def _uniform(rng: NDArray[np.uint64]) -> Any:
    """Draw from [0, 1)."""
    return np.float64(_word(rng) >> np.uint64(11)) * 2.0**-53


@kernel(error_model="numpy", inline="always")
def _below(rng: NDArray[np.uint64], bound: Any) -> Any:
    """Draw an integer from 0 to ``bound`` - 1, at most 2**20."""
    return np.int64(((_word(rng) >> np.uint64(24)) * np.uint64(bound)) >> np.uint64(40))


@kernel(error_model="numpy", inline="always")
def _roll(tables: AfterstateTables, rng: NDArray[np.uint64], kept: Any) -> Any:
    """Throw the dice that are not kept and return the throw.

    One word of 60 bits, read as a fraction in base 6, gives the faces of all dice; its resolution is
    far beyond what any run could notice.
    """
    word = _word(rng) & _LOW_60
    keep = np.int64(kept)
    while keep < NUM_PARTIAL_KEEPS:
        word = word * np.uint64(6)
        keep = np.int64(tables.keep_add[keep, np.int64(word >> np.uint64(60))])
        word &= _LOW_60
    return keep - NUM_PARTIAL_KEEPS


@kernel(error_model="numpy", inline="always")
def _served(tables: AfterstateTables, number: Any, kept: Any) -> Any:
    return np.int64(tables.is_served[number - 1, 1 if kept == 0 else 0])


@kernel(error_model="numpy", inline="always")
def _pair(tables: AfterstateTables, throw: Any, number: Any, kept: Any) -> Any:
    locked = kept if tables.is_locked and number > 1 else 0
    return np.int64(tables.pair_of[locked, throw])


@kernel(error_model="numpy", inline="always")
def _successor(tables: AfterstateTables, card: Any, throw: Any, served: Any, box: Any) -> Any:
    status = tables.next_status[tables.status[card], served, throw, box]
    return np.int64(tables.class_of[tables.open_mask[card] & ~(1 << box), status])


@kernel(error_model="numpy", inline="always")
def _best(
    tables: AfterstateTables,
    values: NDArray[np.float32],
    closed: NDArray[np.float32],
    card: Any,
    throw: Any,
    number: Any,
    kept: Any,
    served: Any,
) -> Any:
    """Return the value of the best action, the keep it is (or -1), and the box it is (or -1).

    Among equals, keeps come before boxes, and lower ones before higher. No slice of an array is taken
    here nor in the other loops: counting references to slices would take most of the time.
    """
    best = np.float32(-np.inf)
    best_keep: Any = -1
    best_box: Any = -1
    if number < 3:
        first = (number - 1) * NUM_PARTIAL_KEEPS
        pair = _pair(tables, throw, number, kept)
        for entry in range(tables.keep_start[pair], tables.keep_start[pair + 1]):
            keep = np.int64(tables.keep_list[entry])
            value = values[card, first + keep]
            if value > best:
                best, best_keep = value, keep
    status = tables.status[card]
    opened = tables.open_mask[card]
    for entry in range(tables.num_closable[card]):
        box = np.int64(tables.closable[card, entry])
        after = tables.class_of[opened & ~(1 << box), tables.next_status[status, served, throw, box]]
        value = tables.points[status, served, throw, box] + closed[after]
        if value > best:
            best, best_keep, best_box = value, -1, box
    return best, best_keep, best_box


@kernel(error_model="numpy", inline="always")
def _random_action(
    tables: AfterstateTables, rng: NDArray[np.uint64], card: Any, throw: Any, number: Any, kept: Any
) -> Any:
    """Return a uniformly drawn legal keep (or -1) and box (or -1)."""
    num_keeps, start = 0, 0
    if number < 3:
        pair = _pair(tables, throw, number, kept)
        start = tables.keep_start[pair]
        num_keeps = tables.keep_start[pair + 1] - start
    drawn = _below(rng, num_keeps + np.int64(tables.num_closable[card]))
    if drawn < num_keeps:
        return np.int64(tables.keep_list[start + drawn]), -1
    return -1, np.int64(tables.closable[card, drawn - num_keeps])


@kernel(error_model="numpy", inline="always")
def _start_card(tables: AfterstateTables, rng: NDArray[np.uint64], random_start: float) -> Any:
    """Return the card a new game starts from: the empty one, or with some chance any."""
    if random_start > 0.0 and _uniform(rng) < random_start:
        return _below(rng, tables.num_rows)
    return np.int64(0)


@kernel(error_model="numpy", inline="always")
def _is_won(tables: AfterstateTables, card: Any, throw: Any, number: Any, kept: Any) -> Any:
    return tables.is_won[card] and tables.is_five_equal[throw] and _served(tables, number, kept) == 1


@kernel(error_model="numpy", inline="always")
def _first_throw(tables: AfterstateTables, rng: NDArray[np.uint64], card: Any) -> Any:
    """Throw five dice until nothing is won, so that there is something to decide.

    A game won by its very first throw has no decision to learn from.
    """
    throw = _roll(tables, rng, 0)
    while _is_won(tables, card, throw, 1, 0):
        throw = _roll(tables, rng, 0)
    return throw


@kernel(error_model="numpy")
def start_games(tables: AfterstateTables, rng: NDArray[np.uint64], random_start: float, games: Games) -> None:
    """Start every game with a first throw, written to ``games``."""
    for game in range(len(games.card)):
        card = _start_card(tables, rng, random_start)
        throw = _first_throw(tables, rng, card)
        games.card[game], games.throw[game], games.number[game], games.kept[game] = card, throw, 1, 0


@kernel(error_model="numpy")
def collect_q(
    tables: AfterstateTables,
    values: NDArray[np.float32],
    closed: NDArray[np.float32],
    rng: NDArray[np.uint64],
    games: Games,
    num_steps: int,
    epsilon: float,
    random_start: float,
    trace: float,
    sums: NDArray[np.float32],
    counts: NDArray[np.float32],
) -> Any:
    """Play epsilon-greedily and add up the targets of the afterstates met.

    The target of an afterstate is the value of the best action after one throw of the dice, plus
    ``trace`` times what the following action's target says beyond its output (Watkins's Q(lambda):
    nothing where the following action was drawn at random).

    Args:
        tables: The rules.
        values: (R, 421) float32, the outputs.
        closed: (K,) float32.
        rng: (1,) uint64, advanced.
        games: Advanced.
        num_steps: Decisions in each game.
        epsilon: The chance of an action drawn uniformly.
        random_start: The chance that a game that ended is followed by one from any card.
        trace: Lambda, 0 for one-step targets.
        sums: (R, 421) float32; targets are added.
        counts: (R, 421) float32; how many they were is added.

    Returns:
        How many games ended.
    """
    ended = 0
    rows = np.empty(num_steps, dtype=np.int64)
    columns = np.empty(num_steps, dtype=np.int64)
    targets = np.empty(num_steps)
    is_last = np.empty(num_steps, dtype=np.bool_)
    is_random = np.empty(num_steps, dtype=np.bool_)
    for game in range(len(games.card)):
        card = np.int64(games.card[game])
        throw = np.int64(games.throw[game])
        number = np.int64(games.number[game])
        kept = np.int64(games.kept[game])
        served = _served(tables, number, kept)
        _, keep, box = _best(tables, values, closed, card, throw, number, kept, served)
        for step in range(num_steps):
            is_random[step] = _uniform(rng) < epsilon
            if is_random[step]:
                keep, box = _random_action(tables, rng, card, throw, number, kept)
            if keep >= 0:
                rows[step], columns[step] = card, (number - 1) * NUM_PARTIAL_KEEPS + keep
                number += 1
                kept = keep
            else:
                card = _successor(tables, card, throw, served, box)
                rows[step], columns[step] = card, CLOSED
                number, kept = np.int64(1), np.int64(0)
            targets[step] = 0.0
            is_last[step] = card >= tables.num_rows
            if not is_last[step]:
                throw = _roll(tables, rng, kept)
                if _is_won(tables, card, throw, number, kept):
                    targets[step] = tables.win_points
                    is_last[step] = True
            if is_last[step]:
                ended += 1
                card = _start_card(tables, rng, random_start)
                number, kept = np.int64(1), np.int64(0)
                throw = _first_throw(tables, rng, card)
            served = _served(tables, number, kept)
            value, keep, box = _best(tables, values, closed, card, throw, number, kept, served)
            if not is_last[step]:
                targets[step] = value
        beyond = 0.0
        for back in range(num_steps):
            step = num_steps - 1 - back
            row, column = rows[step], columns[step]
            if is_last[step]:
                beyond = 0.0
            if row < tables.num_rows:
                target = targets[step] + trace * beyond
                sums[row, column] += np.float32(target)
                counts[row, column] += np.float32(1.0)
                beyond = 0.0 if is_random[step] else target - values[row, column]
            else:
                beyond = 0.0
        games.card[game], games.throw[game] = card, throw
        games.number[game], games.kept[game] = number, kept
    return ended


class Decisions(NamedTuple):
    """Decisions and what followed, one row per game and one column per step.

    Attributes:
        card: (games, steps) int32; with the next three, what was to be decided (``Games``).
        throw: (games, steps) int16.
        number: (games, steps) int16.
        kept: (games, steps) int16.
        row: (games, steps) int32, row of the afterstate of the action taken, ``R`` for a complete card.
        column: (games, steps) int16, its output.
        target: (games, steps) float32, what the afterstate turned out to be worth, in points.
    """

    card: NDArray[np.int32]
    throw: NDArray[np.int16]
    number: NDArray[np.int16]
    kept: NDArray[np.int16]
    row: NDArray[np.int32]
    column: NDArray[np.int16]
    target: NDArray[np.float32]


@kernel(error_model="numpy", inline="always")
def _actions(
    tables: AfterstateTables,
    card: Any,
    throw: Any,
    number: Any,
    kept: Any,
    served: Any,
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    pays: NDArray[np.float32],
) -> Any:
    """Write the afterstate and the points of every legal action; return how many there are.

    Keeps come first, in rising order, then boxes. All complete cards are row ``R``.
    """
    count = 0
    if number < 3:
        first = (number - 1) * NUM_PARTIAL_KEEPS
        pair = _pair(tables, throw, number, kept)
        for entry in range(tables.keep_start[pair], tables.keep_start[pair + 1]):
            rows[count] = card
            columns[count] = first + np.int64(tables.keep_list[entry])
            pays[count] = np.float32(0.0)
            count += 1
    status = tables.status[card]
    opened = tables.open_mask[card]
    for entry in range(tables.num_closable[card]):
        box = np.int64(tables.closable[card, entry])
        after = tables.class_of[opened & ~(1 << box), tables.next_status[status, served, throw, box]]
        row: Any = min(np.int64(after), tables.num_rows)
        rows[count] = row
        columns[count] = CLOSED
        pays[count] = tables.points[status, served, throw, box]
        count += 1
    return count


@kernel(error_model="numpy", inline="always")
def _probabilities(
    preferences: NDArray[np.float32],
    scale: float,
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    pays: NDArray[np.float32],
    count: Any,
    logarithms: NDArray[np.float32],
    probabilities: NDArray[np.float32],
) -> None:
    """Write the soft-max of ``scale`` times the points plus the preference of the afterstate."""
    top = np.float32(-np.inf)
    factor = np.float32(scale)
    for action in range(count):
        preference = factor * pays[action] + preferences[rows[action], columns[action]]
        logarithms[action] = preference
        top = max(top, preference)
    total = np.float32(0.0)
    for action in range(count):
        logarithms[action] -= top
        probabilities[action] = np.exp(logarithms[action])
        total += probabilities[action]
    share = np.float32(1.0) / total
    total = np.log(total)
    for action in range(count):
        probabilities[action] *= share
        logarithms[action] -= total


@kernel(error_model="numpy")
def collect_ppo(
    tables: AfterstateTables,
    preferences: NDArray[np.float32],
    scale: float,
    values: NDArray[np.float32],
    rng: NDArray[np.uint64],
    games: Games,
    epsilon: float,
    random_start: float,
    trace: float,
    decisions: Decisions,
) -> Any:
    """Play by the preferences and write every decision with its afterstate's target.

    The target of an afterstate is the expected value, over the policy's next action, after one
    throw of the dice, plus ``trace`` times what the following action's target says beyond its
    output (expected Sarsa with a lambda-return around it; nothing where the following action was
    drawn uniformly, so that the target is about the policy whatever the exploration).

    Args:
        tables: The rules.
        preferences: (R + 1, 421) float32, the actor's outputs and a row of zeros.
        scale: What a point counts in the preferences.
        values: (R + 1, 421) float32, the critic's outputs, in points, and a row of zeros.
        rng: (1,) uint64, advanced.
        games: Advanced.
        epsilon: The chance of an action drawn uniformly, not from the policy.
        random_start: The chance that a game that ended is followed by one from any card.
        trace: Lambda.
        decisions: Written.

    Returns:
        How many games ended.
    """
    num_steps = decisions.card.shape[1]
    ended = 0
    rows = np.empty(MAX_ACTIONS, dtype=np.int32)
    columns = np.empty(MAX_ACTIONS, dtype=np.int32)
    pays = np.empty(MAX_ACTIONS, dtype=np.float32)
    logarithms = np.empty(MAX_ACTIONS, dtype=np.float32)
    chances = np.empty(MAX_ACTIONS, dtype=np.float32)
    is_random = np.empty(num_steps, dtype=np.bool_)
    is_last = np.empty(num_steps, dtype=np.bool_)
    for game in range(len(games.card)):
        card = np.int64(games.card[game])
        throw = np.int64(games.throw[game])
        number = np.int64(games.number[game])
        kept = np.int64(games.kept[game])
        for step in range(num_steps + 1):
            served = _served(tables, number, kept)
            count = _actions(tables, card, throw, number, kept, served, rows, columns, pays)
            _probabilities(preferences, scale, rows, columns, pays, count, logarithms, chances)
            if step > 0 and not is_last[step - 1]:
                expected = np.float32(0.0)
                for action in range(count):
                    expected += chances[action] * (pays[action] + values[rows[action], columns[action]])
                decisions.target[game, step - 1] = expected
            if step == num_steps:
                break
            decisions.card[game, step], decisions.throw[game, step] = card, throw
            decisions.number[game, step], decisions.kept[game, step] = number, kept
            is_random[step] = _uniform(rng) < epsilon
            action = 0
            if is_random[step]:
                action = _below(rng, count)
            else:
                drawn = np.float32(_uniform(rng))
                while action < count - 1 and drawn >= chances[action]:
                    drawn -= chances[action]
                    action += 1
            decisions.row[game, step] = rows[action]
            decisions.column[game, step] = columns[action]
            if columns[action] < CLOSED:
                kept = np.int64(columns[action]) - (number - 1) * NUM_PARTIAL_KEEPS
                number += 1
            else:
                card = np.int64(rows[action])
                number, kept = np.int64(1), np.int64(0)
            is_last[step] = card >= tables.num_rows
            decisions.target[game, step] = 0.0
            if not is_last[step]:
                throw = _roll(tables, rng, kept)
                if _is_won(tables, card, throw, number, kept):
                    decisions.target[game, step] = tables.win_points
                    is_last[step] = True
            if is_last[step]:
                ended += 1
                card = _start_card(tables, rng, random_start)
                number, kept = np.int64(1), np.int64(0)
                throw = _first_throw(tables, rng, card)
        games.card[game], games.throw[game] = card, throw
        games.number[game], games.kept[game] = number, kept
        beyond = 0.0
        for back in range(num_steps):
            step = num_steps - 1 - back
            if is_last[step]:
                beyond = 0.0
            target = decisions.target[game, step] + trace * beyond
            decisions.target[game, step] = target
            beyond = 0.0
            if not is_random[step]:
                beyond = target - values[decisions.row[game, step], decisions.column[game, step]]
    return ended


@kernel(error_model="numpy")
def value_gradient(
    values: NDArray[np.float32],
    decisions: Decisions,
    first: int,
    last: int,
    factor: float,
    gradient: NDArray[np.float32],
) -> Any:
    """Add the gradient of ``factor`` times the mean squared error of afterstates to ``gradient``.

    Args:
        values: (R + 1, 421) float32.
        decisions: Of these, games ``first`` to ``last`` - 1 count.
        first: See above.
        last: See above.
        factor: What the mean is multiplied by.
        gradient: (R + 1, 421) float32; row ``R`` gets what complete cards would.

    Returns:
        The mean squared error, in squared points.
    """
    num_steps = decisions.card.shape[1]
    weight = np.float32(2.0 * factor / ((last - first) * num_steps))
    total = 0.0
    for game in range(first, last):
        for step in range(num_steps):
            row, column = decisions.row[game, step], decisions.column[game, step]
            error = values[row, column] - decisions.target[game, step]
            gradient[row, column] += weight * error
            total += error * error
    return total / ((last - first) * num_steps)


@kernel(error_model="numpy")
def policy_gradient(
    tables: AfterstateTables,
    preferences: NDArray[np.float32],
    scale: float,
    old_preferences: NDArray[np.float32],
    old_scale: float,
    values: NDArray[np.float32],
    decisions: Decisions,
    first: int,
    last: int,
    clip: float,
    entropy_price: float,
    gradient: NDArray[np.float32],
) -> Any:
    """Add the gradient of PPO's clipped surrogate, summed over all legal actions, to ``gradient``.

    The loss is the mean over decisions of minus the sum over actions of ``min(p A, clip(p / q, 1 - c,
    1 + c) q A)``, less ``entropy_price`` times the entropy of p, where q are the probabilities that
    collected and A is the points and the critic's output of the afterstate less their mean under q.

    Args:
        tables: The rules.
        preferences: (R + 1, 421) float32, of the actor that learns, with a row of zeros.
        scale: What a point counts in them.
        old_preferences: (R + 1, 421) float32, of the actor that collected.
        old_scale: What a point counts in them.
        values: (R + 1, 421) float32, of the critic that collected, in points.
        decisions: Of these, games ``first`` to ``last`` - 1 count.
        first: See above.
        last: See above.
        clip: How far the ratio of probabilities may go from 1.
        entropy_price: In points per nat.
        gradient: (R + 1, 421) float32; row ``R`` gets what complete cards would.

    Returns:
        The gradient of ``scale``, the loss, the mean entropy, the share of probability clipped.
    """
    num_steps = decisions.card.shape[1]
    rows = np.empty(MAX_ACTIONS, dtype=np.int32)
    columns = np.empty(MAX_ACTIONS, dtype=np.int32)
    pays = np.empty(MAX_ACTIONS, dtype=np.float32)
    new = np.empty(MAX_ACTIONS, dtype=np.float32)
    old = np.empty(MAX_ACTIONS, dtype=np.float32)
    slope = np.empty(MAX_ACTIONS, dtype=np.float32)
    logarithms = np.empty(MAX_ACTIONS, dtype=np.float32)
    weight = np.float32(1.0 / ((last - first) * num_steps))
    low, high, price = np.float32(1.0 - clip), np.float32(1.0 + clip), np.float32(entropy_price)
    total_scale: Any = 0.0
    total_loss: Any = 0.0
    total_entropy: Any = 0.0
    total_clipped: Any = 0.0
    for game in range(first, last):
        for step in range(num_steps):
            card = np.int64(decisions.card[game, step])
            throw = np.int64(decisions.throw[game, step])
            number = np.int64(decisions.number[game, step])
            kept = np.int64(decisions.kept[game, step])
            served = _served(tables, number, kept)
            count = _actions(tables, card, throw, number, kept, served, rows, columns, pays)
            _probabilities(old_preferences, old_scale, rows, columns, pays, count, logarithms, old)
            _probabilities(preferences, scale, rows, columns, pays, count, logarithms, new)
            expected = np.float32(0.0)
            for action in range(count):
                slope[action] = pays[action] + values[rows[action], columns[action]]
                expected += old[action] * slope[action]
            mean = np.float32(0.0)
            for action in range(count):
                advantage = slope[action] - expected
                bound = (high if advantage > 0.0 else low) * old[action]
                is_clipped = (new[action] - bound) * advantage > 0.0
                # The derivative by the probability of the action.
                by_surrogate = np.float32(0.0) if is_clipped else -advantage
                total_loss -= advantage * (bound if is_clipped else new[action])
                if is_clipped:
                    total_clipped += old[action]
                total_entropy -= new[action] * logarithms[action]
                slope[action] = by_surrogate + price * logarithms[action]
                mean += new[action] * slope[action]
            by_scale = np.float32(0.0)
            for action in range(count):
                change = weight * new[action] * (slope[action] - mean)
                gradient[rows[action], columns[action]] += change
                by_scale += change * pays[action]
            total_scale += by_scale
    number_of = (last - first) * num_steps
    return (
        total_scale,
        (total_loss - entropy_price * total_entropy) / number_of,
        total_entropy / number_of,
        total_clipped / number_of,
    )


@kernel(error_model="numpy")
def action_outputs(
    tables: AfterstateTables,
    keep_of_mask: NDArray[np.int16],
    class_of_card: NDArray[np.int32],
    outputs: NDArray[np.float32],
    scale: float,
    card: NDArray[np.int64],
    throw: NDArray[np.int64],
    number: NDArray[np.int64],
    served: NDArray[np.int64],
    masks: NDArray[np.bool_],
    written: NDArray[np.float32],
) -> None:
    """Write ``scale`` times the points of every allowed action plus the output of its afterstate.

    Args:
        tables: The rules.
        keep_of_mask: (252, 32) int16.
        class_of_card: (C,) int32.
        outputs: (R + 1, 421) float32, with a row of zeros.
        scale: What a point counts: 1 for values.
        card: (batch,) int64, with the next three the fields of a ``TurnBatch``.
        throw: (batch,) int64.
        number: (batch,) int64.
        served: (batch,) int64.
        masks: (batch, num_actions) bool, the allowed actions.
        written: (batch, num_actions) float32, written; ``-inf`` where not allowed.
    """
    num_keeps = keep_of_mask.shape[1] - 1
    factor = np.float32(scale)
    for state in range(len(card)):
        row = np.int64(class_of_card[card[state]])
        first = (number[state] - 1) * NUM_PARTIAL_KEEPS
        status = tables.status[row]
        for action in range(masks.shape[1]):
            output = np.float32(-np.inf)
            if masks[state, action]:
                if action < num_keeps:
                    output = outputs[row, first + np.int64(keep_of_mask[throw[state], action])]
                else:
                    box = action - num_keeps
                    after = _successor(tables, row, throw[state], served[state], box)
                    points = tables.points[status, served[state], throw[state], box]
                    output = factor * points + outputs[min(after, tables.num_rows), CLOSED]
            written[state, action] = output


@kernel(error_model="numpy")
def table_update(
    values: NDArray[np.float32],
    weights: NDArray[np.float32],
    sums: NDArray[np.float32],
    counts: NDArray[np.float32],
    retention: float,
) -> None:
    """Move a table towards targets: each entry is the mean of its targets, older ones counting less.

    Args:
        values: (R, 421) float32, updated.
        weights: (R, 421) float32, updated; the weight of what ``values`` holds.
        sums: (R, 421) float32, targets added up, in points.
        counts: (R, 421) float32, how many they were.
        retention: What older targets' weight is multiplied by.
    """
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            weight = np.float32(retention) * weights[row, column] + counts[row, column]
            if counts[row, column] > 0.0:
                error = sums[row, column] - counts[row, column] * values[row, column]
                values[row, column] += error / weight
            weights[row, column] = weight
