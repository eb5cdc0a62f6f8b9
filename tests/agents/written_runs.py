"""Run folders as a training leaves them, written without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OPTIMUM = 150.0


def write_run(
    folder: Path,
    *,
    seed: int = 0,
    score: float = 140.0,
    learning_rate: float = 0.001,
    algorithm: str = "ppo",
    steps: Sequence[int] = (100, 200, 300),
    **changes: Any,
) -> Path:
    """Write what a finished run leaves behind, as training writes it."""
    folder.mkdir(parents=True)
    config = {
        "variant": "ruibal",
        "env": {"instant_win": "play_on", "num_envs": 64},
        "algorithm": {"name": algorithm, "learning_rate": learning_rate},
        "seed": seed,
        "num_threads": seed + 1,
    }
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    result = {
        "agent": folder.name,
        "variant": "ruibal",
        "fingerprint": "036a84105c6d",
        "instant_win_points": None,
        "exact": True,
        "mean_score": score,
        "optimal_score": OPTIMUM,
        "optimality": score / OPTIMUM,
        **changes,
    }
    (folder / "evaluation.json").write_text(json.dumps(result))
    rows = [
        {
            "num_timesteps": step,
            "wall_seconds": 0.6 * step,
            "exact": True,
            "mean_score": score * step / steps[-1],
            "ci95": [0, 0],
            "optimality": score / OPTIMUM * step / steps[-1],
        }
        for step in steps
    ]
    (folder / "progress.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
