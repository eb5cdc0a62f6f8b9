"""What the terminal game says, in Spanish, Portuguese and English."""

from __future__ import annotations

from typing import Final

from agents.games.words import SHARED_TEXTS, Texts, in_language
from generala_env.rules.names import Language

_TEXTS: Final[Texts] = {
    **SHARED_TEXTS,
    "prompt": ("guardar o anotar", "guardar ou marcar", "keep or close"),
    "confirm": (
        "Enter para confirmar, u para deshacer",
        "Enter para confirmar, u para desfazer",
        "Enter to confirm, u to undo",
    ),
    "does": ("{name}: {dice} → {what}", "{name}: {dice} → {what}", "{name}: {dice} → {what}"),
    "illegal": ("no se puede: {why}", "não pode: {why}", "not allowed: {why}"),
    "no_such_dice": (
        "esos dados no están sobre la mesa",
        "esses dados não estão na mesa",
        "those dice are not on the table",
    ),
    "all_five": (
        "guardar los cinco es anotar: elegir un casillero",
        "guardar os cinco é marcar: escolha uma casa",
        "keeping all five is closing: choose a box",
    ),
    "not_open": (
        "ese casillero no está disponible",
        "essa casa não está disponível",
        "that box cannot be closed now",
    ),
    "not_understood": (
        "no entiendo «{text}»; h muestra la ayuda",
        "não entendo «{text}»; h mostra a ajuda",
        "cannot read {text!r}; h shows help",
    ),
    "help": (
        "Guardar valores: 4 4 4 (o 444). Guardar posiciones: #1 3 5 (o #135). Tirar todo: -\n"
        "Anotar: c y el número del casillero (c7), o su nombre (full)\n"
        "u deshacer · ? pista · h ayuda · x guardar y salir",
        "Guardar valores: 4 4 4 (ou 444). Guardar posições: #1 3 5 (ou #135). Lançar tudo: -\n"
        "Marcar: c e o número da casa (c7), ou o nome (full)\n"
        "u desfazer · ? dica · h ajuda · x salvar e sair",
        "Keep values: 4 4 4 (or 444). Keep positions: #1 3 5 (or #135). Throw all five: -\n"
        "Close a box: c and its number (c7), or its name (full)\n"
        "u undo · ? hint · h help · x save and leave",
    ),
    "hint_title": ("qué conviene", "o que convém", "what is best"),
    "by_duel": ("exacto para dos jugadores", "exato para dois jogadores", "exact for two players"),
    "by_race": ("estimado", "estimado", "estimate"),
    "pays": ("ahora", "agora", "now"),
    "saved": ("partida guardada en {path}", "partida salva em {path}", "the game is saved in {path}"),
    "resume_with": ("para seguir: {command}", "para continuar: {command}", "go on with: {command}"),
    "review_with": ("para revisar: {command}", "para rever: {command}", "review with: {command}"),
    "next": ("Enter para seguir", "Enter para continuar", "Enter to go on"),
    "review_title": (
        "decisiones de {name} que costaron más",
        "decisões de {name} que custaram mais",
        "the decisions of {name} that cost most",
    ),
    "review_sum": (
        "{name}: {good} de {count} decisiones óptimas; costo total {cost}",
        "{name}: {good} de {count} decisões ótimas; custo total {cost}",
        "{name}: {good} of {count} decisions optimal; total cost {cost}",
    ),
    "nothing": ("nada", "nada", "nothing"),
    "points_unit": ("{value:.1f} puntos", "{value:.1f} pontos", "{value:.1f} points"),
    "starts": ("sale {name}", "começa {name}", "{name} goes first"),
}

TEXT_KEYS: Final = tuple(_TEXTS)
"""The keys that ``text`` knows."""


def text(key: str, language: Language | str, **values: object) -> str:
    """Return a sentence of the terminal game with its values filled in.

    Raises:
        ValueError: The language is not known.
        KeyError: The key is not known.
    """
    return in_language(_TEXTS, language)[key].format(**values)
