"""The board as a picture: one drawing for every environment, any size, light and dark.

Lengths are in units of which a picture is 320 wide and 400 high, so that every size is the same picture.
What does not change from frame to frame (panels, dice, words) is drawn once and kept.

pillow is needed from the first picture on. Its built-in font, Aileron, comes with it, so that no font of
the system is used and the picture is the same everywhere; that font has no accented letters, which are
put together here from a letter and a stroke.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from generala_env.envs.board import Board, Cell, Die, Mark, make_board
from generala_env.rules.game import GameState
from generala_env.rules.names import DiceSkin, face_label
from generala_env.rules.variants import Variant

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError:  # the games are played without it
    _HAS_PILLOW = False
else:
    _HAS_PILLOW = True

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Frame = NDArray[np.uint8]
"""(height, width, 3) uint8, red, green and blue."""

INSTALL: Final = 'pip install "generala-env[render]"'
"""What brings everything that pictures, windows and films need."""

SMALLEST, LARGEST, DEFAULT_SIZE = 320, 4096, 480
"""Limits of a picture's width and what it is otherwise, in pixels."""

WIDTH, HEIGHT = 320, 400
"""A picture's sides in units."""

MOST_COLUMNS: Final = 8
"""How many players' columns fit side by side; of more, those around the player to move are shown."""

Colour = tuple[int, int, int]


class Theme(NamedTuple):
    """The colours of a picture.

    Attributes:
        page: Behind everything.
        text: What is read.
        muted: What matters less.
        panel: The card.
        stripe: Every other row of it.
        line: Its rules and its border.
        current: The column of the player to move.
        won: The column of a winner.
        last: Behind what was written last.
        pays: What a box would pay now.
        pays_back: Behind it.
        strikes: What would be struck now.
        tray: The felt under the dice.
        on_tray: Text on it.
        gold: Dice set aside, and a served throw.
        on_gold: Text on that.
        die: The dice.
        die_edge: Their border.
        pip: Their pips.
    """

    page: Colour
    text: Colour
    muted: Colour
    panel: Colour
    stripe: Colour
    line: Colour
    current: Colour
    won: Colour
    last: Colour
    pays: Colour
    pays_back: Colour
    strikes: Colour
    tray: Colour
    on_tray: Colour
    gold: Colour
    on_gold: Colour
    die: Colour
    die_edge: Colour
    pip: Colour


THEMES: Final = {
    "light": Theme(
        page=(243, 239, 230),
        text=(33, 37, 41),
        muted=(92, 98, 106),
        panel=(255, 255, 255),
        stripe=(248, 246, 241),
        line=(214, 207, 193),
        current=(231, 243, 236),
        won=(252, 240, 205),
        last=(250, 226, 160),
        pays=(8, 99, 62),
        pays_back=(203, 232, 215),
        strikes=(158, 56, 38),
        tray=(28, 105, 74),
        on_tray=(240, 246, 240),
        gold=(245, 196, 81),
        on_gold=(58, 40, 4),
        die=(253, 251, 245),
        die_edge=(196, 188, 172),
        pip=(36, 38, 43),
    ),
    "dark": Theme(
        page=(20, 23, 28),
        text=(234, 237, 241),
        muted=(158, 167, 179),
        panel=(30, 35, 42),
        stripe=(35, 41, 49),
        line=(58, 66, 77),
        current=(33, 52, 46),
        won=(66, 56, 26),
        last=(84, 67, 21),
        pays=(134, 232, 181),
        pays_back=(24, 84, 59),
        strikes=(249, 164, 145),
        tray=(21, 70, 52),
        on_tray=(228, 240, 232),
        gold=(240, 190, 76),
        on_gold=(48, 33, 3),
        die=(240, 237, 228),
        die_edge=(120, 116, 106),
        pip=(28, 30, 34),
    ),
}
"""By name."""

_SMOOTH: Final = 4
"""How much larger shapes are drawn than they are shown."""

_PIPS: Final = {
    1: ((0, 0),),
    2: ((-1, -1), (1, 1)),
    3: ((-1, -1), (0, 0), (1, 1)),
    4: ((-1, -1), (-1, 1), (1, -1), (1, 1)),
    5: ((-1, -1), (-1, 1), (0, 0), (1, -1), (1, 1)),
    6: ((-1, -1), (-1, 0), (-1, 1), (1, -1), (1, 0), (1, 1)),
}
"""Where the pips of each face are, from its middle."""

_CEDILLA, _DIAERESIS = "\N{COMBINING CEDILLA}", "\N{COMBINING DIAERESIS}"

_STROKES: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "\N{COMBINING ACUTE ACCENT}": ((-0.03, 0.0), (0.09, 0.14)),
    "\N{COMBINING GRAVE ACCENT}": ((-0.09, 0.14), (0.03, 0.0)),
    "\N{COMBINING CIRCUMFLEX ACCENT}": ((-0.11, 0.0), (0.0, 0.12), (0.11, 0.0)),
    "\N{COMBINING TILDE}": ((-0.13, 0.02), (-0.07, 0.08), (0.05, 0.03), (0.12, 0.1)),
    _CEDILLA: ((0.0, 0.0), (0.07, -0.1), (-0.04, -0.16)),
    _DIAERESIS: ((-0.1, 0.06), (0.1, 0.06)),
}
"""Accents as lines, in parts of the size of the text: to the right and up, from the middle of the letter."""


def check_picture(size: int, theme: str) -> None:
    """Check the options of pictures.

    Raises:
        ValueError: The size is not a whole number within the limits, or there is no such theme.
    """
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or not SMALLEST <= size <= LARGEST:
        raise ValueError(
            f"render_size: {size!r} is not a whole number of pixels from {SMALLEST} to {LARGEST}"
        )
    if theme not in THEMES:
        raise ValueError(f"render_theme: {theme!r} is not one of {', '.join(THEMES)}")


def require_pillow() -> None:
    """Check that pictures can be drawn.

    Raises:
        gymnasium.error.DependencyNotInstalled: pillow is not installed.
    """
    if not _HAS_PILLOW:
        raise DependencyNotInstalled(f"pictures need pillow, which is not installed: {INSTALL}")


# --- text -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise DependencyNotInstalled(f"this pillow was built without FreeType: {INSTALL}")
    return font


@lru_cache(maxsize=1024)
def _has_glyph(letter: str) -> bool:
    font = _font(32)
    return letter.isspace() or bytes(font.getmask(letter)) != bytes(font.getmask("\uffff"))


def _letters(text: str) -> list[tuple[str, str]]:
    """Split a text into letters that the font has and the accents on each."""
    letters: list[tuple[str, str]] = []
    for mark in unicodedata.normalize("NFD", text):
        if mark in _STROKES and letters:
            letters[-1] = (letters[-1][0], letters[-1][1] + mark)
        elif not unicodedata.combining(mark):
            letters.append((mark if _has_glyph(mark) else "?", ""))
    return letters


@lru_cache(maxsize=4096)
def _text_length(text: str, size: int) -> float:
    """Return how wide a text is, in pixels and parts of one."""
    return _font(size * _SMOOTH).getlength("".join(letter for letter, _ in _letters(text))) / _SMOOTH


@lru_cache(maxsize=4096)
def _text_mask(text: str, size: int) -> Picture:
    """Draw a text in white on black, as wide as it runs and as high as the font."""
    # Drawn large, so that the small letters' places are not rounded to whole pixels.
    size *= _SMOOTH
    font, letters = _font(size), _letters(text)
    plain = "".join(letter for letter, _ in letters)
    ascent, descent = font.getmetrics()
    width, height = (-(-math.ceil(side) // _SMOOTH) for side in (font.getlength(plain), ascent + descent))
    large = Image.new("L", (width * _SMOOTH, height * _SMOOTH))
    draw = ImageDraw.Draw(large)
    draw.text((0, 0), plain, font=font, fill=255)
    for place, (letter, accents) in enumerate(letters):
        left, advance = font.getlength(plain[:place]), font.getlength(letter)
        middle = left + advance / 2
        is_dotted = letter == "i" and any(accent != _CEDILLA for accent in accents)
        top = font.getbbox("x" if is_dotted else letter)[1]
        if is_dotted:  # the accent takes the place of the dot
            draw.rectangle((round(left), 0, round(left + advance), math.floor(top) - 1), fill=0)
        for accent in accents:
            y = ascent if accent == _CEDILLA else top - 0.06 * size
            points = [(middle + right * size, y - up * size) for right, up in _STROKES[accent]]
            thick = 0.075 * size
            if accent == _DIAERESIS:
                for right, down in points:
                    draw.ellipse(
                        (right - 0.7 * thick, down - 0.7 * thick, right + 0.7 * thick, down + 0.7 * thick),
                        fill=255,
                    )
            else:
                draw.line(points, fill=255, width=max(1, round(thick)), joint="curve")
    return large.resize((width, height), Image.Resampling.BOX)


# --- shapes, drawn large and made small ---------------------------------------------------------------------


@lru_cache(maxsize=256)
def _rounded(width: int, height: int, radius: float) -> Picture:
    """Return a mask of a rectangle with round corners."""
    large = Image.new("L", (width * _SMOOTH, height * _SMOOTH))
    ImageDraw.Draw(large).rounded_rectangle(
        (0, 0, width * _SMOOTH - 1, height * _SMOOTH - 1), radius * _SMOOTH, fill=255
    )
    return large.resize((width, height), Image.Resampling.BOX)


@lru_cache(maxsize=64)
def _star(size: int) -> Picture:
    large = Image.new("L", (size * _SMOOTH, size * _SMOOTH))
    middle = size * _SMOOTH / 2
    corners = [
        (
            middle + math.sin(corner * math.pi / 5) * middle * (0.42 if corner % 2 else 1.0),
            middle - math.cos(corner * math.pi / 5) * middle * (0.42 if corner % 2 else 1.0),
        )
        for corner in range(10)
    ]
    ImageDraw.Draw(large).polygon(corners, fill=255)
    return large.resize((size, size), Image.Resampling.BOX)


@lru_cache(maxsize=256)
def _die(face: int, is_kept: bool, size: int, skin: DiceSkin, theme: Theme) -> Picture:
    """Draw a die on the felt, with room for a ring all around: a tenth of its size."""
    margin = max(2, size // 10)
    side = size + 2 * margin
    large = Image.new("RGB", (side * _SMOOTH, side * _SMOOTH), theme.tray)
    draw = ImageDraw.Draw(large)
    low, high, radius = margin * _SMOOTH, (margin + size) * _SMOOTH, 0.2 * size * _SMOOTH
    shade = tuple(round(0.72 * part) for part in theme.tray)
    drop = 0.05 * size * _SMOOTH
    draw.rounded_rectangle((low, low + drop, high, high + drop), radius, fill=shade)
    if is_kept:
        ring = 0.075 * size * _SMOOTH
        draw.rounded_rectangle(
            (low - ring, low - ring, high + ring, high + ring), radius + ring, fill=theme.gold
        )
    draw.rounded_rectangle((low, low, high, high), radius, fill=theme.die_edge)
    edge = max(_SMOOTH * 0.75, 0.025 * size * _SMOOTH)
    draw.rounded_rectangle((low + edge, low + edge, high - edge, high - edge), radius - edge, fill=theme.die)
    middle = side * _SMOOTH / 2
    if skin is DiceSkin.STANDARD:
        pip, step = 0.092 * size * _SMOOTH, 0.255 * size * _SMOOTH
        for right, down in _PIPS[face]:
            x, y = middle + right * step, middle + down * step
            draw.ellipse((x - pip, y - pip, x + pip, y + pip), fill=theme.pip)
    small = large.resize((side, side), Image.Resampling.BOX)
    if skin is not DiceSkin.STANDARD:
        _Pen(small, theme, 1.0).text(side / 2, side / 2, face_label(face, skin), 0.5 * size, theme.pip, "m")
    return small


class _Pen:
    """Draws on a picture in units.

    Attributes:
        image: The picture.
        theme: Its colours.
        scale: Pixels of a unit.
    """

    def __init__(self, image: Picture, theme: Theme, scale: float) -> None:
        self.image = image
        self.theme = theme
        self.scale = scale

    def pixels(self, size: float) -> int:
        """Return a length in pixels, at least one."""
        return max(1, round(size * self.scale))

    def length(self, text: str, size: float) -> float:
        """Return how many units a text is wide."""
        return _text_length(text, self.pixels(size)) / self.scale

    def fitting(self, text: str, size: float, room: float, smallest: float) -> float | None:
        """Return the largest size up to ``size`` at which a text fits, or ``None``: it does not."""
        while size >= smallest:
            if self.length(text, size) <= room:
                return size
            size -= 0.5
        return None

    def text(self, x: float, y: float, text: str, size: float, colour: Colour, anchor: str = "l") -> None:
        """Write a text whose capitals are centred on ``y``; ``anchor`` is l, m or r."""
        if not text:
            return
        font_size = self.pixels(size)
        length = _text_length(text, font_size)
        left = x * self.scale - length * {"l": 0.0, "m": 0.5, "r": 1.0}[anchor]
        box = _font(font_size * _SMOOTH).getbbox("H")
        top = y * self.scale - (box[1] + box[3]) / 2 / _SMOOTH
        self.image.paste(colour, (round(left), round(top)), _text_mask(text, font_size))

    def fitted(
        self, x: float, y: float, text: str, size: float, room: float, colour: Colour, anchor: str = "l"
    ) -> None:
        """Write a text no wider than ``room``: smaller, and cut short where even that is too wide."""
        smallest = 0.72 * size
        fits = self.fitting(text, size, room, smallest)
        while fits is None and text:
            text = text.rstrip("…")[:-1].rstrip()
            fits = smallest if self.length(f"{text}…", smallest) <= room else None
            text = f"{text}…"
        self.text(x, y, text, fits or size, colour, anchor)

    def panel(self, box: tuple[float, float, float, float], radius: float, colour: Colour) -> None:
        """Fill a rectangle with round corners; ``box`` is left, top, right, bottom."""
        left, top, right, bottom = (round(side * self.scale) for side in box)
        mask = _rounded(max(1, right - left), max(1, bottom - top), radius * self.scale)
        self.image.paste(colour, (left, top), mask)

    def fill(self, box: tuple[float, float, float, float], colour: Colour) -> None:
        """Fill a rectangle."""
        left, top, right, bottom = (round(side * self.scale) for side in box)
        self.image.paste(colour, (left, top, max(left + 1, right), max(top + 1, bottom)))

    def star(self, x: float, y: float, size: float, colour: Colour) -> None:
        """Draw a star around a point."""
        pixels = self.pixels(size)
        place = (round(x * self.scale - pixels / 2), round(y * self.scale - pixels / 2))
        self.image.paste(colour, place, _star(pixels))


# --- the board --------------------------------------------------------------------------------------------

_MARGIN: Final = 8.0
_TRAY: Final = (_MARGIN, 28.0, WIDTH - _MARGIN, 113.0)
_DIE, _DIE_GAP, _DIE_TOP = 42.0, 15.0, 52.0
_LAST_MOVE: Final = 123.0
_CARD: Final = (_MARGIN, 134.0, WIDTH - _MARGIN, HEIGHT - _MARGIN)
_HEAD: Final = 21.0
_BODY: Final = 12.5
_INSET: Final = 9.0


class _Columns(NamedTuple):
    """Where the card's rows and columns are, in units.

    Attributes:
        seats: Whose columns are shown, from left to right.
        left: Where the first begins.
        width: Of each.
        row: The height of a row.
        size: Of the text.
    """

    seats: tuple[int, ...]
    left: float
    width: float
    row: float
    size: float

    def middle(self, column: int) -> float:
        return self.left + (column + 0.5) * self.width

    def top(self, row: int) -> float:
        return _CARD[1] + _HEAD + row * self.row


def _shown_seats(board: Board) -> tuple[int, ...]:
    count = len(board.names)
    if count <= MOST_COLUMNS:
        return tuple(range(count))
    seat = board.current if board.current is not None else (board.winners or (0,))[0]
    first = min(max(0, seat - MOST_COLUMNS // 2), count - MOST_COLUMNS)
    return tuple(range(first, first + MOST_COLUMNS))


def _columns(board: Board, pen: _Pen) -> _Columns:
    seats = _shown_seats(board)
    row = (_CARD[3] - _CARD[1] - _HEAD - 3) / (len(board.rows) + 1)
    size = min(_BODY, 0.68 * row)
    names = max(pen.length(name, size) for name in [*(name for name, _ in board.rows), board.total])
    room = _CARD[2] - _CARD[0] - names - 2 * _INSET
    width = min(room / len(seats), 84.0)
    return _Columns(seats, _CARD[2] - 1 - width * len(seats), width, row, size)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=32)
def _background(size: int, theme: Theme, rows: int) -> Picture:
    """Draw what is the same in every frame: the page, the felt and the empty card."""
    scale = size / WIDTH
    image = Image.new("RGB", picture_shape(size)[1::-1], theme.page)
    pen = _Pen(image, theme, scale)
    pen.panel(_TRAY, 9, theme.tray)
    left, top, right, bottom = _CARD
    pen.panel(_CARD, 7, theme.line)
    pen.panel((left + 1, top + 1, right - 1, bottom - 1), 6, theme.panel)
    row = (bottom - top - _HEAD - 3) / (rows + 1)
    for index in range(0, rows, 2):
        y = top + _HEAD + index * row
        pen.fill((left + 1, y, right - 1, y + row), theme.stripe)
    return image


def _draw_dice(pen: _Pen, board: Board, skin: DiceSkin) -> None:
    theme, size = pen.theme, pen.pixels(_DIE)
    left = (WIDTH - 5 * _DIE - 4 * _DIE_GAP) / 2
    for place in range(5):
        x = left + place * (_DIE + _DIE_GAP)
        if place >= len(board.dice):  # still to be thrown
            shade = tuple(round(0.85 * part) for part in theme.tray)
            pen.panel((x, _DIE_TOP, x + _DIE, _DIE_TOP + _DIE), 0.2 * _DIE, (shade[0], shade[1], shade[2]))
            continue
        die: Die = board.dice[place]
        drawn = _die(die.face, die.is_kept, size, skin, theme)
        margin = (drawn.width - size) // 2
        where = (round(x * pen.scale) - margin, round(_DIE_TOP * pen.scale) - margin)
        pen.image.paste(drawn, where)
        if die.is_kept:
            y = (_DIE_TOP + _DIE + _TRAY[3] + 2) / 2
            pen.fitted(x + _DIE / 2, y, board.kept, 10.5, _DIE + _DIE_GAP - 2, theme.gold, "m")


def _draw_tray(pen: _Pen, board: Board, skin: DiceSkin) -> None:
    theme, left, right = pen.theme, _TRAY[0] + _INSET + 1, _TRAY[2] - _INSET - 1
    room = right - left
    if board.served:
        label = _capital(board.served)
        width = pen.length(label, 11) + 14
        pen.panel((right - width, 33, right, 47), 7, theme.gold)
        pen.text(right - width / 2, 40, label, 11, theme.on_gold, "m")
        room -= width + 6
    pen.fitted(left, 40, _capital(board.mover), 12, room, theme.on_tray)
    _draw_dice(pen, board, skin)


def _draw_heads(pen: _Pen, board: Board, columns: _Columns) -> None:
    theme = pen.theme
    y = _CARD[1] + _HEAD / 2 + 0.5
    labels = [_capital(board.names[seat]) for seat in columns.seats]
    room, largest, smallest = columns.width - 5, 11.0, 8.0
    fitting = [pen.fitting(label, largest, room, smallest) for label in labels]
    if None in fitting:  # all or none, so that what stands there is of one kind
        labels = [str(seat + 1) for seat in columns.seats]
    size = min((size or largest for size in fitting), default=largest)
    for column, (seat, label) in enumerate(zip(columns.seats, labels, strict=True)):
        colour = theme.text if seat == board.current else theme.muted
        pen.text(columns.middle(column), y, label, size, colour, "m")
    hidden = len(board.names) - len(columns.seats)
    if hidden:
        pen.text(_CARD[0] + _INSET, y, f"+{hidden}", 11, theme.muted)


def _draw_cell(pen: _Pen, cell: Cell, x: float, y: float, columns: _Columns) -> None:
    theme, size = pen.theme, columns.size
    half = min(columns.width / 2 - 1.5, 21.0), columns.row / 2 - 1.2
    box = (x - half[0], y - half[1], x + half[0], y + half[1])
    if cell.mark is Mark.PAYS:
        pen.panel(box, half[1], theme.pays_back)
        pen.fitted(x, y, f"+{cell.text}", size, 2 * half[0] - 3, theme.pays, "m")
        return
    if cell.mark is Mark.STRIKES:
        pen.text(x, y, cell.text, size, theme.strikes, "m")
        return
    if cell.is_last:
        pen.panel(box, 3, theme.last)
    if cell.mark is Mark.STRUCK:  # a dash, which the font has not
        pen.fill((x - 4, y - 0.6, x + 4, y + 0.6), theme.text if cell.is_last else theme.muted)
    elif cell.text:
        pen.fitted(x, y, cell.text, size, columns.width - 3, theme.text, "m")


def _draw_card(pen: _Pen, board: Board, columns: _Columns) -> None:
    theme, (left, top, right, bottom) = pen.theme, _CARD
    for column, seat in enumerate(columns.seats):
        if len(board.names) > 1 and (seat == board.current or seat in board.winners):
            x = columns.left + column * columns.width
            colour = theme.current if seat == board.current else theme.won
            pen.panel((x, top + 2, x + columns.width, bottom - 2), 4, colour)
    pen.fill((left + 1, top + _HEAD - 0.5, right - 1, top + _HEAD + 0.5), theme.line)
    _draw_heads(pen, board, columns)
    for row, (name, cells) in enumerate(board.rows):
        y = columns.top(row) + columns.row / 2
        pen.text(left + _INSET, y, _capital(name), columns.size, theme.text)
        for column, seat in enumerate(columns.seats):
            _draw_cell(pen, cells[seat], columns.middle(column), y, columns)
    line = columns.top(len(board.rows))
    pen.fill((left + 1, line - 0.75, right - 1, line + 0.75), theme.line)
    y = line + columns.row / 2 + 1
    pen.text(left + _INSET, y, _capital(board.total), columns.size + 1, theme.text)
    for column, seat in enumerate(columns.seats):
        x, text = columns.middle(column), str(board.scores[seat])
        pen.fitted(x, y, text, columns.size + 1.5, columns.width - 3, theme.text, "m")
        if len(board.names) > 1 and seat in board.winners and columns.width > 30:
            pen.star(x - pen.length(text, columns.size + 1.5) / 2 - 8, y, 9, theme.gold)


def picture_shape(size: int) -> tuple[int, int, int]:
    """Return the shape of a picture of that width: its height is even, as films want it."""
    return (2 * round(size * HEIGHT / WIDTH / 2), size, 3)


def draw_board(
    board: Board, *, dice: str = "standard", size: int = DEFAULT_SIZE, theme: str = "light"
) -> Frame:
    """Draw what ``make_board`` describes.

    Args:
        board: What there is to see.
        dice: ``standard`` or ``poker``.
        size: The picture's width in pixels, from 320; it is a quarter higher.
        theme: ``light`` or ``dark``.

    Returns:
        ``picture_shape(size)`` uint8, a new array.

    Raises:
        ValueError: An option has a value that it does not know.
        gymnasium.error.DependencyNotInstalled: pillow is not installed.
    """
    check_picture(size, theme)
    require_pillow()
    colours = THEMES[theme]
    pen = _Pen(_background(size, colours, len(board.rows)).copy(), colours, size / WIDTH)
    columns = _columns(board, pen)
    stage = _capital(board.stage)
    stage_size = pen.fitting(stage, 12.5, 150, 8) or 8
    pen.text(WIDTH - _MARGIN - 2, 15, stage, stage_size, colours.muted, "r")
    room = WIDTH - 2 * _MARGIN - 10 - pen.length(stage, stage_size)
    pen.fitted(_MARGIN + 2, 15, _capital(board.title), 15.5, room, colours.text)
    _draw_tray(pen, board, DiceSkin(dice))
    pen.fitted(_MARGIN + 2, _LAST_MOVE, _capital(board.last_move), 11, WIDTH - 2 * _MARGIN - 4, colours.muted)
    _draw_card(pen, board, columns)
    return np.array(pen.image)


def render_picture(
    variant: Variant,
    state: GameState,
    *,
    names: Sequence[str] | None = None,
    last_boxes: Sequence[int | None] | None = None,
    language: str = "en",
    dice: str = "standard",
    size: int = DEFAULT_SIZE,
    theme: str = "light",
) -> Frame:
    """Draw the dice, the throw, everybody's card and what each open box would bring now.

    Args:
        variant: The rules.
        state: Any position, finished ones included.
        names: What the seats are called.
        last_boxes: By seat, the index of the box that was closed last, where one was.
        language: ``en``, ``es`` or ``pt``.
        dice: ``standard`` or ``poker``.
        size: The picture's width in pixels, from 320; it is a quarter higher.
        theme: ``light`` or ``dark``.

    Returns:
        ``picture_shape(size)`` uint8, a new array.

    Raises:
        ValueError: An option has a value that it does not know.
        gymnasium.error.DependencyNotInstalled: pillow is not installed.
    """
    board = make_board(variant, state, names=names, last_boxes=last_boxes, language=language, dice=dice)
    return draw_board(board, dice=dice, size=size, theme=theme)


def with_caption(frame: Frame, lines: Sequence[tuple[str, str]], *, theme: str = "light") -> Frame:
    """Put lines of text below a picture.

    Args:
        frame: A picture of that theme.
        lines: Each text, and what it is: ``text``, ``muted``, ``pays`` or ``strikes``.
        theme: ``light`` or ``dark``.

    Returns:
        (higher, width, 3) uint8, a new array of even height.

    Raises:
        gymnasium.error.DependencyNotInstalled: pillow is not installed.
    """
    require_pillow()
    height, width, _ = frame.shape
    colours, scale, line = THEMES[theme], width / WIDTH, 17.0
    below = 2 * math.ceil((len(lines) * line + _MARGIN) * scale / 2) + height % 2
    strip = Image.new("RGB", (width, below), colours.page)
    pen = _Pen(strip, colours, scale)
    for index, (text, kind) in enumerate(lines):
        colour: Colour = getattr(colours, kind)
        room = WIDTH - 2 * _MARGIN - 4
        pen.fitted(_MARGIN + 2, (index + 0.5) * line, _capital(text), 12, room, colour)
    return np.concatenate((frame, np.asarray(strip)))


def picture_grid(frames: Sequence[Frame], *, columns: int | None = None, gap: int = 0) -> Frame:
    """Put pictures of one shape side by side and below each other, as for a batch of environments.

    Args:
        frames: (height, width, 3) uint8 each, at least one.
        columns: How many stand in a row; as near to a square as can be where ``None``.
        gap: Pixels between them, of the colour of the first picture's corner, as is what stays empty.

    Returns:
        (height, width, 3) uint8, a new array.

    Raises:
        ValueError: There is no picture, or they differ in shape.
    """
    shapes: set[Any] = {np.shape(frame) for frame in frames}
    if len(shapes) != 1:
        raise ValueError(
            f"frames: {len(frames)} pictures of the shapes {sorted(shapes)} are not of one shape"
        )
    height, width, _ = frames[0].shape
    if columns is None:
        columns = math.ceil(math.sqrt(len(frames) * height / width))
    columns = min(max(1, columns), len(frames))
    rows = -(-len(frames) // columns)
    grid = np.empty((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), dtype=np.uint8)
    grid[:] = frames[0][0, 0]
    for index, frame in enumerate(frames):
        top, left = (index // columns) * (height + gap), (index % columns) * (width + gap)
        grid[top : top + height, left : left + width] = frame
    return grid
