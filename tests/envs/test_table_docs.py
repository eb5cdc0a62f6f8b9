"""docs/table.md says what the code does."""

import re
from pathlib import Path

import gymnasium as gym

from generala_env.envs.table_observation import TABLE_BLOCKS, table_layout
from generala_env.rules.compiled import compile_variant

PAGE = (Path(__file__).parents[2] / "docs" / "table.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## What a player sees")[1].split("## Agents at a table")[0]


def test_every_block_is_described_in_order_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", SECTION, flags=re.MULTILINE)
    assert [(name, meaning) for name, _, meaning in rows] == list(TABLE_BLOCKS.items())


def test_sizes_are_those_of_the_layout() -> None:
    layout = table_layout(compile_variant("doble"), 3)
    sizes = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", SECTION, flags=re.MULTILINE))
    values = {"1": 1, "n": 3, "n - 1": 2, "3 (n - 1)": 6, "3 (n - 1) or n - 1": 6, "boxes x (n - 1)": 22}
    for block in layout.blocks[len(layout.solo.blocks) :]:
        assert block.stop - block.start == values[sizes[block.name]], block.name


def test_the_python_examples_run() -> None:
    for example in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(example, "docs/table.md", "exec"), {})  # the page's own code
    assert "generala_env/GeneralaDuel-v0" in gym.registry
