"""What the page says, in Spanish, Portuguese and English."""

from __future__ import annotations

from typing import Any, Final

from agents.games.words import SHARED_TEXTS, Texts, in_language
from generala_env.rules.boxes import Box
from generala_env.rules.dice import FACES
from generala_env.rules.names import WORD_KEYS, DiceSkin, Language, box_name, face_label, word

PAGE_TEXTS: Final[Texts] = {
    # The frame
    "skip": ("Ir al contenido", "Ir ao conteúdo", "Skip to content"),
    "parts": ("Secciones", "Seções", "Sections"),
    "play": ("Jugar", "Jogar", "Play"),
    "watch": ("Mirar", "Assistir", "Watch"),
    "daily": ("Partida del día", "Partida do dia", "Daily deal"),
    "review": ("Revisar", "Rever", "Review"),
    "language": ("Idioma", "Idioma", "Language"),
    "dice_skin": ("Tipo de dados", "Tipo de dados", "Kind of dice"),
    "skin_standard": ("Dados comunes", "Dados comuns", "Plain dice"),
    "skin_poker": ("Dados de póker", "Dados de pôquer", "Poker dice"),
    "no_connection": (
        "Sin conexión con el servidor. Se sigue intentando; la partida está guardada.",
        "Sem conexão com o servidor. Tentando de novo; a partida está salva.",
        "No connection to the server. Trying again; the game is kept.",
    ),
    "not_shown": ("No se puede mostrar", "Não é possível mostrar", "Cannot be shown"),
    "refused_not_found": (
        "Esa partida no está aquí.",
        "Essa partida não está aqui.",
        "That game is not here.",
    ),
    "refused_foreign": (
        "El pedido vino de otra página.",
        "O pedido veio de outra página.",
        "The request came from another page.",
    ),
    "refused_too_large": (
        "El archivo es demasiado grande.",
        "O arquivo é grande demais.",
        "The file is too large.",
    ),
    "refused_too_many": (
        "Ya hay demasiadas partidas guardadas.",
        "Já há partidas demais guardadas.",
        "Too many games are kept already.",
    ),
    "refused_disk": (
        "El servidor no pudo guardar la partida: {message}.",
        "O servidor não conseguiu salvar a partida: {message}.",
        "The server could not keep the game: {message}.",
    ),
    # Before a game
    "new_game": ("Partida nueva", "Nova partida", "New game"),
    "new_watch": ("Mirar una partida", "Assistir a uma partida", "Watch a game"),
    "who_plays": ("Quiénes juegan", "Quem joga", "Who plays"),
    "how_many": ("Cuántos juegan", "Quantos jogam", "How many play"),
    "alone": ("Solo", "Sozinho", "Alone"),
    "seat": ("Lugar {number}", "Lugar {number}", "Seat {number}"),
    "a_person": ("Una persona", "Uma pessoa", "A person"),
    "a_run": ("Agente entrenado (carpeta)", "Agente treinado (pasta)", "A trained agent (folder)"),
    "name_optional": ("nombre (opcional)", "nome (opcional)", "name (optional)"),
    "agent_random": ("al azar", "ao acaso", "at random"),
    "agent_tips": ("consejos de una persona", "dicas de uma pessoa", "a person's rules of thumb"),
    "agent_turn_greedy": ("lo mejor de este turno", "o melhor desta vez", "the best of this turn"),
    "agent_optimal": ("perfecto a puntos", "perfeito em pontos", "perfect for points"),
    "agent_solo_optimal": ("perfecto a puntos", "perfeito em pontos", "perfect for points"),
    "agent_race": ("juega a ganar", "joga para ganhar", "plays to end ahead"),
    "agent_duel_optimal": (
        "perfecto de a dos, si está resuelto",
        "perfeito a dois, se estiver resolvido",
        "perfect for two, where solved",
    ),
    "change_rules": ("Cambiar reglas y dados", "Mudar regras e dados", "Change rules and dice"),
    "overrides_label": (
        "Una regla por línea, CAMPO=VALOR",
        "Uma regra por linha, CAMPO=VALOR",
        "One rule a line, FIELD=VALUE",
    ),
    "fields": ("Campos: {names}", "Campos: {names}", "Fields: {names}"),
    "seed_label": ("Semilla de los dados", "Semente dos dados", "Seed of the dice"),
    "drawn": ("al azar", "ao acaso", "drawn"),
    "fact_boxes": ("{count} casilleros", "{count} casas", "{count} boxes"),
    "fact_generala": ("Generala {points}", "General {points}", "Generala {points}"),
    "fact_doble_box": ("Doble {points}", "Dobrado {points}", "Doble {points}"),
    "fact_doble_bonus": (
        "Doble de regalo {points}",
        "Dobrado de bônus {points}",
        "Doble as a bonus of {points}",
    ),
    "fact_served": ("servido +{points}", "de primeira +{points}", "served +{points}"),
    "fact_wins_always": (
        "la Generala servida gana",
        "o General de primeira ganha",
        "a served Generala wins",
    ),
    "fact_wins_unless_struck": (
        "la Generala servida gana si no está tachada",
        "o General de primeira ganha se não riscado",
        "a served Generala wins unless struck",
    ),
    "fact_wins_if_open": (
        "la Generala servida gana si está libre",
        "o General de primeira ganha se livre",
        "a served Generala wins if open",
    ),
    "fact_wins_never": (
        "la Generala servida no gana sola",
        "o General de primeira não ganha sozinho",
        "a served Generala does not win by itself",
    ),
    "fact_locked": ("dados fijos", "dados fixos", "kept dice are locked"),
    "fact_forced": ("en el orden de la planilla", "na ordem da cartela", "boxes in card order"),
    "start": ("Empezar", "Começar", "Start"),
    "start_watch": ("Mirar", "Assistir", "Watch"),
    "start_daily": ("Jugar la partida del día", "Jogar a partida do dia", "Play the daily deal"),
    "your_games": ("Tus partidas", "Suas partidas", "Your games"),
    "your_deals": ("Tus partidas del día", "Suas partidas do dia", "Your daily deals"),
    "no_games": ("Todavía ninguna.", "Nenhuma ainda.", "None yet."),
    "go_on": ("Seguir", "Continuar", "Go on"),
    "result": ("Resultado", "Resultado", "Result"),
    "damaged": ("Archivo dañado: {message}", "Arquivo danificado: {message}", "Damaged file: {message}"),
    # The table
    "table": ("Mesa", "Mesa", "Table"),
    "your_turn": ("Te toca", "Sua vez", "Your turn"),
    "turn_of": ("Juega {name}", "Joga {name}", "{name} to play"),
    "round_of": ("Ronda {round} de {rounds}", "Rodada {round} de {rounds}", "Round {round} of {rounds}"),
    "throw_of": ("tiro {throw} de {throws}", "lançamento {throw} de {throws}", "throw {throw} of {throws}"),
    "thrown": ("Tiro {throw}: {dice}", "Lançamento {throw}: {dice}", "Throw {throw}: {dice}"),
    "die_label": ("Dado {place}: {face}", "Dado {place}: {face}", "Die {place}: {face}"),
    "kept_one": ("queda", "fica", "kept"),
    "choose_box": ("Elegí un casillero", "Escolha uma casa", "Choose a box"),
    "choose_box_or_throw": (
        "Elegí un casillero o soltá un dado",
        "Escolha uma casa ou solte um dado",
        "Choose a box, or let a die go",
    ),
    "thinking": ("Juega el agente…", "O agente joga…", "The agent plays…"),
    "doble_bonus": ("Doble (extra)", "Dobrado (bônus)", "Doble (bonus)"),
    "what_happened": ("Lo que pasó", "O que houve", "What happened"),
    "nothing_yet": ("Nada todavía.", "Nada ainda.", "Nothing yet."),
    "keys": ("Con el teclado", "Com o teclado", "With the keyboard"),
    "keys_text": (
        "1 a 5 guardan o sueltan un dado. Tab va a los casilleros; Enter elige, otra vez Enter anota. "
        "Esc suelta todo.",
        "1 a 5 guardam ou soltam um dado. Tab vai às casas; Enter escolhe, Enter de novo marca. "
        "Esc solta tudo.",
        "1 to 5 keep a die or let it go. Tab reaches the boxes; Enter chooses one, Enter again writes it. "
        "Esc lets everything go.",
    ),
    "download": ("Descargar partida", "Baixar a partida", "Download the game"),
    "over_alone": ("{points} puntos", "{points} pontos", "{points} points"),
    "over_winner": ("Gana {name}", "Ganha {name}", "Winner: {name}"),
    "over_draw": ("Empate: {names}", "Empate: {names}", "Draw: {names}"),
    "again": ("Otra vez", "Outra vez", "Play again"),
    "review_it": ("Revisar", "Rever", "Review"),
    # The coach
    "coach": ("Ayuda", "Treinador", "Coach"),
    "coach_off": ("No", "Não", "Off"),
    "coach_before": ("Antes", "Antes", "Before"),
    "coach_after": ("Después", "Depois", "After"),
    "coach_off_hint": (
        "Puede mostrar cuánto vale cada opción antes de elegir, o qué costó lo elegido.",
        "Pode mostrar quanto vale cada opção antes da escolha, ou o que custou a escolhida.",
        "It can show what every option is worth before you choose, or what your choice cost.",
    ),
    "coach_after_hint": (
        "Después de cada elección dice cuánto costó y por qué.",
        "Depois de cada escolha diz quanto custou e por quê.",
        "After each choice it says what that cost, and why.",
    ),
    "to_come": ("por venir", "por vir", "to come"),
    "all_choices": ("Las {count} opciones", "As {count} opções", "All {count} options"),
    "fewer_choices": ("Menos", "Menos", "Fewer"),
    "throw_rest": ("tirar {count}", "lançar {count}", "throw {count}"),
    "by_points": (
        "Puntos por venir con juego perfecto, exactos.",
        "Pontos por vir com jogo perfeito, exatos.",
        "Points to come under perfect play, exact.",
    ),
    "by_duel": (
        "Probabilidad de ganar exacta: el juego de a dos está resuelto.",
        "Probabilidade de ganhar exata: o jogo a dois está resolvido.",
        "Chances of winning are exact: the game of two is solved.",
    ),
    "by_race": (
        "Probabilidad de ganar estimada: se supone que después todos juegan a puntos.",
        "Probabilidade de ganhar estimada: supõe-se que depois todos jogam por pontos.",
        "Chances of winning are estimates: everybody is taken to play for points after this turn.",
    ),
    "points_cost": ("{value} puntos", "{value} pontos", "{value} points"),
    "was_best": ("La mejor opción", "A melhor opção", "The best choice"),
    "it_costs": ("Cuesta {cost}", "Custa {cost}", "Costs {cost}"),
    "wins_figure": ("gana {value}", "ganha {value}", "wins {value}"),
    "turn_figure": ("este turno {value}", "nesta vez {value}", "this turn {value}"),
    "later_figure": ("después {value}", "depois {value}", "later {value}"),
    "turn_ends": ("termina en", "termina em", "ends in"),
    "why_both": (
        "Lo mejor trae {now} puntos más en este turno y {later} más después.",
        "O melhor traz {now} pontos a mais nesta vez e {later} a mais depois.",
        "The best brings {now} more points this turn and {later} more later.",
    ),
    "why_now": (
        "Lo mejor trae {now} puntos más en este turno, contra {later} menos después.",
        "O melhor traz {now} pontos a mais nesta vez, contra {later} a menos depois.",
        "The best brings {now} more points this turn, against {later} fewer later.",
    ),
    "why_later": (
        "Lo mejor trae {now} puntos menos en este turno, pero deja {later} más para después.",
        "O melhor traz {now} pontos a menos nesta vez, mas deixa {later} a mais para depois.",
        "The best brings {now} fewer points this turn, but leaves {later} more for later.",
    ),
    "why_more_points": (
        "Lo mejor también promete {points} puntos más.",
        "O melhor também promete {points} pontos a mais.",
        "The best also promises {points} more points.",
    ),
    "why_fewer_points": (
        "Lo mejor promete {points} puntos menos, y aun así gana más veces: cuenta terminar adelante.",
        "O melhor promete {points} pontos a menos, e ainda assim ganha mais vezes: conta terminar na frente.",
        "The best promises {points} fewer points and still wins more often: what counts is to end ahead.",
    ),
    # Watching and reviewing
    "run": ("▶ Seguir", "▶ Seguir", "▶ Play on"),
    "pause": ("⏸ Pausa", "⏸ Pausa", "⏸ Pause"),
    "one_step": ("Un paso", "Um passo", "One step"),
    "speed": ("Velocidad", "Velocidade", "Speed"),
    "speed_slow": ("lenta", "lenta", "slow"),
    "speed_normal": ("normal", "normal", "normal"),
    "speed_fast": ("rápida", "rápida", "fast"),
    "speed_instant": ("sin pausas", "sem pausas", "no pauses"),
    "regret_so_far": ("Costo de las decisiones", "Custo das decisões", "What decisions have cost"),
    "good_of": ("{good} de {count} óptimas", "{good} de {count} ótimas", "{good} of {count} optimal"),
    "review_text": (
        "Una partida guardada, de aquí o de scripts/play.py, decisión por decisión: cuánto costó cada una y "
        "qué habría sido mejor.",
        "Uma partida salva, daqui ou de scripts/play.py, decisão por decisão: quanto custou cada uma e o que "
        "teria sido melhor.",
        "A saved game, from here or from scripts/play.py, decision by decision: what each cost, and what "
        "would have been better.",
    ),
    "file": ("Archivo de la partida (.jsonl)", "Arquivo da partida (.jsonl)", "File of the game (.jsonl)"),
    "decision": ("Decisión", "Decisão", "Decision"),
    "back": ("Decisión anterior", "Decisão anterior", "Decision before"),
    "on": ("Decisión siguiente", "Decisão seguinte", "Next decision"),
    "no_choice": ("No había nada que elegir.", "Não havia o que escolher.", "There was nothing to choose."),
    "no_mistakes": ("Ningún error.", "Nenhum erro.", "No mistakes."),
    "worst": ("Los errores más caros", "Os erros mais caros", "The dearest mistakes"),
    "round_throw": (
        "ronda {round}, tiro {throw}",
        "rodada {round}, lançamento {throw}",
        "round {round}, throw {throw}",
    ),
    "regret_points": (
        "Puntos que las decisiones regalaron.",
        "Pontos que as decisões deram de presente.",
        "Points that decisions gave away.",
    ),
    "regret_wins": (
        "Probabilidad de ganar que las decisiones regalaron, sumada.",
        "Probabilidade de ganhar que as decisões deram de presente, somada.",
        "Chance of winning that decisions gave away, summed.",
    ),
    # The deal of the day
    "daily_title": ("{day} · {variant}", "{day} · {variant}", "{day} · {variant}"),
    "daily_text": (
        "Los mismos dados para todo el mundo, según el día y las reglas. Se juega una vez, sin ayuda, y al "
        "final se compara con el juego perfecto.",
        "Os mesmos dados para todo mundo, segundo o dia e as regras. Joga-se uma vez, sem ajuda, e no fim "
        "se compara com o jogo perfeito.",
        "The same dice for everybody, from the day and the rules. It is played once, without help, and "
        "compared with perfect play at the end.",
    ),
    "daily_quiet": (
        "La partida del día se juega sin ayuda.",
        "A partida do dia se joga sem ajuda.",
        "The daily deal is played without help.",
    ),
    "day": ("Día", "Dia", "Day"),
    "daily_score": ("Tu puntaje", "Sua pontuação", "Your score"),
    "daily_optimal": ("El agente óptimo", "O agente ótimo", "The optimal agent"),
    "daily_optimal_note": ("con los mismos dados", "com os mesmos dados", "with the same dice"),
    "daily_expected": ("Óptimo esperado", "Ótimo esperado", "Expected optimum"),
    "daily_expected_note": ("sin suerte", "sem sorte", "without luck"),
    "daily_regret": ("Tus errores", "Seus erros", "Your mistakes"),
    "daily_regret_note": (
        "{good} de {count} decisiones óptimas",
        "{good} de {count} decisões ótimas",
        "{good} of {count} decisions optimal",
    ),
    "daily_luck": ("Tu suerte", "Sua sorte", "Your luck"),
    "daily_luck_note": ("lo que queda", "o que sobra", "what is left over"),
}
"""Sentences of the page alone."""

_WORDS: Final = tuple(key for key in WORD_KEYS if key not in PAGE_TEXTS and key not in SHARED_TEXTS)


def page_words(language: Language, skin: DiceSkin) -> dict[str, Any]:
    """Return everything that the page says in a language, with the names of boxes and faces.

    Args:
        language: The language.
        skin: What the dice show.
    """
    return {
        "language": language.value,
        "texts": {
            **{key: word(key, language) for key in _WORDS},
            **in_language(SHARED_TEXTS, language),
            **in_language(PAGE_TEXTS, language),
        },
        "boxes": {box.value: box_name(box, language, skin) for box in Box},
        "faces": [face_label(face, skin) for face in FACES],
    }
