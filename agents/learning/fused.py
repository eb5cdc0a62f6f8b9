"""PPO's update of a plain actor and critic, differentiated by hand.

For networks of linear layers with tanh or rectified units, this does what autograd and
``torch.optim.Adam`` would do, without their work for each small tensor: weights, gradients and
Adam's moments lie in one flat array each, the loss and its gradient are one pass over the legal
actions, and Adam is one over the weights. The results agree with autograd's to
rounding, which the tests check for gradients and for whole trainings.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from torch import nn

from agents.learning.networks import MaskedActorCriticPolicy, MultisetKeepPolicy, ThrowFeatures
from generala_env.compiling import kernel

LOSS, POLICY_LOSS, VALUE_LOSS, ENTROPY_LOSS, APPROX_KL, CLIP_FRACTION = range(6)
"""Places of a minibatch's metrics: the loss, its parts, the divergence and the share of clipped ratios."""

NUM_METRICS: Final = 6


@kernel(error_model="numpy")
def _loss_and_gradients(
    rows: Any,
    scores: Any,
    values: Any,
    outputs: Any,
    throws: Any,
    masks: Any,
    actions: Any,
    old_log_probs: Any,
    advantages: Any,
    returns: Any,
    old_values: Any,
    normalize: Any,
    clip_range: Any,
    clip_range_vf: Any,
    ent_coef: Any,
    vf_coef: Any,
    score_gradients: Any,
    value_gradients: Any,
    metrics: Any,
) -> None:
    """Write the metrics of a minibatch and the gradients of its loss.

    With ``p`` the masked softmax, ``H`` its entropy, ``A`` the advantage and ``r`` the ratio to the
    policy that acted, over a batch of ``N``: the derivative of the loss by the score of action ``j`` is
    ``g (1[j = a] - p_j) + ent_coef / N p_j (log p_j + H)`` with ``g = -A r / N`` where the clipped
    surrogate is not below the other, else 0.

    Args:
        rows: (batch,) int64, the minibatch as rows of the arrays from ``throws`` to ``old_values``.
        scores: (batch, num_outputs) float32, the actor's last layer.
        values: (batch, 1) float32, the critic's.
        outputs: (252 or 1, num_actions) int64, which output scores an action, by throw.
        throws: (size,) int64, 0 where ``outputs`` has one row.
        masks: (size, num_actions) bool.
        actions: (size,) int64.
        old_log_probs: (size,) float32.
        advantages: (size,) float32.
        returns: (size,) float32.
        old_values: (size,) float32.
        normalize: Whether to bring the advantages to mean 0 and deviation 1.
        clip_range: How far the ratio may move.
        clip_range_vf: How far the value may move; negative for any distance.
        ent_coef: Weight of the entropy.
        vf_coef: Weight of the value's loss.
        score_gradients: (batch, num_outputs) float32, written.
        value_gradients: (batch, 1) float32, written.
        metrics: (6,) float64, written.
    """
    batch = rows.shape[0]
    num_actions = masks.shape[1]
    mean, scale = 0.0, 1.0
    if normalize:
        total = 0.0
        for i in range(batch):
            total += advantages[rows[i]]
        mean = total / batch
        total = 0.0
        for i in range(batch):
            total += (advantages[rows[i]] - mean) ** 2
        # The unbiased deviation, as torch's std.
        scale = 1.0 / (np.sqrt(total / (batch - 1)) + 1e-8)
    policy_loss = value_loss = entropy_sum = kl_sum = clipped_sum = 0.0
    logs = np.empty(num_actions, dtype=np.float32)
    legal = np.empty(num_actions, dtype=np.int64)
    for i in range(batch):
        row = rows[i]
        throw = throws[row]
        action = actions[row]
        count = 0
        best = np.float32(-np.inf)
        chosen = 0
        for j in range(num_actions):
            if masks[row, j]:
                score = scores[i, outputs[throw, j]]
                if j == action:
                    chosen = count
                legal[count] = j
                logs[count] = score
                best = max(best, score)
                count += 1
        sum_exp = np.float32(0.0)
        for k in range(count):
            sum_exp += np.exp(logs[k] - best)
        shift = best + np.log(sum_exp)
        entropy = 0.0
        for k in range(count):
            logs[k] -= shift
            entropy -= np.exp(logs[k]) * logs[k]
        advantage = (advantages[row] - mean) * scale
        log_ratio = logs[chosen] - old_log_probs[row]
        ratio = np.exp(log_ratio)
        clipped = min(max(ratio, 1.0 - clip_range), 1.0 + clip_range)
        gradient = 0.0
        if advantage * ratio <= advantage * clipped:
            policy_loss -= advantage * ratio
            gradient = -advantage * ratio / batch
        else:
            policy_loss -= advantage * clipped
        entropy_sum += entropy
        kl_sum += ratio - 1.0 - log_ratio
        clipped_sum += abs(ratio - 1.0) > clip_range
        for j in range(score_gradients.shape[1]):
            score_gradients[i, j] = 0.0
        weight = ent_coef / batch
        for k in range(count):
            prob = np.exp(logs[k])
            part = prob * (weight * (logs[k] + entropy) - gradient)
            if k == chosen:
                part += gradient
            score_gradients[i, outputs[throw, legal[k]]] += part
        value = values[i, 0]
        moves = True
        if clip_range_vf >= 0.0:
            change = value - old_values[row]
            moves = abs(change) <= clip_range_vf
            value = old_values[row] + min(max(change, -clip_range_vf), clip_range_vf)
        error = value - returns[row]
        value_loss += error * error
        value_gradients[i, 0] = vf_coef * 2.0 * error / batch if moves else 0.0
    metrics[POLICY_LOSS] = policy_loss / batch
    metrics[VALUE_LOSS] = value_loss / batch
    metrics[ENTROPY_LOSS] = -entropy_sum / batch
    metrics[APPROX_KL] = kl_sum / batch
    metrics[CLIP_FRACTION] = clipped_sum / batch
    metrics[LOSS] = metrics[POLICY_LOSS] + ent_coef * metrics[ENTROPY_LOSS] + vf_coef * metrics[VALUE_LOSS]


@kernel(error_model="numpy")
def _throw_loss_and_gradients(
    rows: Any, values: Any, returns: Any, made: Any, vf_coef: Any, value_gradients: Any
) -> Any:
    """Write the gradients of the loss of the afterstates' values, and return that loss.

    Args:
        rows: (batch,) int64, the minibatch as rows of the next two.
        values: (batch, 1) float32, the critic's.
        returns: (size,) float32.
        made: (size,) float32, 0 where no throw followed.
        vf_coef: Weight of the loss.
        value_gradients: (batch, 1) float32, written.
    """
    batch = rows.shape[0]
    total = 0.0
    for i in range(batch):
        error = made[rows[i]] * (values[i, 0] - returns[rows[i]])
        total += error * error
        value_gradients[i, 0] = vf_coef * 2.0 * error / batch
    return total / batch


@kernel(fastmath={"reassoc", "contract"})
def _sum_of_squares(gradients: Any) -> Any:
    """Return the sum of the squares of a float32 array."""
    total = np.float32(0.0)
    for i in range(gradients.shape[0]):
        total += gradients[i] * gradients[i]
    return total


@kernel(error_model="numpy")
def _adam(
    weights: Any,
    gradients: Any,
    first: Any,
    second: Any,
    step: Any,
    learning_rate: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    scale: Any,
) -> None:
    """Take one step of Adam with scaled gradients.

    D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization" (2015), algorithm 1, with
    the bias corrections applied as in ``torch.optim.Adam``.

    Args:
        weights: (size,) float32, updated.
        gradients: (size,) float32.
        first: (size,) float32, Adam's first moment, updated.
        second: (size,) float32, Adam's second moment, updated.
        step: The number of this step, from 1.
        learning_rate: Step size.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        eps: Added to the denominator.
        scale: What the gradients are multiplied by.
    """
    factor = np.float32(scale)
    size = np.float32(learning_rate / (1.0 - beta1**step))
    correction = np.float32(1.0 / np.sqrt(1.0 - beta2**step))
    keep1, keep2 = np.float32(beta1), np.float32(beta2)
    new1, new2 = np.float32(1.0 - beta1), np.float32(1.0 - beta2)
    small = np.float32(eps)
    for i in range(weights.shape[0]):
        gradient = gradients[i] * factor
        first[i] = keep1 * first[i] + new1 * gradient
        second[i] = keep2 * second[i] + new2 * gradient * gradient
        weights[i] -= size * first[i] / (np.sqrt(second[i]) * correction + small)


def _layers_of(network: nn.Module) -> tuple[list[nn.Linear], type[nn.Module] | None] | None:
    """Return the linear layers of a stack and the units between them; ``None`` for other networks."""
    assert isinstance(network, nn.Sequential)
    modules = list(network)
    linears, units = modules[::2], modules[1::2]
    kinds = {type(unit) for unit in units}
    if len(linears) != len(units) or not kinds <= {nn.Tanh, nn.ReLU} or len(kinds) > 1:
        return None
    plain = [layer for layer in linears if type(layer) is nn.Linear and layer.bias is not None]
    if len(plain) != len(linears):
        return None
    return plain, next(iter(kinds), None)


def can_fuse(policy: nn.Module) -> bool:
    """Tell whether a policy is one whose update is known here, on a CPU, with plain Adam."""
    if type(policy) not in (MaskedActorCriticPolicy, MultisetKeepPolicy):
        return False
    assert isinstance(policy, MaskedActorCriticPolicy)
    extractor = policy.mlp_extractor
    optimizer = policy.optimizer
    options = optimizer.param_groups[0]
    return (
        policy.device.type == "cpu"
        and policy.share_features_extractor
        and type(policy.features_extractor) in (FlattenExtractor, ThrowFeatures)
        and type(extractor) is MlpExtractor
        and _layers_of(extractor.policy_net) is not None
        and _layers_of(extractor.value_net) is not None
        and type(optimizer) is torch.optim.Adam
        and len(optimizer.param_groups) == 1
        and not options["amsgrad"]
        and not options["maximize"]
        and options["weight_decay"] == 0
        and all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    )


class _Network:
    """The layers of actor or critic as views of the flat arrays, with room for a batch."""

    def __init__(self, layers: list[nn.Linear], unit: type[nn.Module] | None) -> None:
        self.layers = layers
        self.is_tanh = unit is nn.Tanh
        self.weights: list[torch.Tensor] = []
        self.biases: list[torch.Tensor] = []
        self.weight_gradients: list[torch.Tensor] = []
        self.bias_gradients: list[torch.Tensor] = []

    def make_room(self, batch: int) -> None:
        """Allocate what a pass over ``batch`` rows writes."""
        widths = [layer.out_features for layer in self.layers]
        self.outputs = [torch.empty(batch, width) for width in widths]
        self.gradients = [torch.empty(batch, width) for width in widths]

    def forward(self, features: torch.Tensor) -> None:
        """Fill ``outputs``."""
        inputs = features
        last = len(self.layers) - 1
        for index, output in enumerate(self.outputs):
            torch.addmm(self.biases[index], inputs, self.weights[index].t(), out=output)
            if index < last:
                if self.is_tanh:
                    output.tanh_()
                else:
                    output.relu_()
            inputs = output

    def backward(self, features: torch.Tensor) -> None:
        """Fill the gradients of the weights from the last of ``gradients``."""
        for index in range(len(self.layers) - 1, -1, -1):
            gradient = self.gradients[index]
            inputs = self.outputs[index - 1] if index else features
            torch.mm(gradient.t(), inputs, out=self.weight_gradients[index])
            torch.sum(gradient, 0, out=self.bias_gradients[index])
            if index:
                below = self.gradients[index - 1]
                torch.mm(gradient, self.weights[index], out=below)
                if self.is_tanh:
                    torch.ops.aten.tanh_backward.grad_input(below, inputs, grad_input=below)
                else:
                    torch.ops.aten.threshold_backward.grad_input(below, inputs, 0, grad_input=below)


class FusedUpdate:
    """One update of a policy: minibatch after minibatch on flat copies, written back at the end."""

    def __init__(self, policy: MaskedActorCriticPolicy) -> None:
        """Find the layers.

        Args:
            policy: One for which ``can_fuse`` is true.
        """
        self.policy = policy
        parts = []
        for stack, head in (
            (policy.mlp_extractor.policy_net, policy.action_net),
            (policy.mlp_extractor.value_net, policy.value_net),
        ):
            found = _layers_of(stack)
            assert found is not None
            assert isinstance(head, nn.Linear)
            parts.append(_Network([*found[0], head], found[1]))
        self.actor, self.critic = parts
        self.num_actions = int(policy.action_space.n)  # type: ignore[attr-defined]
        if isinstance(policy, MultisetKeepPolicy):
            self.outputs: NDArray[np.int64] = policy.gather_keeps.outputs.numpy()
        else:
            self.outputs = np.arange(self.num_actions, dtype=np.int64)[None]
        parameters: list[nn.Parameter] = [
            parameter
            for network in parts
            for layer in network.layers
            for parameter in (layer.weight, layer.bias)
            if isinstance(parameter, nn.Parameter)
        ]
        self.parameters = parameters
        size = sum(parameter.numel() for parameter in parameters)
        self.weights, self.gradients, self.first, self.second = (torch.zeros(size) for _ in range(4))
        self.steps = 0
        start = 0
        self._slices = []
        for network in parts:
            for layer in network.layers:
                for parameter, views, gradients in (
                    (layer.weight, network.weights, network.weight_gradients),
                    (layer.bias, network.biases, network.bias_gradients),
                ):
                    stop = start + parameter.numel()
                    self._slices.append(slice(start, stop))
                    views.append(self.weights[start:stop].view_as(parameter))
                    gradients.append(self.gradients[start:stop].view_as(parameter))
                    start = stop
        self._size_of_room = -1

    def begin(
        self, observations: NDArray[np.float32], afterstates: NDArray[np.float32] | None = None
    ) -> None:
        """Take the weights, the moments of Adam, and the decisions to learn from.

        Args:
            observations: (size, width) float32.
            afterstates: (size, width) float32, the afterstates on which throws followed, if
                the critic learns their values too.
        """
        state = self.policy.optimizer.state
        with torch.no_grad():
            for where, parameter in zip(self._slices, self.parameters, strict=True):
                self.weights[where] = parameter.flatten()
                moments = state.get(parameter)
                if moments:
                    self.first[where] = moments["exp_avg"].flatten()
                    self.second[where] = moments["exp_avg_sq"].flatten()
                    self.steps = int(moments["step"])
        group = self.policy.optimizer.param_groups[0]
        self.learning_rate = float(group["lr"])
        self.betas = group["betas"]
        self.eps = float(group["eps"])
        if isinstance(self.policy, MultisetKeepPolicy):
            self.throws = self.policy.gather_keeps.read_throw(torch.from_numpy(observations))
        else:
            self.throws = torch.zeros(len(observations), dtype=torch.int64)
        extractor = self.policy.features_extractor
        self.dice_table = extractor.dice_table if isinstance(extractor, ThrowFeatures) else None
        self.inputs: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        for array in (observations, afterstates):
            if array is not None:
                tensor = torch.from_numpy(array)
                codes = extractor.read_throw.code(tensor) if isinstance(extractor, ThrowFeatures) else None
                self.inputs.append((tensor, codes))

    def named_gradients(self) -> list[tuple[nn.Parameter, torch.Tensor]]:
        """Return every parameter with the gradient last computed for it."""
        return [
            (parameter, self.gradients[where].view_as(parameter))
            for where, parameter in zip(self._slices, self.parameters, strict=True)
        ]

    def _read(self, rows: NDArray[np.int64]) -> torch.Tensor:
        """Return the features of a minibatch, those of afterstates last; room is made where it is new."""
        batch, size = len(rows), len(rows) * len(self.inputs)
        if batch != self._size_of_room:
            self._features = torch.empty(size, self.actor.layers[0].in_features)
            self.actor.make_room(batch)
            self.critic.make_room(size)
            self._size_of_room = batch
        chosen = torch.from_numpy(rows)
        for (observations, codes), features in zip(
            self.inputs, torch.split(self._features, batch), strict=True
        ):
            width = observations.shape[1]
            if self.dice_table is None or codes is None:
                torch.index_select(observations, 0, chosen, out=features)
            else:
                features[:, :width] = observations.index_select(0, chosen)
                features[:, width:] = self.dice_table.index_select(0, codes.index_select(0, chosen))
        return self._features

    def gradients_of(
        self,
        rows: NDArray[np.int64],
        arrays: tuple[NDArray[Any], ...],
        *,
        normalize: bool,
        clip_range: float,
        clip_range_vf: float | None,
        ent_coef: float,
        vf_coef: float,
        throws: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    ) -> NDArray[np.float64]:
        """Compute the gradients of a minibatch into ``gradients``.

        Args:
            rows: (batch,) int64.
            arrays: Masks, actions, old log probabilities, advantages, returns and old values of all
                decisions, as ``_loss_and_gradients`` takes them.
            normalize: See there, like the others.
            clip_range: How far the ratio may move.
            clip_range_vf: How far the value may move; ``None`` for any distance.
            ent_coef: Weight of the entropy.
            vf_coef: Weight of the value's loss.
            throws: What the values of afterstates are to be, and 1 where there was a throw; given if
                ``begin`` was told of throws.

        Returns:
            (6,) float64, the metrics.
        """
        batch = len(rows)
        features = self._read(rows)
        self.actor.forward(features[:batch])
        self.critic.forward(features)
        values, value_gradients = self.critic.outputs[-1].numpy(), self.critic.gradients[-1].numpy()
        masks, actions, old_log_probs, advantages, returns, old_values = arrays
        metrics = np.empty(NUM_METRICS)
        _loss_and_gradients(
            rows,
            self.actor.outputs[-1].numpy(),
            values[:batch],
            self.outputs,
            self.throws.numpy(),
            masks,
            actions,
            old_log_probs,
            advantages,
            returns,
            old_values,
            normalize,
            clip_range,
            -1.0 if clip_range_vf is None else clip_range_vf,
            ent_coef,
            vf_coef,
            self.actor.gradients[-1].numpy(),
            value_gradients[:batch],
            metrics,
        )
        if throws is not None:
            loss = _throw_loss_and_gradients(rows, values[batch:], *throws, vf_coef, value_gradients[batch:])
            metrics[VALUE_LOSS] += loss
            metrics[LOSS] += vf_coef * loss
        self.actor.backward(features[:batch])
        self.critic.backward(features)
        return metrics

    def norm(self) -> float:
        """Return the norm of the gradients last computed, over all weights."""
        return math.sqrt(_sum_of_squares(self.gradients.numpy()))

    def step(self, scale: float = 1.0) -> None:
        """Move the weights along the gradients times ``scale``."""
        self.steps += 1
        _adam(
            self.weights.numpy(),
            self.gradients.numpy(),
            self.first.numpy(),
            self.second.numpy(),
            self.steps,
            self.learning_rate,
            self.betas[0],
            self.betas[1],
            self.eps,
            scale,
        )

    def write_back(self) -> None:
        """Give the policy and its optimizer the new weights and moments."""
        state = self.policy.optimizer.state
        with torch.no_grad():
            for where, parameter in zip(self._slices, self.parameters, strict=True):
                parameter.copy_(self.weights[where].view_as(parameter))
                moments = state[parameter]
                if not moments:
                    moments["step"] = torch.zeros(())
                    moments["exp_avg"] = torch.empty_like(parameter)
                    moments["exp_avg_sq"] = torch.empty_like(parameter)
                moments["exp_avg"].copy_(self.first[where].view_as(parameter))
                moments["exp_avg_sq"].copy_(self.second[where].view_as(parameter))
                moments["step"].fill_(self.steps)
