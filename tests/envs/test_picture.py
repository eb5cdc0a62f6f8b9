"""Pictures: everything there is to see is drawn, legibly, at any size, and nothing of the game is touched."""

import unicodedata
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import ndimage

from generala_env.envs import picture
from generala_env.envs.board import Mark, closing_points, make_board
from generala_env.envs.dealing import DealtGame
from generala_env.envs.picture import (
    LARGEST,
    SMALLEST,
    THEMES,
    Colour,
    Frame,
    picture_grid,
    picture_shape,
    render_picture,
)
from generala_env.rules import PRESETS, get_variant
from generala_env.rules.actions import NUM_KEEP_ACTIONS, Close, Keep
from generala_env.rules.game import Game, GameState, Phase
from generala_env.rules.names import DiceSkin, Language, box_name
from tests.envs.positions import after


def positions(variant: str, num_players: int, seed: int = 0) -> Iterator[DealtGame]:
    """Go through a game of random moves, half of which close the best box of the throw."""
    dealt = DealtGame(get_variant(variant), num_players)
    dealt.start((seed, num_players))
    rng = np.random.default_rng(seed)
    yield dealt
    while not dealt.is_over:
        offers = closing_points(dealt.game.variant, dealt.state)
        if offers and rng.random() < 0.5:
            action = NUM_KEEP_ACTIONS + max(offers, key=lambda box: offers[box])
        else:
            action = int(rng.choice(np.flatnonzero(dealt.action_mask())))
        dealt.apply(action)
        yield dealt


# --- what is told ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", PRESETS)
def test_an_open_box_shows_what_closing_it_brings(variant: str) -> None:
    seen = set()
    for dealt in positions(variant, 2):
        if dealt.state.phase is not Phase.TURNS:
            continue
        seat = dealt.state.current_player
        board = make_board(dealt.game.variant, dealt.state, last_boxes=dealt.last_boxes)
        for box in range(dealt.game.variant.num_boxes):
            cell = board.rows[box][1][seat]
            seen.add(cell.mark)
            if Close(box) in dealt.game.legal_actions(dealt.state):
                brought = dealt.game.apply(dealt.state, Close(box)).scores[seat] - dealt.state.scores[seat]
                assert (cell.text, cell.mark) == (str(brought), Mark.PAYS if brought else Mark.STRIKES)
            else:
                assert cell.mark not in (Mark.PAYS, Mark.STRIKES)
    assert {Mark.PAYS, Mark.STRIKES, Mark.POINTS, Mark.STRUCK} <= seen


def test_the_last_move_is_told_with_its_player() -> None:
    told = [
        make_board(dealt.game.variant, dealt.state, last_boxes=dealt.last_boxes).last_move
        for dealt in positions("doble", 2, seed=4)
    ]
    assert told[0] == ""
    assert any(text.startswith("last move, player 1: close ") for text in told)
    assert any(text.startswith("last move, player 2: strike ") for text in told)
    assert any(text.startswith("last move, player 2: keep ") for text in told)
    assert all(told[1:])


def test_the_last_move_of_a_full_card_is_its_last_box() -> None:
    state, box = None, None
    for dealt in positions("clasica_obligada", 1):
        state, box = dealt.state, dealt.last_boxes[0]
    assert state is not None
    assert state.phase is Phase.OVER
    board = make_board(get_variant("clasica_obligada"), state, last_boxes=(box,), language="es")
    assert box == 9
    assert "Generala" in board.last_move
    assert [cells[0].is_last for _, cells in board.rows] == [False] * 9 + [True, False]


def test_a_playoff_shows_what_was_made_and_what_would_be() -> None:
    variant = get_variant("clasica_obligada").override(first_player="seat")
    game = Game(variant, 2)
    state = game.initial_state()
    while state.phase is not Phase.PLAYOFF:  # both close all boxes with the same dice
        state = game.apply_chance(state, (1, 1, 2, 3, 6))
        state = game.apply(state, game.legal_actions(state)[-1])
    state = game.apply_chance(state, (1, 6, 6, 6, 6))
    state = game.apply(state, game.legal_actions(state)[-1])
    state = game.apply_chance(state, (1, 2, 3, 4, 5))
    name, cells = make_board(variant, state).rows[-1]
    assert name == "playoff"
    assert [(cell.text, cell.mark) for cell in cells] == [("45", Mark.POINTS), ("25", Mark.PAYS)]


@pytest.mark.parametrize("option", [{"names": ("a", "b", "c")}, {"last_boxes": (1,)}])
def test_as_many_names_and_boxes_as_players(option: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(option))}: .* is not one for each of 2 players"):
        make_board(get_variant("ruibal"), after("ruibal", (1, 1, 2, 3, 6)), **option)  # type: ignore[arg-type]


# --- how it is drawn -------------------------------------------------------------------------------------


def place_of(frame: Frame, colour: Colour) -> np.ndarray:
    """Return where a colour is; (height, width) bool."""
    return np.asarray((frame == np.array(colour, dtype=np.uint8)).all(axis=2))


@pytest.mark.parametrize("variant", PRESETS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_variant_language_and_skin_is_drawn_within_its_margins(variant: str, theme: str) -> None:
    state = after(variant, (1, 1, 2, 3, 6), Close(0), (2, 3, 4, 4, 6), Keep(0b00110), (3, 4, 4, 5, 5))
    drawn = []
    for language in Language:
        for skin in DiceSkin:
            frame = render_picture(
                get_variant(variant), state, language=language, dice=skin, size=SMALLEST, theme=theme
            )
            assert frame.shape == picture_shape(SMALLEST) == (400, 320, 3)
            assert frame.dtype == np.uint8
            page = place_of(frame, THEMES[theme].page)
            for margin in (page[:5], page[-5:], page[:, :6], page[:, -6:]):
                assert margin.all()
            drawn.append(frame)
    assert len({frame.tobytes() for frame in drawn}) == len(drawn)


def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float, float, float, str]]:
    """Note the places (left, top, right, bottom, in units) of all texts that are drawn from now on."""
    boxes: list[tuple[float, float, float, float, str]] = []
    text = picture._Pen.text

    def note(
        pen: picture._Pen, x: float, y: float, words: str, size: float, colour: Colour, anchor: str = "l"
    ) -> None:
        if words and pen.image.height > pen.image.width:  # not a die
            wide = pen.length(words, size)
            left = x - wide * {"l": 0.0, "m": 0.5, "r": 1.0}[anchor]
            boxes.append((left, y - 0.36 * size, left + wide, y + 0.36 * size, words))
        text(pen, x, y, words, size, colour, anchor)

    monkeypatch.setattr(picture._Pen, "text", note)
    return boxes


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize(("variant", "num_players"), [*((name, 2) for name in PRESETS), ("clasica", 4)])
def test_no_text_is_cut_off_or_lies_on_another(
    variant: str, num_players: int, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes = written(monkeypatch)
    for number, dealt in enumerate(positions(variant, num_players)):
        if number % 7 and not dealt.is_over:
            continue
        boxes.clear()
        render_picture(
            dealt.game.variant,
            dealt.state,
            last_boxes=dealt.last_boxes,
            language=language,
            dice="poker",
            size=SMALLEST,
        )
        assert {box_name(box, language, "poker") for box in dealt.game.variant.boxes} <= {
            box[4] for box in boxes
        }
        for place, (left, top, right, bottom, words) in enumerate(boxes):
            assert left >= 4 and right <= 316 and top >= 4 and bottom <= 396, words  # noqa: PT018
            assert "…" not in words
            for other in boxes[:place]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, (
                    words,
                    other[4],
                )


def test_more_players_than_fit_are_counted_and_the_mover_is_among_those_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes = written(monkeypatch)
    for number, dealt in enumerate(positions("clasica", 12)):
        boxes.clear()
        render_picture(dealt.game.variant, dealt.state, size=SMALLEST)
        assert "+4" in [box[4] for box in boxes]
        assert str(dealt.state.current_player + 1) in [box[4] for box in boxes]
        if number == 30:
            break


@pytest.mark.parametrize("size", [SMALLEST, 321, 333, 640, 1200])
def test_any_size_is_the_same_picture(size: int) -> None:
    state = after("ruibal", (1, 1, 2, 3, 6), Keep(0b00011), (1, 1, 1, 4, 5))
    frame = render_picture(get_variant("ruibal"), state, size=size)
    assert frame.shape == picture_shape(size)
    assert frame.shape[0] % 2 == 0
    small = render_picture(get_variant("ruibal"), state, size=SMALLEST).astype(float).mean(axis=(0, 1))
    assert np.abs(frame.astype(float).mean(axis=(0, 1)) - small).max() < 4


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [SMALLEST, 1200])
def test_dice_show_their_pips_and_which_were_kept(theme: str, size: int) -> None:
    dice = (1, 2, 4, 5, 6)
    state = after("ruibal", (1, 2, 4, 4, 6), Keep(0b00011), dice)
    frame = render_picture(get_variant("ruibal"), state, size=size, theme=theme)
    tray = frame[round(50 / 320 * size) : round(96 / 320 * size)]
    colours = THEMES[theme]
    # Between pip and die, so that the smooth edges of the pips count to neither's disadvantage.
    is_dark = tray.max(axis=2) < (max(colours.pip) + max(colours.die)) / 2
    is_die = tray.min(axis=2) > min(colours.die) - 60
    shapes, count = ndimage.label(ndimage.binary_fill_holes(is_die))
    sizes = ndimage.sum_labels(np.ones(shapes.shape), shapes, np.arange(1, count + 1))
    large = [index + 1 for index, pixels in enumerate(sizes) if pixels > 0.5 * max(sizes)]
    pips = [ndimage.label(is_dark & ndimage.binary_fill_holes(shapes == index))[1] for index in large]
    assert pips == list(dice)
    gold = place_of(tray, colours.gold).nonzero()[1]
    assert gold.max() < 0.4 * size
    assert gold.min() < 0.15 * size


def test_poker_dice_differ_from_one_another_and_from_pips() -> None:
    def shown(face: int, skin: str) -> bytes:
        state = after("ruibal", (face,) * 3 + (6, 6) if face < 6 else (1, 1, 6, 6, 6))
        return render_picture(get_variant("ruibal"), state, dice=skin)[80:150].tobytes()

    assert len({shown(face, skin) for face in range(1, 7) for skin in DiceSkin}) == 12


def luminance(colour: Colour) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("front", "back", "least"),
    [
        *(("text", back, 7.0) for back in ("page", "panel", "stripe", "current", "won", "last")),
        *(("muted", back, 4.5) for back in ("page", "panel", "stripe", "won")),
        ("on_tray", "tray", 4.5),
        ("on_gold", "gold", 4.5),
        ("gold", "tray", 3.0),
        ("pays", "pays_back", 4.5),
        *(("strikes", back, 4.5) for back in ("panel", "stripe", "current")),
        ("pip", "die", 7.0),
        ("die", "tray", 3.0),
    ],
)
def test_what_is_written_stands_out(theme: str, front: str, back: str, least: float) -> None:
    """The contrast ratio of the web's accessibility guidelines (WCAG 2.2, 1.4.3)."""
    colours = THEMES[theme]._asdict()
    light, dark = sorted((luminance(colours[front]), luminance(colours[back])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= least


@pytest.mark.parametrize("accented", ["é", "í", "ó", "ú", "ñ", "ã", "õ", "â", "ê", "ô", "à", "ü", "Ú"])
def test_accents_stand_above_their_letters(accented: str) -> None:
    plain = unicodedata.normalize("NFD", accented)[0]
    with_accent = np.asarray(picture._text_mask(accented, 40))
    without = np.asarray(picture._text_mask(plain, 40))
    assert with_accent.shape == without.shape
    rows = np.flatnonzero((with_accent != without).any(axis=1))
    assert rows.size
    letter = np.flatnonzero(without.any(axis=1))
    top = letter[0] if plain != "i" else letter[0] + 12  # the dot makes room
    assert rows.max() <= top
    assert with_accent[: top + 1].any()


def test_a_cedilla_hangs_below_its_letter() -> None:
    with_accent, without = (np.asarray(picture._text_mask(letter, 40)) for letter in "çc")
    rows = np.flatnonzero((with_accent != without).any(axis=1))
    assert rows.min() >= np.flatnonzero(without.any(axis=1))[-1] - 2


def test_letters_that_the_font_lacks_are_question_marks() -> None:
    assert picture._text_mask("投", 20).tobytes() == picture._text_mask("?", 20).tobytes()


def test_a_long_name_is_cut_short() -> None:
    state = after("ruibal", (1, 1, 2, 3, 6))
    frame = render_picture(get_variant("ruibal"), state, names=("a" * 300, "b"), size=SMALLEST)
    assert place_of(frame, THEMES["light"].page)[:, -6:].all()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"size": 319}, "render_size: 319 is not a whole number of pixels from 320 to 4096"),
        ({"size": LARGEST + 1}, "render_size: 4097 "),
        ({"size": 400.0}, "render_size: 400.0 "),
        ({"size": True}, "render_size: True "),
        ({"theme": "neon"}, "render_theme: 'neon' is not one of light, dark"),
        ({"language": "fr"}, "language: 'fr'"),
        ({"dice": "wooden"}, "wooden"),
    ],
)
def test_an_unknown_option_is_named(option: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render_picture(get_variant("ruibal"), after("ruibal", (1, 1, 2, 3, 6)), **option)  # type: ignore[arg-type]


def test_a_state_before_its_throw_and_a_roll_off_are_drawn_without_dice() -> None:
    game = Game(get_variant("clasica"), 3)
    states: list[GameState] = [game.initial_state(), after("ruibal", (1, 1, 2, 3, 6), Keep(1))]
    for state, variant in zip(states, ("clasica", "ruibal"), strict=True):
        assert not state.turn.dice
        frame = render_picture(get_variant(variant), state)
        assert not place_of(frame, THEMES["light"].die).any()


# --- grids -------------------------------------------------------------------------------------------------


def test_a_grid_holds_every_picture_in_reading_order() -> None:
    frames = [np.full((40, 32, 3), number, dtype=np.uint8) for number in range(1, 6)]
    grid = picture_grid(frames, columns=2, gap=3)
    assert grid.shape == (3 * 43 - 3, 2 * 35 - 3, 3)
    for number in range(1, 6):
        row, column = divmod(number - 1, 2)
        assert (grid[row * 43 : row * 43 + 40, column * 35 : column * 35 + 32] == number).all()
    assert (grid[40:43] == 1).all()
    assert (grid[86:, 35:] == 1).all()


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (4, 3), (9, 4), (12, 4)])
def test_a_grid_is_as_near_to_a_square_as_can_be(count: int, columns: int) -> None:
    assert picture_grid([np.zeros((40, 32, 3), np.uint8)] * count).shape[1] == 32 * columns


@pytest.mark.parametrize("shapes", [[], [(4, 4, 3), (4, 5, 3)]])
def test_a_grid_needs_pictures_of_one_shape(shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match=f"frames: {len(shapes)} pictures"):
        picture_grid([np.zeros(shape, np.uint8) for shape in shapes])


def test_keeps_are_told_as_the_dice_are_labelled() -> None:
    state = after("ruibal", (1, 1, 2, 3, 6), Keep(0b10011), (1, 1, 3, 4, 6))
    assert make_board(get_variant("ruibal"), state, language="es", dice="poker").last_move == (
        "última jugada, jugador 1: guardar 9 9 A"
    )
    nothing = after("ruibal", (1, 1, 2, 3, 6), Keep(0), (1, 1, 3, 4, 6))
    assert make_board(get_variant("ruibal"), nothing).last_move == "last move, player 1: throw all five"
