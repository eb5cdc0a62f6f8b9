"""Names shown to a person: boxes, faces and a few words, by language and by dice skin.

Nothing here is a rule. Poker dice (9, 10, J, Q, K, A) are a *skin*: they relabel the faces
1 to 6 and rename the six number boxes; the game is the same. Identifiers in code, in
configurations and in files never change with the language or the skin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from generala_env.rules.boxes import NUMBER_FACES, Box
from generala_env.rules.dice import FACES


class Language(StrEnum):
    """The languages that names exist in."""

    ES = "es"
    PT = "pt"
    EN = "en"


class DiceSkin(StrEnum):
    """What the faces of the dice look like."""

    STANDARD = "standard"
    POKER = "poker"


_FACE_LABELS: Final[Mapping[DiceSkin, tuple[str, ...]]] = {
    DiceSkin.STANDARD: ("1", "2", "3", "4", "5", "6"),
    DiceSkin.POKER: ("9", "10", "J", "Q", "K", "A"),
}

_NUMBER_NAMES: Final[Mapping[DiceSkin, Mapping[Language, tuple[str, ...]]]] = {
    DiceSkin.STANDARD: {
        Language.ES: ("Unos", "Doses", "Treses", "Cuatros", "Cincos", "Seises"),
        Language.PT: ("Uns", "Dois", "Três", "Quatros", "Cincos", "Seis"),
        Language.EN: ("Ones", "Twos", "Threes", "Fours", "Fives", "Sixes"),
    },
    DiceSkin.POKER: {
        Language.ES: ("Nueves", "Dieces", "Jotas", "Reinas", "Reyes", "Ases"),
        Language.PT: ("Noves", "Dezes", "Valetes", "Damas", "Reis", "Ases"),
        Language.EN: ("Nines", "Tens", "Jacks", "Queens", "Kings", "Aces"),
    },
}
"""Names of the six number boxes, ones first."""

_PLAY_NAMES: Final[Mapping[Box, Mapping[Language, str]]] = {
    Box.ESCALERA: {Language.ES: "Escalera", Language.PT: "Sequência", Language.EN: "Straight"},
    Box.FULL: {Language.ES: "Full", Language.PT: "Full", Language.EN: "Full house"},
    Box.POKER: {Language.ES: "Póker", Language.PT: "Quadra", Language.EN: "Four of a kind"},
    Box.GENERALA: {Language.ES: "Generala", Language.PT: "General", Language.EN: "Generala"},
    Box.DOBLE_GENERALA: {
        Language.ES: "Doble Generala",
        Language.PT: "General dobrado",
        Language.EN: "Double Generala",
    },
}

_WORDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "bonus": ("bonificación", "bônus", "bonus"),
    "box": ("casillero", "casa", "box"),
    "card": ("planilla", "cartela", "card"),
    "close": ("anotar", "marcar", "close"),
    "dice": ("dados", "dados", "dice"),
    "draw": ("empate", "empate", "draw"),
    "first_player": ("sale primero", "começa", "goes first"),
    "game_over": ("fin de la partida", "fim da partida", "game over"),
    "instant_win": ("Generala servida", "General de primeira", "served Generala"),
    "keep": ("guardar", "guardar", "keep"),
    "kept": ("guardados", "guardados", "kept"),
    "last_move": ("última jugada", "última jogada", "last move"),
    "locked": ("fijos", "fixos", "locked"),
    "open": ("libre", "livre", "open"),
    "opponent": ("rival", "rival", "opponent"),
    "player": ("jugador", "jogador", "player"),
    "playoff": ("desempate", "desempate", "playoff"),
    "points": ("puntos", "pontos", "points"),
    "round": ("ronda", "rodada", "round"),
    "served": ("servido", "de primeira", "served"),
    "strike": ("tachar", "riscar", "strike"),
    "struck": ("tachado", "riscado", "struck"),
    "throw": ("tiro", "lançamento", "throw"),
    "throw_all": ("tirar todo", "lançar tudo", "throw all five"),
    "total": ("total", "total", "total"),
    "variant": ("variante", "variante", "variant"),
    "winner": ("ganador", "vencedor", "winner"),
    "you": ("vos", "você", "you"),
}
"""Words in Spanish, Portuguese and English, in the order of ``Language``."""

WORD_KEYS: Final = tuple(_WORDS)
"""The keys that ``word`` knows."""

_E = TypeVar("_E", bound=StrEnum)


def _choose(what: str, value: object, enum: type[_E]) -> _E:
    try:
        return enum(str(value))
    except ValueError:
        raise _unknown(what, value, enum) from None


def _unknown(what: str, value: object, choices: Iterable[object]) -> ValueError:
    shown = ", ".join(map(str, choices))
    return ValueError(f"{what}: {value!r} is not one of {shown}")


def box_name(box: Box | str, language: Language | str, skin: DiceSkin | str = DiceSkin.STANDARD) -> str:
    """Return the name of a box as a person reads it.

    Args:
        box: A box or its identifier.
        language: ``es``, ``pt`` or ``en``.
        skin: ``standard`` or ``poker``; poker dice rename the six number boxes.

    Raises:
        ValueError: The box, the language or the skin is not known.
    """
    box = _choose("box", box, Box)
    language = _choose("language", language, Language)
    skin = _choose("dice", skin, DiceSkin)
    if box in NUMBER_FACES:
        return _NUMBER_NAMES[skin][language][NUMBER_FACES[box] - 1]
    return _PLAY_NAMES[box][language]


def face_label(face: int, skin: DiceSkin | str = DiceSkin.STANDARD) -> str:
    """Return what a die shows: 1 to 6, or 9, 10, J, Q, K, A on poker dice.

    Raises:
        ValueError: The face or the skin is not known.
    """
    skin = _choose("dice", skin, DiceSkin)
    if face not in FACES:
        raise _unknown("face", face, FACES)
    return _FACE_LABELS[skin][face - 1]


def instant_win_text(points: float | None) -> str:
    """Return in words what a served Generala that wins does when playing alone.

    Args:
        points: What it pays; ``None`` where it plays on.
    """
    return "plays on" if points is None else f"pays {points:g}"


def numbered(names: Sequence[str], sign: str = " ") -> list[str]:
    """Return names with those that come more than once numbered from 1.

    Args:
        names: Of players, in order.
        sign: What stands between a name and its number.
    """
    return [
        f"{name}{sign}{names[: index + 1].count(name)}" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


def word(key: str, language: Language | str) -> str:
    """Return a word in a language, in lower case unless it is a proper name.

    Args:
        key: One of ``WORD_KEYS``.
        language: ``es``, ``pt`` or ``en``.

    Raises:
        ValueError: The key or the language is not known.
    """
    language = _choose("language", language, Language)
    if key not in _WORDS:
        raise _unknown("word", key, WORD_KEYS)
    return _WORDS[key][list(Language).index(language)]
