"""What the page says, and that its files use just that."""

import re

import pytest

from agents.games.words import SHARED_TEXTS
from agents.registry import agent_names
from agents.web.server import PAGE
from agents.web.words import PAGE_TEXTS, page_words
from generala_env.rules.names import WORD_KEYS, DiceSkin, Language
from generala_env.rules.variants import ServedGeneralaWins

SCRIPTS = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PAGE.glob("*.js")))


def test_every_sentence_has_the_same_values_in_each_language() -> None:
    for key, versions in {**SHARED_TEXTS, **PAGE_TEXTS}.items():
        assert len(versions) == 3
        assert all(versions), key
        assert len({tuple(sorted(re.findall(r"{(\w+)}", version))) for version in versions}) == 1, key


def test_the_page_asks_for_words_that_there_are_and_for_all_of_its_own() -> None:
    known = set(page_words(Language.EN, DiceSkin.STANDARD)["texts"])
    plain = set(re.findall(r'say\("(\w+)"', SCRIPTS))
    # Those chosen by a condition, as in say(x ? "a" : "b") or as parts of the page.
    quoted = set(re.findall(r'"(\w+)"', SCRIPTS))
    stems = set(re.findall(r"(?:say|knows)\(`(\w+_)\$\{", SCRIPTS))
    assert plain - known == set()
    assert stems == {"agent_", "coach_", "fact_doble_", "fact_wins_", "refused_", "skin_", "speed_"}
    unused = {key for key in PAGE_TEXTS if key not in quoted and not key.startswith(tuple(stems))}
    assert unused == set()


def test_everything_named_by_the_rules_has_words() -> None:
    texts = page_words(Language.ES, DiceSkin.STANDARD)["texts"]
    for wins in ServedGeneralaWins:
        assert texts[f"fact_wins_{wins}"]
    for name in set(agent_names(2)) & {"random", "tips", "turn_greedy", "race", "duel_optimal"}:
        assert texts[f"agent_{name}"]
    assert set(WORD_KEYS) <= set(texts)


@pytest.mark.parametrize("language", Language)
def test_poker_dice_have_names_of_their_own(language: Language) -> None:
    plain, poker = (page_words(language, skin) for skin in DiceSkin)
    assert poker["faces"] == ["9", "10", "J", "Q", "K", "A"]
    assert plain["boxes"]["ones"] != poker["boxes"]["ones"]
    assert plain["texts"] == poker["texts"]


def test_the_page_takes_nothing_from_elsewhere() -> None:
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//\w+\.\w+/|@import|url\(|eval\(|innerHTML|document\.write", text), (
            path
        )
