"""Render modes of every environment: text, pictures and windows that change nothing of the game."""

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pygame
import pytest
from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers import HumanRendering, RecordVideo
from gymnasium.wrappers.vector import RecordVideo as RecordVectorVideo
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecVideoRecorder

import agents
from agents.learning.vec_env import GeneralaVecEnv
from generala_env import table_v0
from generala_env.envs import showing, window
from generala_env.envs.duel import GeneralaDuelEnv
from generala_env.envs.duel_vector import GeneralaDuelVectorEnv
from generala_env.envs.picture import picture_shape
from generala_env.envs.showing import MOST_IN_WINDOW, RENDER_MODES
from generala_env.envs.solo import GeneralaEnv
from generala_env.envs.vector import GeneralaVectorEnv

assert agents.__doc__  # opponents by name

SOLO, DUEL = "generala_env/Generala-v0", "generala_env/GeneralaDuel-v0"

MAKERS: dict[str, Callable[..., Any]] = {
    "solo": lambda **options: GeneralaEnv("doble", **options),
    "batch": lambda **options: GeneralaVectorEnv(3, "doble", **options),
    "duel": lambda **options: GeneralaDuelEnv("doble", opponent="turn_greedy", **options),
    "batched duel": lambda **options: GeneralaDuelVectorEnv(3, "doble", opponent="turn_greedy", **options),
    "table": lambda **options: table_v0.env(num_players=3, variant="doble", **options),
}


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing, "RENDER_FPS", 1000)


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return MAKERS[request.param]


def trail(env: Any, *, steps: int = 40, shows: bool = False) -> Iterator[Any]:
    """Play random legal actions, and yield everything that the environment hands out."""
    rng = np.random.default_rng(1)
    yield env.reset(seed=3)
    for _ in range(steps):
        if shows:
            env.render()
        unwrapped = env.unwrapped
        masks = unwrapped.action_masks()
        if masks.ndim == 1 and not masks.any():
            return
        chances = masks * rng.random(masks.shape)
        action = chances.argmax(axis=-1)
        if hasattr(env, "agent_selection"):
            env.step(int(action))
            yield env.observe(env.agent_selection), dict(env.rewards), unwrapped.state_of_game
        else:
            yield env.step(action)


def generators(env: Any) -> Any:
    """Return the state of all that an environment draws from."""
    if hasattr(env, "get_state"):
        return {name: array.tobytes() for name, array in env.get_state().items()}
    if hasattr(env, "_generators"):
        return [generator.bit_generator.state for generator in env._generators]
    generator = env.unwrapped._np_random
    return generator.bit_generator.state


def frozen(value: Any) -> str:
    with np.printoptions(threshold=sys.maxsize, precision=17):
        return repr(value)


def seen(rendered: Any) -> Any:
    """Return what was rendered, pictures as bytes."""
    if isinstance(rendered, tuple):
        return [seen(part) for part in rendered]
    return rendered.tobytes() if isinstance(rendered, np.ndarray) else rendered


@pytest.mark.parametrize("mode", RENDER_MODES)
def test_an_episode_is_the_same_bit_for_bit_whether_it_is_shown_or_not(
    maker: Callable[..., Any], mode: str
) -> None:
    plain = [frozen(part) for part in trail(maker())]
    env = maker(render_mode=mode)
    shown = [frozen(part) for part in trail(env, shows=True)]
    env.close()
    assert len(plain) > 20
    assert shown == plain


@pytest.mark.parametrize("mode", RENDER_MODES)
def test_rendering_draws_nothing_and_repeats_itself(maker: Callable[..., Any], mode: str) -> None:
    env = maker(render_mode=mode)
    for number, _ in enumerate(trail(env, steps=12)):
        before = generators(env), frozen(env.unwrapped.action_masks())
        first, second = env.render(), env.render()
        assert (generators(env), frozen(env.unwrapped.action_masks())) == before
        assert seen(first) == seen(second)
        assert number <= 12
    env.close()


def test_pictures_have_the_size_and_theme_that_was_asked_for(maker: Callable[..., Any]) -> None:
    env = maker(render_mode="rgb_array", render_size=350, render_theme="dark")
    env.reset(seed=0)
    frames = env.render()
    env.close()
    for frame in frames if isinstance(frames, tuple) else (frames,):
        assert frame.shape == picture_shape(350)
        assert frame.dtype == np.uint8
        assert frame[0, 0].tolist() == [20, 23, 28]
    assert not isinstance(frames, tuple) or len(frames) == 3


def test_the_modes_and_the_pace_are_in_the_metadata(maker: Callable[..., Any]) -> None:
    metadata = maker().metadata
    assert metadata["render_modes"] == ["ansi", "rgb_array", "human"]
    assert metadata["render_fps"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"render_mode": "vr"}, "render_mode: 'vr' is not one of ansi, rgb_array, human, or None"),
        ({"render_mode": "rgb_array", "render_size": 10}, "render_size: 10 "),
        ({"render_theme": "neon"}, "render_theme: 'neon' "),
        ({"language": "fr"}, "language: 'fr' "),
        ({"dice": "wooden"}, "dice: 'wooden' "),
    ],
)
def test_an_unknown_option_is_refused_by_name(
    maker: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        maker(**options)


@pytest.mark.filterwarnings("ignore:.*render_mode")
@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_gymnasium_hands_an_unknown_mode_on(make: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="render_mode: 'vr' is not one of ansi, rgb_array, human"):
        make(SOLO, render_mode="vr")


def test_without_a_mode_it_says_so(maker: Callable[..., Any]) -> None:
    env = maker()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="one of ansi, rgb_array, human"):
        assert env.render() is None


# --- single and batched show the same ----------------------------------------------------------------


@pytest.mark.parametrize("illegal_action", ["raise", "penalty", "terminate"])
def test_a_batch_shows_what_single_environments_show(illegal_action: Any) -> None:
    options: dict[str, Any] = {"illegal_action": illegal_action, "render_mode": "rgb_array"}
    batch = GeneralaVectorEnv(4, "clasica", **options)
    singles = [GeneralaEnv("clasica", **options) for _ in range(4)]
    batch.reset(seed=5)
    for index, env in enumerate(singles):
        env.reset(seed=5 + index)
    rng = np.random.default_rng(0)
    ended = np.zeros(4, dtype=bool)
    for _ in range(70):
        masks = batch.action_masks()
        actions = (masks * rng.random(masks.shape)).argmax(axis=1)
        if illegal_action != "raise" and rng.random() < 0.1:
            actions[:] = rng.integers(batch.compiled.num_actions, size=4)
        terminated = batch.step(actions)[2]
        for env, action, is_reset in zip(singles, actions, ended, strict=True):
            env.reset() if is_reset else env.step(action)
        ended = terminated
        frames = batch.render()
        assert frames is not None
        for frame, env in zip(frames, singles, strict=True):
            assert seen(frame) == seen(env.render())


def test_a_batch_put_back_to_another_state_tells_no_move_of_the_old_one() -> None:
    env = GeneralaVectorEnv(1, render_mode="rgb_array")
    env.reset(seed=0)
    start, first = env.get_state(), env.render()
    env.step(np.array([31]))
    env.set_state(start)
    assert np.array_equal(env.render(), first)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["clasica", "doble_fija", "ruibal"])
def test_a_batched_duel_shows_what_single_duels_show(variant: str) -> None:
    options: dict[str, Any] = {"opponent": "turn_greedy", "render_mode": "rgb_array", "language": "es"}
    batch = GeneralaDuelVectorEnv(3, variant, **options)
    singles = [GeneralaDuelEnv(variant, **options) for _ in range(3)]
    batch.reset(seed=5)
    for index, env in enumerate(singles):
        env.reset(seed=5 + index)
    rng = np.random.default_rng(0)
    ended = np.zeros(3, dtype=bool)
    for _ in range(45):
        masks = batch.action_masks()
        actions = (masks * rng.random(masks.shape)).argmax(axis=1)
        terminated = batch.step(actions)[2]
        for env, action, is_reset in zip(singles, actions, ended, strict=True):
            env.reset() if is_reset else env.step(action)
        ended = terminated
        frames = batch.render()
        assert frames is not None
        for index, env in enumerate(singles):
            assert batch.games.state(index) == env.state
            assert np.array_equal(frames[index], env.render())  # type: ignore[arg-type]


# --- windows ---------------------------------------------------------------------------------------------


def on_screen() -> np.ndarray:
    surface = pygame.display.get_surface()
    assert surface is not None
    return np.asarray(pygame.surfarray.array3d(surface)).transpose(1, 0, 2)


def test_a_window_shows_each_move_without_being_asked() -> None:
    env, still = GeneralaEnv(render_mode="human"), GeneralaEnv(render_mode="rgb_array")
    env.reset(seed=1)
    still.reset(seed=1)
    assert np.array_equal(on_screen(), still.render())  # type: ignore[arg-type]
    env.step(31)
    still.step(31)
    assert np.array_equal(on_screen(), still.render())  # type: ignore[arg-type]
    env.close()
    assert not pygame.display.get_init()


def test_a_window_shows_the_first_of_a_batch() -> None:
    env = GeneralaVectorEnv(40, render_mode="human", render_size=320)
    env.reset(seed=1)
    height, width, _ = on_screen().shape
    assert height * width == MOST_IN_WINDOW * 320 * 400
    env.close()
    assert not pygame.display.get_init()


def test_a_window_that_was_closed_stays_closed_and_the_game_goes_on() -> None:
    env = GeneralaEnv(render_mode="human")
    env.reset(seed=1)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.step(31)
    assert not pygame.display.get_init()
    env.step(32)
    assert not pygame.display.get_init()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_an_environment_with_an_open_window_can_be_copied(copied: Callable[[Any], Any]) -> None:
    env = GeneralaEnv(render_mode="human")
    env.reset(seed=1)
    other = copied(env)
    env.close()
    other.step(31)
    assert pygame.display.get_init()
    other.close()


def test_the_pace_of_a_window_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    class Clock:
        def tick(self, frames_per_second: float) -> None:
            waited.append(frames_per_second)

    monkeypatch.setattr(pygame.time, "Clock", Clock)
    shown = window.Window("a game", 7)
    shown.show(np.zeros((400, 320, 3), np.uint8))
    shown.show(np.zeros((400, 320, 3), np.uint8))
    shown.close()
    assert waited == [7, 7]


# --- other people's wrappers -------------------------------------------------------------------------------


def films(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.glob("*.mp4")]


def play(env: Any, steps: int) -> None:
    _, info = env.reset(seed=0)
    for _ in range(steps):
        masks = info["action_mask"]
        _, _, terminated, _, info = env.step(masks.argmax(axis=-1))
        if np.ndim(terminated) == 0 and terminated:
            break


def test_gymnasium_records_an_episode(tmp_path: Path) -> None:
    made = gym.make(SOLO, render_mode="rgb_array", render_size=320)
    env: Any = RecordVideo(made, str(tmp_path / "films"))
    play(env, 50)
    env.close()
    (size,) = films(tmp_path / "films")
    assert size > 5_000


def test_gymnasium_records_a_batch(tmp_path: Path) -> None:
    made = gym.make_vec(SOLO, num_envs=4, render_mode="rgb_array", render_size=320)
    env: Any = RecordVectorVideo(made, str(tmp_path / "films"), video_length=5)
    play(env, 8)
    env.close()
    assert films(tmp_path / "films")[0] > 5_000


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_batches_render(mode: Any) -> None:
    env = gym.make_vec(
        SOLO,
        num_envs=2,
        vectorization_mode=mode,
        render_mode="rgb_array",
        vector_kwargs={"context": "spawn"} if mode == "async" else None,
    )
    env.reset(seed=0)
    frames: Any = env.render()
    env.close()
    assert [frame.shape for frame in frames] == [picture_shape(480)] * 2


def test_gymnasiums_window_shows_the_pictures() -> None:
    env: Any = HumanRendering(gym.make(SOLO, render_mode="rgb_array"))
    env.metadata["render_fps"] = 1000
    play(env, 3)
    assert on_screen().shape == picture_shape(480)
    env.close()


@pytest.mark.parametrize("env_id", [SOLO, DUEL])
def test_sb3_makes_and_records_it_by_name(env_id: str, tmp_path: Path) -> None:
    made = make_vec_env(env_id, n_envs=2, seed=0)
    assert made.render_mode == "rgb_array"
    env = VecVideoRecorder(made, str(tmp_path), lambda step: step == 0, video_length=3)
    env.reset()
    for _ in range(4):
        masks = np.stack(env.env_method("action_masks"))
        env.step(masks.argmax(axis=1))
    env.close()
    assert films(tmp_path)[0] > 5_000


def test_the_batch_for_sb3_is_recorded(tmp_path: Path) -> None:
    made = GeneralaVecEnv(3, render_mode="rgb_array", render_size=320)
    env = VecVideoRecorder(made, str(tmp_path), lambda step: step == 0, video_length=3)
    env.reset()
    for _ in range(4):
        env.step(made.action_masks().argmax(axis=1))
    env.close()
    assert films(tmp_path)[0] > 5_000


def test_a_learner_of_sb3_makes_it_by_name() -> None:
    learner = MaskablePPO("MlpPolicy", SOLO, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    learner.learn(16)
    assert learner.num_timesteps == 16


# --- what is not installed ---------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules[{missing!r}] = None
from generala_env.envs.solo import GeneralaEnv
env = GeneralaEnv(render_mode={mode!r})
try:
    env.reset(seed=0)
    env.step(31)
    env.render()
except Exception as error:
    print(type(error).__name__, error)
else:
    print("rendered")
print(*sorted({{"PIL", "pygame"}} & set(name for name, module in sys.modules.items() if module)))
"""


def without(missing: str, mode: str | None) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT.format(missing=missing, mode=mode)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("missing", "mode", "name"),
    [("PIL", "rgb_array", "pillow"), ("PIL", "human", "pillow"), ("pygame", "human", "pygame-ce")],
)
def test_what_is_missing_is_named_with_the_command_that_brings_it(missing: str, mode: str, name: str) -> None:
    said, _ = without(missing, mode)
    assert said.startswith(DependencyNotInstalled.__name__)
    assert name in said
    assert said.endswith('pip install "generala-env[render]"')


@pytest.mark.parametrize("mode", [None, "ansi"])
def test_text_and_play_need_neither(mode: str | None) -> None:
    assert without("PIL", mode) == ["rendered", ""]
    assert without("pygame", "rgb_array") == ["rendered", "PIL"]
