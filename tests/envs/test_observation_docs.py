"""The tables of docs/environment.md are those of the code."""

from pathlib import Path

from generala_env.envs.observation import BLOCKS, observation_layout
from generala_env.rules import PRESETS, compile_variant

BLOCK_TEXT, PRESET_TEXT = (
    (Path(__file__).parents[2] / "docs" / "environment.md").read_text().split("The default layout")
)


def rows_of(text: str) -> dict[str, list[str]]:
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {name.strip(" `"): [cell.strip() for cell in cells] for name, *cells in lines if "---" not in name}


def test_every_block_is_described_as_in_the_code() -> None:
    sizes: dict[str, set[int]] = {name: set() for name in BLOCKS}
    for preset in PRESETS:
        for block in observation_layout(compile_variant(preset), list(BLOCKS)).blocks:
            sizes[block.name].add(block.stop - block.start)
    for name, info in BLOCKS.items():
        size = " or ".join(map(str, sorted(sizes[name])))
        assert rows_of(BLOCK_TEXT)[name] == ["yes" if info.is_default else "no", size, info.meaning]


def test_every_preset_has_the_layout_that_the_page_shows() -> None:
    defaults = [name for name, info in BLOCKS.items() if info.is_default]
    for preset in PRESETS:
        layout = observation_layout(compile_variant(preset))
        *cells, size = rows_of(PRESET_TEXT)[preset]
        shown = dict(zip(defaults, cells, strict=True))
        assert int(size) == layout.size
        assert {name for name, cell in shown.items() if cell} == set(layout.names)
        for block in layout.blocks:
            first, _, last = shown[block.name].partition(" to ")
            assert (int(first), int(last or first)) == (block.start, block.stop - 1)
