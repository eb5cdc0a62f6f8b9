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
    "nothing_to_undo": (
        "no hay nada que deshacer: lo confirmado queda",
        "não há nada a desfazer: o que foi confirmado fica",
        "there is nothing to undo: what was confirmed stands",
    ),
    "nothing_to_confirm": (
        "falta la jugada; h muestra la ayuda",
        "falta a jogada; h mostra a ajuda",
        "type a move first; h shows help",
    ),
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
        "Guardar valores: 4 4 4 (o 444); posiciones: #1 3 5 (o #135)\n"
        "Tirar todo: - · Anotar: número (c7) o nombre (full)\n"
        "u deshacer · ? pista · h ayuda · x guardar y salir",
        "Guardar valores: 4 4 4 (ou 444); posições: #1 3 5 (ou #135)\n"
        "Lançar tudo: - · Marcar: número (c7) ou nome (full)\n"
        "u desfazer · ? dica · h ajuda · x salvar e sair",
        "Keep values: 4 4 4 (or 444); positions: #1 3 5 (or #135)\n"
        "Throw all: - · Close a box: number (c7) or name (full)\n"
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
    "review_title_you": (
        "tus decisiones que costaron más",
        "suas decisões que custaram mais",
        "your decisions that cost most",
    ),
    "review_sum": (
        "{name}: {good} de {count} decisiones óptimas; costo total: {cost}",
        "{name}: {good} de {count} decisões ótimas; custo total: {cost}",
        "{name}: {good} of {count} decisions optimal; total cost: {cost}",
    ),
    "review_estimate": (
        "{name}: {good} de {count} decisiones como las prefiere la estimación; costo total estimado: {cost}",
        "{name}: {good} de {count} decisões como a estimativa prefere; custo total estimado: {cost}",
        "{name}: {good} of {count} decisions as the estimate prefers; estimated total cost: {cost}",
    ),
    "estimate_note": (
        "La probabilidad de ganar es la que estima race: una diferencia chica no prueba un error, y quien "
        "juega por los puntos busca otra cosa.",
        "A probabilidade de ganhar é a que race estima: uma diferença pequena não prova um erro, e quem "
        "joga pelos pontos busca outra coisa.",
        "The chance of winning is what race estimates: a small difference proves no mistake, and who plays "
        "for points is after something else.",
    ),
    "cost_points": ("{value} puntos", "{value} pontos", "{value} points"),
    "cost_win": (
        "{value} % de probabilidad de ganar",
        "{value} % de probabilidade de ganhar",
        "{value} % chance of winning",
    ),
    "unit_win": ("% de ganar", "% de ganhar", "% of winning"),
    "margin": ("diferencia", "diferença", "margin"),
    "boxes_struck": ("tachados", "riscados", "struck"),
    "starts": ("sale {name}", "começa {name}", "{name} goes first"),
    "starts_you": ("salís vos", "você começa", "you go first"),
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
