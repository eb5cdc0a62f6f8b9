"""The built wheel, installed into an environment of its own and used far from the checkout."""

import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it from what git knows, so that no build product of the checkout slips in."""
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT)
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    built = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(built), str(source)], check=True)
    (only,) = built.glob("*.whl")
    return only


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with the wheel in it, which finds the dependencies where they are installed."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    interpreter = folder / "bin" / "python"
    install = [str(interpreter), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True)
    where = subprocess.check_output(
        [interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    # As a line of a .pth file the folder's own .pth files are not read, so the checkout stays out of reach.
    Path(where.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return interpreter


def run(python: Path, folder: Path, program: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_holds_all_that_the_packages_hold(wheel: Path) -> None:
    listed = subprocess.check_output(["git", "ls-files", "-z", "generala_env", "agents"], cwd=ROOT).decode()
    in_git = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert in_wheel == in_git


def test_its_version_and_extras_are_those_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = archive.read(name).decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra in project["optional-dependencies"]:
        assert f"Provides-Extra: {extra}\n" in metadata


def test_it_is_the_wheel_that_runs(python: Path, tmp_path: Path) -> None:
    where = run(python, tmp_path, "import agents, generala_env as env; print(env.__file__, agents.__file__)")
    assert str(ROOT) not in where
    assert str(python.parents[1]) in where


def test_environments_play(python: Path, tmp_path: Path) -> None:
    program = """
import gymnasium as gym
import generala_env

env = gym.make("generala_env/Generala-v0")
observation, info = env.reset(seed=0)
terminated = False
while not terminated:
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)
envs = gym.make_vec("agents:generala_env/GeneralaDuel-v0", num_envs=2, opponent="turn_greedy")
envs.reset(seed=0)
print(info["final_score"] >= 0)
"""
    assert run(python, tmp_path, program) == "True"


def test_the_solver_solves(python: Path, tmp_path: Path) -> None:
    program = """
from generala_env.solver import solve_solo

print(f"{solve_solo('ruibal', instant_win='play_on').expected_score:.6f}")
"""
    assert run(python, tmp_path, program) == "151.935017"


def test_an_agent_is_judged_and_reported_on(python: Path, tmp_path: Path) -> None:
    program = """
from agents.evaluation.exact import exact_evaluation
from agents.evaluation.report import render_report
from agents.registry import make_agent

agent = make_agent("turn_greedy", "ruibal")
evaluation = exact_evaluation(agent, instant_win="play_on")
print(f"{evaluation.expected_score:.3f}")
assert "<html" in render_report(agent, evaluation)
"""
    assert run(python, tmp_path, program) == "144.580"
