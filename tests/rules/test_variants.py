"""Variants: the presets as published, overrides, errors that name the field, fingerprints."""

import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path
from typing import Any

import pytest

from generala_env.rules import DEFAULT_VARIANT, PRESETS, Box, Variant, VariantError, get_variant
from generala_env.rules.variants import FIELD_NAMES, Doble, DobleKind, ServedOn

GOLDEN = Path(__file__).parents[1] / "golden" / "fingerprints.json"

NUMBERS = ["ones", "twos", "threes", "fours", "fives", "sixes"]
TEN = [*NUMBERS, "escalera", "full", "poker", "generala"]
TWO = [[1, 2, 3, 4, 5], [2, 3, 4, 5, 6]]
THREE = [[1, 2, 3, 4, 5], [1, 3, 4, 5, 6], [2, 3, 4, 5, 6]]

COMMON = {
    "kept_dice": "free",
    "order": "free",
    "served_bonus": 5,
    "escalera_points": 20,
    "full_points": 30,
    "poker_points": 40,
    "poker_takes_five": True,
    "full_takes_five": False,
    "min_players": 2,
}
"""What the four published rule sets share, with the usual points of the three plays."""

PUBLISHED: dict[str, dict[str, Any]] = {
    "clasica": {
        "boxes": TEN,
        "generala_points": 50,
        "doble": "bonus(100)",
        "straights": THREE,
        "served_on": "any_full_throw",
        "served_generala_wins": "unless_struck",
        "tie_break": "playoff",
        "first_player": "highest_die",
        "max_players": None,
    },
    "ruibal": {
        "boxes": TEN,
        "generala_points": 60,
        "doble": "none",
        "straights": TWO,
        "served_on": "first_throw",
        "served_generala_wins": "always",
        "tie_break": "draw",
        "first_player": "seat",
        "max_players": 4,
    },
    "doble": {
        "boxes": [*TEN, "doble_generala"],
        "generala_points": 50,
        "doble": "box(100, 100)",
        "straights": TWO,
        "served_on": "first_throw",
        "served_generala_wins": "always",
        "tie_break": "draw",
        "first_player": "highest_throw",
        "max_players": None,
    },
    "doble_fija": {
        "boxes": [*TEN, "doble_generala"],
        "generala_points": 50,
        "doble": "box(100, 105)",
        "straights": TWO,
        "served_on": "first_throw",
        "served_generala_wins": "if_open",
        "kept_dice": "locked",
        "tie_break": "most_generalas",
        "first_player": "seat",
        "max_players": 4,
    },
}
"""The table of presets, typed from the rules document."""

MODIFIED: dict[str, tuple[str, dict[str, Any]]] = {
    "clasica_obligada": ("clasica", {"order": "forced"}),
    "clasica_fija": ("clasica", {"kept_dice": "locked"}),
    "doble_obligada": ("doble", {"order": "forced"}),
    "doble_al_as": ("doble", {"straights": THREE}),
}


def test_the_presets_are_the_published_ones() -> None:
    assert set(PRESETS) == {*PUBLISHED, *MODIFIED}
    for name, values in PUBLISHED.items():
        assert PRESETS[name].to_dict() == {**COMMON, **values, "name": name}
    for name, (base, change) in MODIFIED.items():
        assert PRESETS[name].to_dict() == {**PRESETS[base].to_dict(), **change, "name": name}
    assert DEFAULT_VARIANT == "ruibal"


@pytest.mark.parametrize("name", PRESETS)
def test_fields_round_trip_through_json(name: str) -> None:
    variant = PRESETS[name]
    again = Variant.from_dict(json.loads(json.dumps(variant.to_dict())))
    assert again == variant
    assert again.name == variant.name
    assert again.to_dict() == variant.to_dict()
    assert list(variant.to_dict()) == list(FIELD_NAMES)
    assert get_variant(variant.to_dict()) == variant
    assert pickle.loads(pickle.dumps(variant)) == variant


def test_a_variant_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PRESETS["ruibal"].generala_points = 50  # type: ignore[misc]


# --- fingerprints ----------------------------------------------------------------------------


def test_fingerprints_are_those_of_the_golden_file() -> None:
    """Saved tables and models carry these: if this fails, every saved thing is orphaned."""
    golden = json.loads(GOLDEN.read_text())
    assert {name: variant.fingerprint for name, variant in PRESETS.items()} == golden


def test_fingerprints_do_not_depend_on_the_process() -> None:
    script = (
        "import json; from generala_env.rules import PRESETS;"
        "print(json.dumps({name: variant.fingerprint for name, variant in PRESETS.items()}))"
    )
    for hash_seed in ("0", "4242"):
        shown = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            check=True,
            capture_output=True,
            text=True,
        )
        assert json.loads(shown.stdout) == json.loads(GOLDEN.read_text())


def test_the_fingerprint_does_not_depend_on_the_name() -> None:
    for variant in PRESETS.values():
        renamed = replace(variant, name="another")
        assert renamed == variant
        assert hash(renamed) == hash(variant)
        assert renamed.fingerprint == variant.fingerprint


def test_the_fingerprint_depends_on_every_other_field() -> None:
    base = PRESETS["doble"]
    changes: dict[str, Any] = {
        "boxes": [*reversed(base.boxes)],
        "generala_points": 51,
        "doble": "box(100, 101)",
        "straights": THREE,
        "served_on": "any_full_throw",
        "served_generala_wins": "never",
        "tie_break": "playoff",
        "first_player": "random",
        "kept_dice": "locked",
        "order": "forced",
        "served_bonus": 6,
        "escalera_points": 21,
        "full_points": 31,
        "poker_points": 41,
        "poker_takes_five": False,
        "full_takes_five": True,
        "min_players": 1,
        "max_players": 9,
    }
    assert set(changes) == set(FIELD_NAMES) - {"name"}
    variants = [base, *(base.override(**{name: value}) for name, value in changes.items())]
    assert len({variant.fingerprint for variant in variants}) == len(variants)
    assert len(set(variants)) == len(variants)


def test_equal_rules_in_other_words_are_equal_values() -> None:
    same = PRESETS["clasica"].override(
        straights="23456 13456, 12345",
        doble={"kind": "bonus", "points": 100},
        boxes=" ".join(TEN),
        served_on=ServedOn.ANY_FULL_THROW,
        name="spelled_out",
    )
    assert same == PRESETS["clasica"]
    assert same.fingerprint == PRESETS["clasica"].fingerprint


# --- overrides -------------------------------------------------------------------------------


def test_a_mapping_overrides_a_preset() -> None:
    variant = get_variant({"base": "ruibal", "generala_points": 50, "order": "forced"})
    assert variant.to_dict() == {
        **PRESETS["ruibal"].to_dict(),
        "name": "ruibal(generala_points=50, order=forced)",
        "generala_points": 50,
        "order": "forced",
    }


def test_a_preset_can_be_named_or_given() -> None:
    assert get_variant("doble") is PRESETS["doble"]
    assert get_variant(PRESETS["doble"]) is PRESETS["doble"]
    assert get_variant({"base": "doble"}) is PRESETS["doble"]
    assert get_variant({"base": PRESETS["doble"], "order": "forced"}) == PRESETS["doble_obligada"]


def test_the_name_of_an_override_tells_what_differs() -> None:
    ruibal = PRESETS["ruibal"]
    assert ruibal.override(generala_points=60) is ruibal
    assert ruibal.override(doble="bonus(100)").name == "ruibal(doble=bonus(100))"
    assert ruibal.override(straights=[12345]).name == "ruibal(straights=12345)"
    assert ruibal.override(boxes=["ones", "full"]).name == "ruibal(boxes=ones full)"
    assert ruibal.override(name="mine", generala_points=50).name == "mine"


def test_straights_are_read_from_every_spelling() -> None:
    for spelling in (
        "13456",
        13456,
        [13456],
        ["34561"],
        [[3, 4, 5, 6, 1]],
        [{1, 3, 4, 5, 6}],
        {(6, 5, 4, 3, 1)},
    ):
        assert PRESETS["ruibal"].override(straights=spelling).straights == ((1, 3, 4, 5, 6),)
    assert PRESETS["ruibal"].override(straights="12345,23456") == PRESETS["ruibal"]


def test_the_doble_is_read_from_every_spelling() -> None:
    spelling: Any
    for spelling in (
        "box(90, 95)",
        " box ( 90,95 ) ",
        {"kind": "box", "points": 90, "served_points": 95},
        Doble(DobleKind.BOX, 90, 95),
        Doble("box", 90, 95),  # type: ignore[arg-type]
        asdict(Doble(DobleKind.BOX, 90, 95)),
    ):
        assert PRESETS["doble"].override(doble=spelling).to_dict()["doble"] == "box(90, 95)"
    assert PRESETS["doble"].override(doble="box(90)").doble == Doble(DobleKind.BOX, 90, 90)
    for spelling in (
        "bonus(70)",
        {"kind": "bonus", "points": 70},
        Doble("bonus", 70),  # type: ignore[arg-type]
        asdict(Doble(DobleKind.BONUS, 70)),
    ):
        assert PRESETS["ruibal"].override(doble=spelling).to_dict()["doble"] == "bonus(70)"
    absent: tuple[Any, ...] = ("none", None, {"kind": "none"}, Doble(), asdict(Doble()))
    for spelling in absent:
        assert PRESETS["clasica"].override(doble=spelling).to_dict()["doble"] == "none"


# --- errors ----------------------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    # base, overrides, the field that the error names, what it says
    ("ruibal", {"generala_point": 50}, "generala_point", "did you mean generala_points"),
    ("ruibal", {"served": 5}, "served", "did you mean served_on"),
    ("ruibal", {"tiebreak": "draw"}, "tiebreak", "did you mean tie_break"),
    ("ruibal", {"xyzzy": 1}, "xyzzy", "known: name, boxes, generala_points"),
    ("ruibal", {"base": "clasica"}, "base", "is not a field of a variant"),
    ("ruibal", {"generala_points": "50"}, "generala_points", "'50' is not a whole number from 1 to 10000"),
    ("ruibal", {"generala_points": 50.0}, "generala_points", "50.0 is not a whole number"),
    ("ruibal", {"generala_points": True}, "generala_points", "True is not a whole number"),
    ("ruibal", {"generala_points": 0}, "generala_points", "0 is not a whole number from 1 to 10000"),
    ("ruibal", {"generala_points": 10_001}, "generala_points", "10001 is not a whole number"),
    ("ruibal", {"generala_points": None}, "generala_points", "None is not a whole number"),
    ("ruibal", {"escalera_points": -20}, "escalera_points", "-20 is not a whole number"),
    ("ruibal", {"full_points": [30]}, "full_points", r"\[30\] is not a whole number"),
    ("ruibal", {"poker_points": 0}, "poker_points", "0 is not a whole number"),
    ("ruibal", {"served_bonus": -1}, "served_bonus", "-1 is not a whole number from 0"),
    ("ruibal", {"served_bonus": False}, "served_bonus", "False is not a whole number from 0"),
    ("ruibal", {"poker_takes_five": 1}, "poker_takes_five", "1 is not true or false"),
    ("ruibal", {"full_takes_five": "no"}, "full_takes_five", "'no' is not true or false"),
    ("ruibal", {"min_players": 0}, "min_players", "0 is not a whole number from 1"),
    ("ruibal", {"max_players": 1}, "max_players", "1 is not a whole number from 2 to 1000, or null"),
    (
        "ruibal",
        {"max_players": "none"},
        "max_players",
        "'none' is not a whole number .* or null for no limit",
    ),
    ("ruibal", {"min_players": 5}, "max_players", "4 is not a whole number from 5"),
    ("ruibal", {"served_on": "second_throw"}, "served_on", "not one of first_throw, any_full_throw"),
    (
        "ruibal",
        {"served_generala_wins": "sometimes"},
        "served_generala_wins",
        "always, unless_struck, if_open, never",
    ),
    ("ruibal", {"served_generala_wins": True}, "served_generala_wins", "True is not one of"),
    ("ruibal", {"kept_dice": "fija"}, "kept_dice", "'fija' is not one of free, locked"),
    ("ruibal", {"order": "FORCED"}, "order", "'FORCED' is not one of free, forced"),
    ("ruibal", {"order": None}, "order", "None is not one of free, forced"),
    ("ruibal", {"tie_break": "coin"}, "tie_break", "not one of draw, most_generalas, playoff"),
    (
        "ruibal",
        {"first_player": "me"},
        "first_player",
        "seat, random, highest_die, highest_throw, lowest_throw",
    ),
    ("ruibal", {"name": ""}, "name", "is not a non-empty string"),
    ("ruibal", {"name": 7}, "name", "7 is not a non-empty string"),
    ("ruibal", {"boxes": []}, "boxes", "at least one box"),
    ("ruibal", {"boxes": 5}, "boxes", "5 is not a list of box names"),
    ("ruibal", {"boxes": None}, "boxes", "None is not a list of box names"),
    ("ruibal", {"boxes": {"ones", "twos"}}, "boxes", "is not a list of box names"),
    ("ruibal", {"boxes": {"ones": 1}}, "boxes", "is not a list of box names"),
    ("ruibal", {"boxes": ["ones", "poquer"]}, "boxes", "'poquer' is not one of ones, twos"),
    ("ruibal", {"boxes": ["ones", 2]}, "boxes", "2 is not one of ones, twos"),
    ("ruibal", {"boxes": ["ones", "full", "ones"]}, "boxes", "ones given more than once"),
    ("ruibal", {"boxes": ["doble_generala"]}, "boxes", "a doble_generala box needs a generala box"),
    ("doble", {"boxes": [*NUMBERS, "doble_generala"]}, "boxes", "needs a generala box"),
    ("doble", {"doble": "bonus(100)"}, "doble", "contradicts boxes, which contain a doble_generala"),
    ("doble", {"doble": "none"}, "doble", "contradicts boxes, which contain a doble_generala"),
    ("doble", {"boxes": TEN}, "doble", "contradicts boxes, which contain no doble_generala"),
    ("ruibal", {"doble": "box(100)"}, "doble", "contradicts boxes, which contain no doble_generala"),
    ("ruibal", {"doble": "bonus(100)", "boxes": NUMBERS}, "doble", "needs a generala box"),
    ("ruibal", {"doble": "bonus(0)"}, "doble", "0 is not a whole number from 1"),
    ("ruibal", {"doble": "bonus(10001)"}, "doble", "10001 is not a whole number"),
    ("doble", {"doble": "box(100, 0)"}, "doble", "0 is not a whole number from 1"),
    ("ruibal", {"doble": "bonus"}, "doble", r"'bonus' is not none, bonus\(POINTS\)"),
    ("ruibal", {"doble": "none(100)"}, "doble", "is not none"),
    ("ruibal", {"doble": "bonus(100, 5)"}, "doble", "is not none"),
    ("ruibal", {"doble": "bonus(-5)"}, "doble", "is not none"),
    ("ruibal", {"doble": True}, "doble", "True is not none"),
    ("ruibal", {"doble": 100}, "doble", "100 is not none"),
    ("ruibal", {"doble": {"kind": "double"}}, "doble", "is not none"),
    ("ruibal", {"doble": {"kind": "bonus", "points": "100"}}, "doble", "is not none"),
    ("ruibal", {"doble": {"kind": "bonus", "points": 100, "served_points": 5}}, "doble", "is not none"),
    ("ruibal", {"doble": {"kind": "none", "points": 100}}, "doble", "is not none"),
    ("ruibal", {"doble": {"kind": "bonus", "pts": 100}}, "doble", "is not none"),
    (
        "clasica",
        {"boxes": NUMBERS, "doble": "none"},
        "served_generala_wins",
        "unless_struck needs a generala box",
    ),
    (
        "doble_fija",
        {"boxes": NUMBERS, "doble": "none"},
        "served_generala_wins",
        "if_open needs a generala box",
    ),
    ("ruibal", {"straights": []}, "straights", "an escalera box needs at least one straight"),
    ("ruibal", {"straights": None}, "straights", "None is not a list of lists of five faces"),
    ("ruibal", {"straights": True}, "straights", "True is not a list of lists of five faces"),
    ("ruibal", {"straights": [[1, 2, 3, 4]]}, "straights", r"\[1, 2, 3, 4\] is not five different faces"),
    ("ruibal", {"straights": [[1, 2, 3, 4, 4]]}, "straights", "is not five different faces from 1 to 6"),
    ("ruibal", {"straights": [[1, 2, 3, 4, 7]]}, "straights", "is not five different faces from 1 to 6"),
    ("ruibal", {"straights": [[1, 2, 3, 4, 5, 6]]}, "straights", "is not five different faces"),
    ("ruibal", {"straights": [[True, 2, 3, 4, 5]]}, "straights", "is not five different faces"),
    ("ruibal", {"straights": [[1.0, 2, 3, 4, 5]]}, "straights", "is not five different faces"),
    ("ruibal", {"straights": [[[1], 2, 3, 4, 5]]}, "straights", "is not five different faces"),
    ("ruibal", {"straights": ["1234x"]}, "straights", "'1234x' is not five different faces"),
    ("ruibal", {"straights": ["²2345"]}, "straights", "is not five different faces"),
    ("ruibal", {"straights": [1234]}, "straights", "1234 is not five different faces"),
    ("ruibal", {"straights": [None]}, "straights", "None is not a list of five faces"),
]


@pytest.mark.parametrize(
    ("base", "overrides", "field", "message"),
    WRONG,
    ids=[f"{index}-{case[2]}" for index, case in enumerate(WRONG)],
)
def test_an_override_that_makes_no_sense_names_its_field(
    base: str, overrides: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(VariantError, match=message) as caught:
        PRESETS[base].override(**overrides)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert "\n" not in str(caught.value)
    if "base" not in overrides:
        with pytest.raises(VariantError, match=re.escape(str(caught.value))):
            get_variant({"base": base, **overrides})


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ("ruibla", "variant", "'ruibla' is not a preset; did you mean ruibal"),
        ("obligada", "variant", "did you mean .*_obligada"),
        ("Ruibal", "variant", "did you mean ruibal"),
        ("chess", "variant", "'chess' is not a preset; known: clasica, ruibal, doble"),
        ("", "variant", "'' is not a preset; known: clasica"),
        (None, "variant", "None is not a preset"),
        (7, "variant", "7 is not a preset"),
        ({"base": "clasico"}, "variant", "'clasico' is not a preset; did you mean clasica"),
        ({"base": None}, "variant", "None is not a preset"),
        ({"base": "ruibal", "generala": 1}, "generala", "did you mean generala_points"),
        ({"base": "ruibal", 1: 2}, "1", "is not a field of a variant"),
        ({"generala_points": 50}, "name", "is missing; a preset can be named with base"),
        ({}, "name", "is missing; a preset can be named with base"),
        ({"nombre": "x"}, "nombre", "is not a field of a variant"),
    ],
)
def test_a_variant_that_is_not_known_is_refused_with_the_nearest(spec: Any, field: str, message: str) -> None:
    with pytest.raises(VariantError, match=message) as caught:
        get_variant(spec)
    assert caught.value.field == field


def test_a_missing_field_is_named() -> None:
    for name in FIELD_NAMES:
        values = PRESETS["ruibal"].to_dict()
        del values[name]
        with pytest.raises(VariantError, match="is missing") as caught:
            Variant.from_dict(values)
        assert caught.value.field == name


def test_an_unknown_form_of_the_doble_is_refused() -> None:
    with pytest.raises(VariantError, match="doble: 'double' is not one of none, box, bonus"):
        Doble("double", 100)  # type: ignore[arg-type]


def test_a_variant_error_is_a_value_error() -> None:
    assert issubclass(VariantError, ValueError)


def test_boxes_are_boxes_whatever_they_were_given_as() -> None:
    variant = PRESETS["ruibal"].override(boxes=["full", Box.ONES])
    assert variant.boxes == (Box.FULL, Box.ONES)
    assert all(type(box) is Box for box in variant.boxes)
