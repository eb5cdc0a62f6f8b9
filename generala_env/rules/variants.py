"""A rule set as data: the frozen ``Variant``, the presets, overrides and fingerprints.

Everything else reads a ``Variant`` and never tests its name.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeVar

from generala_env.rules.boxes import Box, Straight
from generala_env.rules.dice import FACES, NUM_DICE

MAX_POINTS: Final = 10_000
"""The most points a single box, bonus or win may be set to pay."""


class VariantError(ValueError):
    """A rule set, or a value for one of its fields, that makes no sense.

    Attributes:
        field: The name of the offending field.
    """

    def __init__(self, field_name: str, message: str) -> None:
        """Name the field in front of the message."""
        super().__init__(f"{field_name}: {message}")
        self.field = field_name


class ServedOn(StrEnum):
    """When a box counts as served."""

    FIRST_THROW = "first_throw"
    ANY_FULL_THROW = "any_full_throw"


class ServedGeneralaWins(StrEnum):
    """Whether five equal dice, served, win on the spot, by the own Generala box."""

    ALWAYS = "always"
    UNLESS_STRUCK = "unless_struck"
    IF_OPEN = "if_open"
    NEVER = "never"


class KeptDice(StrEnum):
    """Whether dice set aside may be thrown again within the turn."""

    FREE = "free"
    LOCKED = "locked"


class Order(StrEnum):
    """Whether boxes are closed in any order or in card order."""

    FREE = "free"
    FORCED = "forced"


class TieBreak(StrEnum):
    """What decides between players with equal points."""

    DRAW = "draw"
    MOST_GENERALAS = "most_generalas"
    PLAYOFF = "playoff"


class FirstPlayer(StrEnum):
    """How the starter is found."""

    SEAT = "seat"
    RANDOM = "random"
    HIGHEST_DIE = "highest_die"
    HIGHEST_THROW = "highest_throw"
    LOWEST_THROW = "lowest_throw"


class DobleKind(StrEnum):
    """Whether there is a Doble Generala, and in which form."""

    NONE = "none"
    BOX = "box"
    BONUS = "bonus"


@dataclass(frozen=True)
class Doble:
    """The Doble Generala: absent, a box, or a bonus on whatever box is closed.

    Attributes:
        kind: Its form.
        points: What it pays.
        served_points: What the box pays when served; equal to ``points`` in other forms.
    """

    kind: DobleKind = DobleKind.NONE
    points: int = 0
    served_points: int = 0

    def __post_init__(self) -> None:
        """Drop what the form does not use, so that equal rules are equal values.

        Raises:
            VariantError: There is no such form.
        """
        object.__setattr__(self, "kind", _enum("doble", self.kind, DobleKind))
        if self.kind is DobleKind.NONE:
            object.__setattr__(self, "points", 0)
        if self.kind is not DobleKind.BOX:
            object.__setattr__(self, "served_points", self.points)

    def __str__(self) -> str:
        """Return the form that ``parse`` reads back."""
        if self.kind is DobleKind.BOX:
            return f"box({self.points}, {self.served_points})"
        return f"bonus({self.points})" if self.kind is DobleKind.BONUS else "none"

    @classmethod
    def parse(cls, value: object) -> Doble:
        """Read ``"none"``, ``"bonus(100)"``, ``"box(100, 105)"``, a mapping or a ``Doble``.

        Raises:
            VariantError: The value is none of these.
        """
        if isinstance(value, Doble):
            return value
        if value is None:
            return cls()
        allowed = "none, bonus(POINTS), box(POINTS, SERVED_POINTS) or {kind, points, served_points}"
        if isinstance(value, str):
            match = re.fullmatch(r"\s*(none|bonus|box)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", value)
            if match is not None:
                kind, points, served = match.groups()
                if (kind == "none") == (points is None) and not (kind != "box" and served):
                    paid = int(points or 0)
                    return cls(DobleKind(kind), paid, int(served or paid))
        elif isinstance(value, Mapping) and set(value) <= {"kind", "points", "served_points"}:
            kind = value.get("kind")
            points = value.get("points", 0)
            served = value.get("served_points", points)
            if kind in list(DobleKind) and all(type(number) is int for number in (points, served)):
                doble = cls(DobleKind(kind), points, served)
                # What the form has no use for is refused, not dropped in silence.
                if (doble.points, doble.served_points) == (points, served):
                    return doble
        raise VariantError("doble", f"{value!r} is not {allowed}")


_E = TypeVar("_E", bound=StrEnum)


def _enum(name: str, value: object, enum: type[_E]) -> _E:
    try:
        return enum(str(value) if isinstance(value, str) else "")
    except ValueError:
        raise VariantError(name, f"{value!r} is not one of {', '.join(enum)}") from None


def _integer(name: str, value: object, low: int, high: int = MAX_POINTS, otherwise: str = "") -> int:
    if type(value) is not int or not low <= value <= high:
        raise VariantError(name, f"{value!r} is not a whole number from {low} to {high}{otherwise}")
    return value


def _boolean(name: str, value: object) -> bool:
    if type(value) is not bool:
        raise VariantError(name, f"{value!r} is not true or false")
    return value


def _boxes(value: object) -> tuple[Box, ...]:
    names = value.replace(",", " ").split() if isinstance(value, str) else value
    # A set has no order, and the order of the boxes is part of the rules.
    if not isinstance(names, Iterable) or isinstance(names, AbstractSet | Mapping):
        raise VariantError("boxes", f"{value!r} is not a list of box names")
    boxes = tuple(_enum("boxes", name, Box) for name in names)
    if not boxes:
        raise VariantError("boxes", "a card needs at least one box")
    repeated = sorted({box.value for box in boxes if boxes.count(box) > 1})
    if repeated:
        raise VariantError("boxes", f"{', '.join(repeated)} given more than once")
    return boxes


def _straights(value: object) -> tuple[Straight, ...]:
    groups = value
    if isinstance(value, str | int) and not isinstance(value, bool):
        groups = str(value).replace(",", " ").split()
    if not isinstance(groups, Iterable):
        raise VariantError("straights", f"{value!r} is not a list of lists of five faces")
    straights: set[Straight] = set()
    for group in groups:
        faces = group
        if isinstance(group, str | int) and not isinstance(group, bool):
            faces = [int(digit) if digit in "123456" else digit for digit in str(group)]
        if not isinstance(faces, Iterable):
            raise VariantError("straights", f"{group!r} is not a list of five faces")
        faces = list(faces)
        are_faces = all(type(face) is int and face in FACES for face in faces)
        if not are_faces or len(faces) != NUM_DICE or len(set(faces)) != NUM_DICE:
            raise VariantError("straights", f"{group!r} is not five different faces from 1 to 6")
        straights.add(tuple(sorted(faces)))
    return tuple(sorted(straights))


@dataclass(frozen=True)
class Variant:
    """One published (or invented) set of rules.

    Fields are checked and brought to their canonical form on construction, so that equal
    rules are equal values. ``name`` is for people: it takes no part in comparison or in the
    fingerprint.

    Attributes:
        boxes: The boxes in card order.
        escalera_points: What an Escalera pays.
        full_points: What a Full pays.
        poker_points: What a Póker pays.
        generala_points: What an assembled Generala pays.
        doble: The Doble Generala.
        straights: The five faces of each Escalera.
        served_bonus: Points added to Escalera, Full and Póker when served.
        served_on: When a box counts as served.
        served_generala_wins: Whether five equal dice, served, win the game at once.
        kept_dice: Whether dice set aside are locked for the turn.
        order: Whether boxes are closed in card order.
        poker_takes_five: Whether five equal dice are a Póker.
        full_takes_five: Whether five equal dice are a Full.
        tie_break: What decides between equal points.
        first_player: How the starter is found.
        min_players: The fewest players of a table.
        max_players: The most players of a table; ``None`` is no limit.

    Raises:
        VariantError: A field has a wrong type or value, or fields contradict each other.
    """

    name: str = field(compare=False)
    boxes: tuple[Box, ...]
    generala_points: int
    doble: Doble
    straights: tuple[Straight, ...]
    served_on: ServedOn
    served_generala_wins: ServedGeneralaWins
    tie_break: TieBreak
    first_player: FirstPlayer
    kept_dice: KeptDice = KeptDice.FREE
    order: Order = Order.FREE
    served_bonus: int = 5
    escalera_points: int = 20
    full_points: int = 30
    poker_points: int = 40
    poker_takes_five: bool = True
    full_takes_five: bool = False
    min_players: int = 2
    max_players: int | None = None

    def __post_init__(self) -> None:
        """Check every field and bring it to its canonical form."""

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        if not isinstance(self.name, str) or not self.name:
            raise VariantError("name", f"{self.name!r} is not a non-empty string")
        put("boxes", _boxes(self.boxes))
        put("straights", _straights(self.straights))
        put("doble", Doble.parse(self.doble))
        for name, enum in _ENUM_FIELDS.items():
            put(name, _enum(name, getattr(self, name), enum))
        for name in ("generala_points", "escalera_points", "full_points", "poker_points"):
            _integer(name, getattr(self, name), 1)
        _integer("served_bonus", self.served_bonus, 0)
        _boolean("poker_takes_five", self.poker_takes_five)
        _boolean("full_takes_five", self.full_takes_five)
        _integer("min_players", self.min_players, 1, 1_000)
        if self.max_players is not None:
            _integer("max_players", self.max_players, self.min_players, 1_000, ", or null for no limit")
        self._check_combinations()

    def _check_combinations(self) -> None:
        has_generala = Box.GENERALA in self.boxes
        has_doble_box = Box.DOBLE_GENERALA in self.boxes
        if has_doble_box and not has_generala:
            raise VariantError("boxes", "a doble_generala box needs a generala box")
        if has_doble_box != (self.doble.kind is DobleKind.BOX):
            raise VariantError(
                "doble",
                f"{self.doble} contradicts boxes, which "
                + ("contain a doble_generala" if has_doble_box else "contain no doble_generala"),
            )
        if self.doble.kind is not DobleKind.NONE:
            _integer("doble", self.doble.points, 1)
            _integer("doble", self.doble.served_points, 1)
            if not has_generala:
                raise VariantError("doble", f"{self.doble} needs a generala box")
        own_box = (ServedGeneralaWins.UNLESS_STRUCK, ServedGeneralaWins.IF_OPEN)
        if self.served_generala_wins in own_box and not has_generala:
            raise VariantError("served_generala_wins", f"{self.served_generala_wins} needs a generala box")
        if Box.ESCALERA in self.boxes and not self.straights:
            raise VariantError("straights", "an escalera box needs at least one straight")

    @property
    def num_boxes(self) -> int:
        """The number of boxes, which is the number of turns of each player."""
        return len(self.boxes)

    @property
    def is_locked(self) -> bool:
        """Whether dice set aside stay set aside for the turn."""
        return self.kept_dice is KeptDice.LOCKED

    def to_dict(self) -> dict[str, Any]:
        """Return the full field values as JSON types; ``from_dict`` reads them back."""
        values: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Doble):
                value = str(value)
            elif isinstance(value, StrEnum):
                value = value.value
            elif item.name == "boxes":
                value = [box.value for box in self.boxes]
            elif item.name == "straights":
                value = [list(straight) for straight in self.straights]
            values[item.name] = value
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Variant:
        """Build a variant from full field values.

        Raises:
            VariantError: A field is unknown, missing or wrong.
        """
        _check_names(values)
        missing = [name for name in FIELD_NAMES if name not in values]
        if missing:
            raise VariantError(missing[0], "is missing; a preset can be named with base")
        return cls(**values)

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that depend on every field but the name."""
        values = self.to_dict()
        del values["name"]
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def override(self, **overrides: Any) -> Variant:
        """Return the variant with some fields replaced.

        The name then lists what differs from this variant, unless ``name`` is given.

        Raises:
            VariantError: A field is unknown, wrong, or contradicts another.
        """
        _check_names(overrides)
        changed = replace(self, **overrides)
        if "name" in overrides:
            return changed
        before, after = self.to_dict(), changed.to_dict()
        differing = [name for name in FIELD_NAMES if before[name] != after[name]]
        if not differing:
            return self
        described = ", ".join(f"{name}={_described(after[name])}" for name in differing)
        return replace(changed, name=f"{self.name}({described})")


def _described(value: object) -> str:
    if isinstance(value, list):
        return " ".join("".join(map(str, item)) if isinstance(item, list) else str(item) for item in value)
    return str(value)


FIELD_NAMES: Final = tuple(item.name for item in fields(Variant))
"""The names that may be overridden."""

_ENUM_FIELDS: Final[dict[str, type[StrEnum]]] = {
    "served_on": ServedOn,
    "served_generala_wins": ServedGeneralaWins,
    "kept_dice": KeptDice,
    "order": Order,
    "tie_break": TieBreak,
    "first_player": FirstPlayer,
}


def _check_names(values: Mapping[str, Any]) -> None:
    for name in values:
        if name not in FIELD_NAMES:
            near = difflib.get_close_matches(str(name), FIELD_NAMES, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(FIELD_NAMES)}"
            raise VariantError(str(name), f"is not a field of a variant{hint}")


_TEN_BOXES = tuple(box for box in Box if box is not Box.DOBLE_GENERALA)
_TWO_STRAIGHTS = ((1, 2, 3, 4, 5), (2, 3, 4, 5, 6))
_THREE_STRAIGHTS = (*_TWO_STRAIGHTS, (1, 3, 4, 5, 6))

_CLASICA = Variant(
    name="clasica",
    boxes=_TEN_BOXES,
    generala_points=50,
    doble=Doble(DobleKind.BONUS, 100, 100),
    straights=_THREE_STRAIGHTS,
    served_on=ServedOn.ANY_FULL_THROW,
    served_generala_wins=ServedGeneralaWins.UNLESS_STRUCK,
    tie_break=TieBreak.PLAYOFF,
    first_player=FirstPlayer.HIGHEST_DIE,
)
_RUIBAL = Variant(
    name="ruibal",
    boxes=_TEN_BOXES,
    generala_points=60,
    doble=Doble(),
    straights=_TWO_STRAIGHTS,
    served_on=ServedOn.FIRST_THROW,
    served_generala_wins=ServedGeneralaWins.ALWAYS,
    tie_break=TieBreak.DRAW,
    first_player=FirstPlayer.SEAT,
    max_players=4,
)
_DOBLE = Variant(
    name="doble",
    boxes=tuple(Box),
    generala_points=50,
    doble=Doble(DobleKind.BOX, 100, 100),
    straights=_TWO_STRAIGHTS,
    served_on=ServedOn.FIRST_THROW,
    served_generala_wins=ServedGeneralaWins.ALWAYS,
    tie_break=TieBreak.DRAW,
    first_player=FirstPlayer.HIGHEST_THROW,
)
_DOBLE_FIJA = Variant(
    name="doble_fija",
    boxes=tuple(Box),
    generala_points=50,
    doble=Doble(DobleKind.BOX, 100, 105),
    straights=_TWO_STRAIGHTS,
    served_on=ServedOn.FIRST_THROW,
    served_generala_wins=ServedGeneralaWins.IF_OPEN,
    kept_dice=KeptDice.LOCKED,
    tie_break=TieBreak.MOST_GENERALAS,
    first_player=FirstPlayer.SEAT,
    max_players=4,
)

PRESETS: Final[Mapping[str, Variant]] = {
    variant.name: variant
    for variant in (
        _CLASICA,
        _RUIBAL,
        _DOBLE,
        _DOBLE_FIJA,
        replace(_CLASICA, name="clasica_obligada", order=Order.FORCED),
        replace(_CLASICA, name="clasica_fija", kept_dice=KeptDice.LOCKED),
        replace(_DOBLE, name="doble_obligada", order=Order.FORCED),
        replace(_DOBLE, name="doble_al_as", straights=_THREE_STRAIGHTS),
    )
}
"""The published rule sets by name."""

DEFAULT_VARIANT: Final = "ruibal"


def get_variant(spec: str | Mapping[str, Any] | Variant) -> Variant:
    """Return the variant that a name, a mapping or a ``Variant`` stands for.

    A mapping names its preset with ``base`` and overrides fields by name, as in
    ``{"base": "ruibal", "generala_points": 50}``; without ``base`` it gives every field.

    Raises:
        VariantError: The name or a field is unknown or wrong.
    """
    if isinstance(spec, Variant):
        return spec
    if isinstance(spec, Mapping):
        if "base" not in spec:
            return Variant.from_dict(spec)
        overrides = {name: value for name, value in spec.items() if name != "base"}
        _check_names(overrides)
        return get_variant(spec["base"]).override(**overrides)
    if isinstance(spec, str) and spec in PRESETS:
        return PRESETS[spec]
    near = difflib.get_close_matches(str(spec), PRESETS, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise VariantError("variant", f"{spec!r} is not a preset; {hint}known: {', '.join(PRESETS)}")
