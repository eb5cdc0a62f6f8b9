"""What the pages of this folder take from the code, as Markdown.

``make docs`` runs ``cog`` over the pages, which writes the output of these functions between its markers;
a test fails where a page says something else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import griffe

from agents.zoo.entries import overview_as_markdown
from generala_env.envs.observation import BLOCKS, observation_layout
from generala_env.envs.solo import GeneralaEnv
from generala_env.envs.table_observation import TABLE_BLOCKS, table_layout
from generala_env.rules.boxes import Box
from generala_env.rules.compiled import compile_variant
from generala_env.rules.variants import FIELD_NAMES, PRESETS, Variant


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _in_markdown(docstring: str) -> str:
    return docstring.replace("``", "`")


def _described(owner: type[Any] | Callable[..., Any], kind: griffe.DocstringSectionKind) -> dict[str, str]:
    """Return the items of one section of a Google-style docstring, by name."""
    sections = griffe.Docstring(inspect.getdoc(owner) or "").parse("google", warnings=False)
    items = next(section.value for section in sections if section.kind is kind)
    return {item.name: _in_markdown(" ".join(item.description.split())) for item in items}


def environment(*titles: str) -> str:
    """Return sections of the docstring of the one-player environment, with their headings."""
    _, *sections = inspect.cleandoc(GeneralaEnv.__doc__ or "").split("\n## ")
    texts = {title: text for title, _, text in (section.partition("\n") for section in sections)}
    return "\n".join(f"## {title}\n\n{_in_markdown(texts[title].strip())}\n" for title in titles)


def arguments() -> str:
    """Return a table of the arguments of the one-player environment."""
    defaults = inspect.signature(GeneralaEnv.__init__).parameters
    described = _described(GeneralaEnv.__init__, griffe.DocstringSectionKind.parameters)
    return _table(
        ("argument", "default", "meaning"),
        [(f"`{name}`", f"`{defaults[name].default!r}`", text) for name, text in described.items()],
    )


def zoo() -> str:
    """Return a table of the agents that ship."""
    return overview_as_markdown()


def _sizes(sizes: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(set(sizes))))


def blocks() -> str:
    """Return a table of all blocks of a one-player observation."""
    layouts = [observation_layout(compile_variant(preset), list(BLOCKS)) for preset in PRESETS]
    every = [block for layout in layouts for block in layout.blocks]
    return _table(
        ("block", "in by default", "size", "what it shows"),
        [
            (
                f"`{name}`",
                "yes" if info.is_default else "no",
                _sizes(block.stop - block.start for block in every if block.name == name),
                info.meaning,
            )
            for name, info in BLOCKS.items()
        ],
    )


def layouts() -> str:
    """Return a table of the default layout of every preset."""
    names = [name for name, info in BLOCKS.items() if info.is_default]
    rows = []
    for preset in PRESETS:
        layout = observation_layout(compile_variant(preset))
        where = {name: indices for name, indices, _ in layout.table()}
        rows.append([f"`{preset}`", *(where.get(name, "") for name in names), str(layout.size)])
    return _table(["preset", *(f"`{name}`" for name in names), "size"], rows)


def table_blocks() -> str:
    """Return a table of the blocks that a table's observation adds, with their sizes."""
    players = (2, 3, 4)
    sizes: dict[tuple[str, int], set[int]] = {}
    for preset in PRESETS:
        for count in players:
            for block in table_layout(compile_variant(preset), count).blocks:
                sizes.setdefault((block.name, count), set()).add(block.stop - block.start)
    return _table(
        ("block", *(f"size for {count}" for count in players), "what it shows"),
        [
            (f"`{name}`", *(_sizes(sizes[name, count]) for count in players), meaning)
            for name, meaning in TABLE_BLOCKS.items()
        ],
    )


def _shown(name: str, value: Any) -> str:
    if name == "straights":
        return ", ".join("-".join(map(str, straight)) for straight in value)
    if name == "boxes":
        return " ".join(value)
    return "no limit" if value is None else str(value).lower()


def fields() -> str:
    """Return a table of the fields of a rule set and the values that the presets have."""
    meanings = _described(Variant, griffe.DocstringSectionKind.attributes)
    rows = []
    for name in FIELD_NAMES:
        if name in meanings:
            values = dict.fromkeys(_shown(name, preset.to_dict()[name]) for preset in PRESETS.values())
            rows.append((f"`{name}`", meanings[name], "; ".join(f"`{value}`" for value in values)))
    return _table(("field", "meaning", "values in the presets"), rows)


def _differences(variant: Variant, other: Variant) -> dict[str, str]:
    mine, others = variant.to_dict(), other.to_dict()
    return {
        name: _shown(name, mine[name])
        for name in FIELD_NAMES
        if name != "name" and mine[name] != others[name]
    }


def presets() -> str:
    """Return a section for every preset: its fields that vary, or what it changes of another."""
    varying = [
        name
        for name in FIELD_NAMES
        if name != "name" and len({str(preset.to_dict()[name]) for preset in PRESETS.values()}) > 1
    ]
    sections = []
    known: list[Variant] = []
    for variant in PRESETS.values():
        compiled = compile_variant(variant)
        nearest = min(known, key=lambda other: len(_differences(variant, other)), default=None)
        changed = None if nearest is None else _differences(variant, nearest)
        known.append(variant)
        text = (
            f"## `{variant.name}`\n\n{variant.num_boxes} boxes; at most {compiled.perfect_score} points "
            f"without an instant win; {compiled.num_classes:,} cards that the rules can tell apart; "
            f"fingerprint `{variant.fingerprint}`.\n\n"
        )
        if nearest is not None and changed is not None and len(changed) == 1:
            ((name, value),) = changed.items()
            text += f"As [`{nearest.name}`](#{nearest.name}), with `{name}` = `{value}`.\n"
        else:
            values = variant.to_dict()
            text += _table(
                ("field", "value"),
                [(f"`{name}`", f"`{_shown(name, values[name])}`") for name in varying],
            )
        sections.append(text)
    return "\n".join(sections)


def _most(preset: str, box: Box) -> str:
    compiled = compile_variant(preset)
    if box not in compiled.variant.boxes:
        return ""
    # By status and served. Some statuses pay nothing (a Doble box), others a Doble bonus on top.
    most = compiled.points[:, compiled.variant.boxes.index(box)].max(axis=2)
    assembled, served = (int(most[most[:, kind] > 0, kind].min()) for kind in (0, 1))
    return str(assembled) if served == assembled else f"{assembled}, served {served}"


def scores() -> str:
    """Return a table of the most that every box pays; presets that pay the same share a column."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for preset in PRESETS:
        columns.setdefault(tuple(_most(preset, box) for box in Box), []).append(f"`{preset}`")
    return _table(
        ["box", *(", ".join(presets) for presets in columns.values())],
        [[f"`{box}`", *cells] for box, *cells in zip(Box, *columns, strict=True)],
    )
