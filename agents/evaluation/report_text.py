"""What a report says, in the three languages; names of boxes and words of the game are in the rules."""

from __future__ import annotations

from typing import Final

from generala_env.rules.names import Language

_TEXTS: Final[dict[str, tuple[str, str, str]]] = {
    "of_optimum": ("del óptimo", "do ótimo", "of the optimum"),
    "mean_score": ("puntaje medio", "pontuação média", "mean score"),
    "optimum": ("óptimo", "ótimo", "optimum"),
    "std": ("desvío estándar", "desvio padrão", "standard deviation"),
    "lost_per_game": ("puntos perdidos por partida", "pontos perdidos por partida", "points lost per game"),
    "instant_win_share": (
        "partidas ganadas con Generala servida",
        "partidas vencidas com General de primeira",
        "games won by a served Generala",
    ),
    "win_pays": (
        "una Generala servida que gana termina la partida y paga {points} puntos",
        "uma General de primeira que vence termina a partida e paga {points} pontos",
        "a served Generala that wins ends the game and pays {points} points",
    ),
    "win_plays_on": (
        "una Generala servida no gana: la partida sigue",
        "uma General de primeira não vence: a partida continua",
        "a served Generala does not win: play goes on",
    ),
    "exact_note": (
        "Valores exactos: se preguntó al agente por las {states} decisiones que su juego puede encontrar. "
        "No hay muestreo ni margen de error.",
        "Valores exatos: perguntou-se ao agente sobre as {states} decisões que seu jogo pode encontrar. "
        "Não há amostragem nem margem de erro.",
        "Exact values: the agent was asked about all {states} decisions its play can meet. "
        "Nothing is sampled, so there is no margin of error.",
    ),
    "distribution": ("Puntajes finales", "Pontuações finais", "Final scores"),
    "distribution_note": (
        "Parte de las partidas en cada franja de {width} puntos, junto al juego óptimo.",
        "Parte das partidas em cada faixa de {width} pontos, ao lado do jogo ótimo.",
        "Share of games in each band of {width} points, beside optimal play.",
    ),
    "one_in_twenty": (
        "Una partida de cada veinte queda por debajo de {low}, y una por encima de {high} "
        "(óptimo: {best_low} y {best_high}).",
        "Uma partida em vinte fica abaixo de {low}, e uma acima de {high} (ótimo: {best_low} e {best_high}).",
        "One game in twenty ends below {low}, and one above {high} (optimum: {best_low} and {best_high}).",
    ),
    "mean_lines": ("rayas: las medias", "tracejado: as médias", "dashed: the means"),
    "more_mistakes": ("Otros {count}", "Outros {count}", "{count} more"),
    "show_list": ("Ver la lista", "Ver a lista", "Show the list"),
    "show_game": ("Ver la partida", "Ver a partida", "Show the game"),
    "scroll_hint": (
        "La tabla sigue a la derecha: deslizala.",
        "A tabela continua à direita: deslize-a.",
        "The table goes on to the right: scroll it.",
    ),
    "heat_title": (
        "{where}: {total} en total",
        "{where}: {total} no total",
        "{where}: {total} in all",
    ),
    "where_lost": (
        "Dónde se pierden los puntos",
        "Onde se perdem os pontos",
        "Where the points are lost",
    ),
    "where_lost_note": (
        "Cada decisión cuesta lo que vale la mejor jugada menos lo que vale la elegida. "
        "Las partes suman {total}.",
        "Cada decisão custa o valor da melhor jogada menos o valor da escolhida. As partes somam {total}.",
        "Each decision costs the value of the best move less that of the move made. "
        "The parts add up to {total}.",
    ),
    "by_throw": ("Por tiro", "Por lançamento", "By throw"),
    "by_kind": ("Por tipo de error", "Por tipo de erro", "By kind of mistake"),
    "by_round": ("Por ronda", "Por rodada", "By round"),
    "by_box": ("Por casillero", "Por casa", "By box"),
    "wrong_keep": ("guardó otros dados", "guardou outros dados", "kept the wrong dice"),
    "closed_early": ("anotó antes de tiempo", "marcou cedo demais", "closed too early"),
    "wrong_box": ("casillero equivocado", "casa errada", "wrong box"),
    "rolled_on": ("siguió tirando", "continuou lançando", "rolled on"),
    "times_per_game": ("{times} por partida", "{times} por partida", "{times} a game"),
    "heat_map": (
        "Puntos perdidos por casillero y ronda",
        "Pontos perdidos por casa e rodada",
        "Points lost by box and round",
    ),
    "heat_note": (
        "Cada decisión cuenta en el casillero que cerró el turno; en puntos por partida.",
        "Cada decisão conta na casa com que a vez terminou; em pontos por partida.",
        "Each decision counts for the box that ended its turn; in points per game.",
    ),
    "open_note": (
        "Perdido mientras el casillero estaba libre, y después.",
        "Perdido enquanto a casa estava livre, e depois.",
        "Lost while the box was open, and after.",
    ),
    "while_open": ("mientras libre", "enquanto livre", "while open"),
    "once_closed": ("ya anotado", "já marcada", "once closed"),
    "boxes": ("Los casilleros", "As casas", "The boxes"),
    "points_mean": ("puntos", "pontos", "points"),
    "struck_share": ("tachado", "riscada", "struck"),
    "difference": ("diferencia", "diferença", "difference"),
    "blunders": ("Los errores que más cuestan", "Os erros que mais custam", "The costliest mistakes"),
    "blunders_note": (
        "Ordenados por lo que cuestan en una partida media: lo perdido cada vez, por las veces que ocurre.",
        "Ordenados pelo custo em uma partida média: o perdido a cada vez, pelas vezes que ocorre.",
        "Ordered by their cost in an average game: what is lost each time, times how often it happens.",
    ),
    "gravest": ("Los errores más graves", "Os erros mais graves", "The gravest mistakes"),
    "gravest_note": (
        "Los que más pierden de una vez, entre los que ocurren al menos una vez cada 10.000 partidas.",
        "Os que mais perdem de uma vez, entre os que ocorrem ao menos uma vez a cada 10.000 partidas.",
        "Those that lose most at once, among those that happen at least once in 10,000 games.",
    ),
    "did": ("hizo", "fez", "did"),
    "right": ("mejor", "melhor", "better"),
    "loses": ("pierde {points}", "perde {points}", "loses {points}"),
    "happens": ("1 vez cada {games} partidas", "1 vez a cada {games} partidas", "once in {games} games"),
    "costs": ("{points} por partida", "{points} por partida", "{points} a game"),
    "box_fate": ("{box}: {fate}", "{box}: {fate}", "{box}: {fate}"),
    "scored": ("anotado", "marcada", "scored"),
    "bonus_taken": ("bonificación cobrada", "bônus recebido", "bonus taken"),
    "no_mistakes": (
        "Ninguno: cada jugada es óptima.",
        "Nenhum: cada jogada é ótima.",
        "None: every move is optimal.",
    ),
    "sample_game": ("Una partida", "Uma partida", "A sample game"),
    "sample_note": (
        "Dados de la semilla {seed}. Junto a cada decisión, la jugada óptima y lo que costó no elegirla.",
        "Dados da semente {seed}. Ao lado de cada decisão, a jogada ótima e o custo de não escolhê-la.",
        "Dice of seed {seed}. Beside each decision stands the optimal move, and what the choice cost.",
    ),
    "optimal_move": ("jugada óptima", "jogada ótima", "optimal move"),
    "same": ("la misma", "a mesma", "the same"),
    "move": ("jugada", "jogada", "move"),
    "cost": ("costo", "custo", "cost"),
    "ends": ("Puntaje final: {points}.", "Pontuação final: {points}.", "Final score: {points}."),
    "ends_won": (
        "Generala servida: gana en el acto. Puntaje final: {points}.",
        "General de primeira: vence na hora. Pontuação final: {points}.",
        "A served Generala wins at once. Final score: {points}.",
    ),
    "stochastic": (
        "agente que sortea sus jugadas",
        "agente que sorteia suas jogadas",
        "agent that samples its moves",
    ),
    "games_axis": ("% de las partidas", "% das partidas", "% of games"),
    "keeps_of": (
        "{agent} y el óptimo, {throw} {number}; libres: {boxes}",
        "{agent} e o ótimo, {throw} {number}; livres: {boxes}",
        "{agent} and the optimum, {throw} {number}; open: {boxes}",
    ),
    "keeps_key": (
        "Dado oscuro: se guarda; claro: se vuelve a tirar. Un nombre: se anota ese casillero. "
        "Con marco: pierde esos puntos, en {differ} de {throws} tiros.",
        "Dado escuro: guarda-se; claro: lança-se de novo. Um nome: marca-se essa casa. "
        "Com moldura: perde esses pontos, em {differ} de {throws} lançamentos.",
        "Dark dice are kept, light ones thrown again. A name: that box is closed. "
        "Framed: loses those points, on {differ} of {throws} throws.",
    ),
    "lost_axis": ("puntos perdidos por partida", "pontos perdidos por partida", "points lost per game"),
    "mean_of": (
        "{agent}: media {mean}, desvío {std}",
        "{agent}: média {mean}, desvio {std}",
        "{agent}: mean {mean}, s.d. {std}",
    ),
    "all_boxes": ("todos", "todas", "all"),
    "score_axis": ("puntaje final", "pontuação final", "final score"),
}
"""Sentences in Spanish, Portuguese and English, in the order of ``Language``."""


def texts(language: Language) -> dict[str, str]:
    """Return every text of a report in one language."""
    position = list(Language).index(language)
    return {key: versions[position] for key, versions in _TEXTS.items()}


def number(value: float, language: Language, digits: int = 2, *, sign: bool = False) -> str:
    """Format a number: decimal comma in Spanish and Portuguese, no minus zero."""
    rounded = round(float(value), digits) + 0.0
    text = f"{rounded:{'+' if sign else ''},.{digits}f}"
    if language is not Language.EN:
        text = text.translate(str.maketrans(",.", ".,"))
    return text.replace("-", "\N{MINUS SIGN}")
