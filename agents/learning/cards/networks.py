"""Networks that see the card and price every keep of a turn at once.

A card network reads one class of cards, its open boxes and its status, and gives the 421 outputs of
``tables``. All cards of a variant are one batch of a few thousand rows, so that a pass of the
network prices everything a game can meet, and acting is looking up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.func import functional_call

from agents.learning.cards.tables import CLOSED, NUM_OUTPUTS


@dataclass(frozen=True)
class CardNetworkSettings:
    """The shape of a card network.

    Attributes:
        widths: Units of the hidden layers, ReLU.
        is_relative: Whether the outputs of keeps are differences to that of the closed card.
        has_skip: Whether a linear map from the input is added to the outputs.
        output_scale: Points that one unit of the network's output stands for.
    """

    widths: tuple[int, ...] = (128, 128)
    is_relative: bool = True
    has_skip: bool = False
    output_scale: float = 20.0


class CardNetwork(nn.Module):
    """From what a card shows to its outputs.

    Args:
        num_features: Columns of the input.
        settings: The shape.
        generator: Draws the initial weights.
    """

    def __init__(self, num_features: int, settings: CardNetworkSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        sizes = (num_features, *settings.widths)
        self.hidden = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(sizes))
        self.head = nn.Linear(sizes[-1], NUM_OUTPUTS)
        self.skip = nn.Linear(num_features, NUM_OUTPUTS, bias=False) if settings.has_skip else None
        with torch.no_grad():
            for layer in self.hidden:
                assert isinstance(layer, nn.Linear)
                bound = (6.0 / layer.in_features) ** 0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
            # Small, so that learning starts from outputs near 0.
            bound = 0.1 * (3.0 / self.head.in_features) ** 0.5
            self.head.weight.uniform_(-bound, bound, generator=generator)
            self.head.bias.zero_()
            if self.skip is not None:
                self.skip.weight.zero_()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return the outputs, (rows, 421), in points, of (rows, features)."""
        hidden = features
        for layer in self.hidden:
            hidden = torch.relu(layer(hidden))
        outputs: torch.Tensor = self.head(hidden)
        if self.skip is not None:
            outputs = outputs + self.skip(features)
        if self.settings.is_relative:
            base = outputs[:, CLOSED:]
            outputs = torch.cat([outputs[:, :CLOSED] + base, base], dim=1)
        return outputs * self.settings.output_scale

    @torch.no_grad()
    def outputs_of(
        self, features: torch.Tensor, weights: Sequence[torch.Tensor] | None = None
    ) -> NDArray[np.float32]:
        """Return the outputs as an array, (rows, 421) float32.

        Args:
            features: (rows, features).
            weights: Weights to use in place of the network's, in the order of its parameters.
        """
        if weights is None:
            outputs: torch.Tensor = self(features)
        else:
            names = [name for name, _ in self.named_parameters()]
            outputs = functional_call(self, dict(zip(names, weights, strict=True)), (features,))
        return outputs.numpy()
