"""Names shown to a person: complete, distinct, and never mistaken for rules."""

import pytest

from generala_env.rules import Box
from generala_env.rules.names import (
    WORD_KEYS,
    DiceSkin,
    Language,
    box_name,
    face_label,
    instant_win_text,
    numbered,
    word,
)


@pytest.mark.parametrize(
    ("box", "language", "skin", "name"),
    [
        (Box.ONES, "es", "standard", "Unos"),
        (Box.SIXES, "pt", "standard", "Seis"),
        (Box.ESCALERA, "en", "standard", "Straight"),
        (Box.POKER, "es", "standard", "Póker"),
        (Box.DOBLE_GENERALA, "es", "poker", "Doble Generala"),
        (Box.GENERALA, "pt", "poker", "General"),
        ("twos", "en", "poker", "Tens"),
        (Box.FOURS, "pt", "poker", "Damas"),
        (Box.SIXES, "es", "poker", "Ases"),
    ],
)
def test_box_name_by_language_and_skin(box: Box | str, language: str, skin: str, name: str) -> None:
    assert box_name(box, language, skin) == name


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("skin", DiceSkin)
def test_the_boxes_of_a_card_have_distinct_names(language: Language, skin: DiceSkin) -> None:
    names = [box_name(box, language, skin) for box in Box]
    assert len(set(names)) == len(Box)
    assert all(name == name.strip() and name[0].isupper() for name in names)


@pytest.mark.parametrize("language", Language)
def test_the_poker_skin_renames_the_six_number_boxes_and_nothing_else(language: Language) -> None:
    renamed = [box for box in Box if box_name(box, language, "poker") != box_name(box, language, "standard")]
    assert renamed == list(Box)[:6]


def test_face_labels() -> None:
    assert [face_label(face) for face in range(1, 7)] == ["1", "2", "3", "4", "5", "6"]
    assert [face_label(face, DiceSkin.POKER) for face in range(1, 7)] == ["9", "10", "J", "Q", "K", "A"]


@pytest.mark.parametrize("language", Language)
def test_every_word_exists_in_every_language(language: Language) -> None:
    assert all(word(key, language).strip() for key in WORD_KEYS)
    assert {"throw", "keep", "close", "total", "served", "player"} <= set(WORD_KEYS)


def test_words_differ_by_language() -> None:
    assert [word("throw", language) for language in ("es", "pt", "en")] == ["tiro", "lançamento", "throw"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: box_name("poquer", "es"), "box: 'poquer' is not one of ones, twos,.* doble_generala"),
        (lambda: box_name("ones", "fr"), "language: 'fr' is not one of es, pt, en"),
        (lambda: box_name("ones", "es", "wood"), "dice: 'wood' is not one of standard, poker"),
        (lambda: face_label(0), "face: 0 is not one of 1, 2, 3, 4, 5, 6"),
        (lambda: face_label(7, "poker"), "face: 7 is not one of 1, 2, 3, 4, 5, 6"),
        (lambda: face_label(1, "wood"), "dice: 'wood' is not one of standard, poker"),
        (lambda: word("thrown", "es"), "word: 'thrown' is not one of bonus, .* you"),
        (lambda: word("throw", "de"), "language: 'de' is not one of es, pt, en"),
    ],
)
def test_errors_name_the_value_and_the_choices(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()


def test_names_that_come_more_than_once_are_numbered() -> None:
    assert numbered(["tips", "me", "tips", "tips"]) == ["tips 1", "me", "tips 2", "tips 3"]
    assert numbered(["a", "a"], "#") == ["a#1", "a#2"]
    assert numbered([]) == []


@pytest.mark.parametrize(
    ("points", "told"), [(None, "plays on"), (0.0, "pays 0"), (270.0, "pays 270"), (12.5, "pays 12.5")]
)
def test_a_treatment_of_wins_in_words(points: float | None, told: str) -> None:
    assert instant_win_text(points) == told
