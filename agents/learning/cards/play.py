"""Choosing by a table of outputs: what a card learner has learned, ready to play."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agents.learning.cards.kernels import action_outputs
from agents.learning.cards.scoring import greedy_score
from agents.learning.cards.tables import CLOSED, NUM_OUTPUTS, AfterstateTables, afterstate_tables
from generala_env.rules.compiled import CompiledVariant, InstantWin, TurnBatch
from generala_env.rules.dice import KEEP_OF_MASK
from generala_env.solver.solo import solve_solo

_KEEP_OF_MASK = np.array(KEEP_OF_MASK)


def padded(outputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return outputs with a row of zeros at the end, that of complete cards."""
    return np.concatenate([outputs, np.zeros((1, outputs.shape[1]), dtype=np.float32)])


def closed_column(outputs: NDArray[np.float32], num_classes: int) -> NDArray[np.float32]:
    """Return the outputs of closed cards, (K,) float32, with 0 for complete ones."""
    closed = np.zeros(num_classes, dtype=np.float32)
    closed[: len(outputs)] = outputs[:, CLOSED]
    return closed


@dataclass(frozen=True, eq=False)
class CardPlay:
    """Actions ranked by their points and the output of the afterstate they lead to.

    Attributes:
        compiled: The variant's tables.
        outputs: (R, 421) float32; see ``tables``.
        point_scale: What a point counts beside the outputs: 1 where outputs are points to come.
        is_actor: Whether the ranks are preferences, whose soft-max actions can be drawn by.
    """

    compiled: CompiledVariant
    outputs: NDArray[np.float32]
    point_scale: float = 1.0
    is_actor: bool = False

    def __post_init__(self) -> None:
        """Check the shape.

        Raises:
            ValueError: There is not one row of outputs for each class of cards with an open box.
        """
        expected = (self._tables.num_rows, NUM_OUTPUTS)
        if self.outputs.shape != expected:
            raise ValueError(f"outputs: shape {self.outputs.shape} is not {expected}")

    @cached_property
    def _padded(self) -> NDArray[np.float32]:
        return padded(self.outputs)

    @cached_property
    def _class_of_card(self) -> NDArray[np.int32]:
        return np.array(self.compiled.class_of_card)  # writable, as all arrays of compiled loops are

    @property
    def _tables(self) -> AfterstateTables:
        # How an instant win is treated makes no difference to what an action leads to.
        return afterstate_tables(self.compiled)

    def values(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return what actions are ranked by.

        Args:
            batch: The decisions.
            action_masks: (batch, num_actions) bool, the allowed actions, all of them legal.

        Returns:
            (batch, num_actions) float32, ``-inf`` where not allowed.
        """
        written = np.empty(action_masks.shape, dtype=np.float32)
        action_outputs(
            self._tables,
            _KEEP_OF_MASK,
            self._class_of_card,
            self._padded,
            self.point_scale,
            np.array(batch.card, dtype=np.int64),
            np.array(batch.throw, dtype=np.int64),
            np.array(batch.throw_number, dtype=np.int64),
            np.array(batch.served, dtype=np.int64),
            np.array(action_masks, dtype=np.bool_, order="C"),
            written,
        )
        return written

    def best_actions(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the best allowed action of every decision, (batch,) int64."""
        actions: NDArray[np.int64] = self.values(batch, action_masks).argmax(axis=1)
        return actions

    def probabilities(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return how probable each action is, (batch, num_actions) float64, 0 where not allowed.

        Where the ranks are no preferences, everything lies on the best action.
        """
        values = self.values(batch, action_masks).astype(np.float64)
        if not self.is_actor:
            chances = np.zeros_like(values)
            chances[np.arange(len(values)), values.argmax(axis=1)] = 1.0
            return chances
        chances = np.exp(values - values.max(axis=1, keepdims=True))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def drawn_actions(
        self, batch: TurnBatch, action_masks: NDArray[np.bool_], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return an action drawn by the probabilities, (batch,) int64, from (batch,) numbers in [0, 1)."""
        summed = self.probabilities(batch, action_masks).cumsum(axis=1)
        above = summed > (uniforms * summed[:, -1])[:, None]
        actions: NDArray[np.int64] = (above & action_masks).argmax(axis=1)
        return actions

    def value_errors(self, instant_win: InstantWin = "play_on") -> dict[str, float]:
        """Compare outputs that stand for points to come with what afterstates are worth in optimal play.

        The optimum judges; nothing is learned from it. The closed empty card, which no decision leads to,
        is left out.

        Returns:
            In points, over all afterstates alike: ``keep_rms_error``, ``keep_mean_error`` and the same
            of closed cards.
        """
        solution = solve_solo(self.compiled, instant_win=instant_win)
        rows = len(self.outputs)
        keeps = self.outputs[:, :CLOSED] - solution.class_keep_values[:rows].reshape(rows, CLOSED)
        closed = (self.outputs[:, CLOSED] - solution.class_values[:rows])[1:]
        found = {}
        for kind, errors in (("keep", keeps), ("closed", closed)):
            found[f"{kind}_rms_error"] = float(np.sqrt(np.square(errors).mean()))
            found[f"{kind}_mean_error"] = float(errors.mean())
        return found

    def exact_score(self, instant_win: InstantWin = "play_on") -> float:
        """Return the exact mean score of always taking the best action, in a second.

        Among equal actions it takes the keep of lowest index, ``best_actions`` that of the lowest id.
        """
        tables = afterstate_tables(self.compiled, instant_win)
        # Greedy play is the same in any unit, so what counts in preferences is turned to points.
        values = self.outputs / np.float32(self.point_scale)
        return greedy_score(tables, values, closed_column(values, len(tables.status)))
