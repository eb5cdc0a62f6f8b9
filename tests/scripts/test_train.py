import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from agents.cli import program
from agents.config.explaining import config_schema
from agents.config.loading import CONFIG_FOLDER
from agents.config.reading import plain_value
from agents.errors import UsageError
from scripts.train import main

ROOT = CONFIG_FOLDER.parent
TINY = """\
variant: {base: ruibal, boxes: [ones, twos, escalera, poker, generala]}
env: {num_envs: 16}
algorithm: {name: ppo, n_steps: 8, batch_size: 64, n_epochs: 1}
policy: {net_arch: [8]}
total_timesteps: 256
evaluation: {mode: sampled, every: 128, games: 20, final_games: 20}
checkpoints: {every: 128}
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str = TINY) -> str:
    Path("x.yaml").write_text(text)
    return "x.yaml"


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Return the one JSON object that the command printed."""
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def refused(*arguments: str) -> str:
    with pytest.raises(UsageError) as caught:
        main(arguments)
    assert not Path("runs").exists(), "a run folder was left behind"
    return str(caught.value)


def test_a_run_ends_with_its_result_and_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", write(), "--set", "evaluation.every=256", "--seed", "0"]) == 0
    shown = capsys.readouterr()
    for words in ("turn_greedy", "optimal", "--logdir runs\n", "runs/x-", "evaluation.json"):
        assert words in shown.out
    assert "--resume" in main.__module__ or "run folder: runs/x-" in shown.err
    result = told(capsys, "--config", "x.yaml", "--run-dir", "named")
    assert {"mean_score", "ci95", "optimality", "optimal_score", "fingerprint", "scale"} <= set(result)
    assert result == json.loads(Path("named/evaluation.json").read_text())
    assert result["illegal_actions"] == 0


def test_a_dry_run_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    plan = told(capsys, "--config", write(), "--dry-run", "--set", "seed=3", "--num-threads", "2")
    assert plan["config"]["seed"] == 3
    assert plan["config"]["num_threads"] == 2
    assert sorted(path.name for path in Path().iterdir()) == ["x.yaml"]
    assert main(["--config", "x.yaml", "--dry-run"]) == 0
    assert "nothing was written" in capsys.readouterr().out


def test_the_config_is_printed_with_the_source_of_each_value(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--config", write(), "--set", "algorithm.gamma=0.5", "--device", "auto", "--print-config")
    assert main(arguments) == 0
    out = capsys.readouterr().out
    sources = {
        line.split(":")[0].strip(): line.rpartition("# ")[2] for line in out.splitlines() if "#" in line
    }
    assert sources["gamma"] == "--set"
    assert sources["device"] == "--device"
    assert sources["n_steps"] == "x.yaml:3"
    assert sources["gae_lambda"] == "default"
    assert plain_value(out, "out")["algorithm"]["gamma"] == 0.5
    found = told(capsys, *arguments)
    assert found["sources"]["algorithm.gamma"] == "--set"
    assert found["config"] == plain_value(out, "out")


def test_the_schema_is_printed_and_is_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == config_schema()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--config: is missing"),
        (["--config", "nosuch.yaml"], "no such file"),
        (["--config", "x.yaml", "--set", "algorithm.gama=1"], "did you mean algorithm.gamma?"),
        (["--config", "x.yaml", "--set", "seed=-1"], "--set: seed: -1 is not allowed; allowed: a whole"),
        (["--config", "x.yaml", "--run-dir", "."], "exists and is never overwritten"),
        (["--resume", "nosuch"], "there is no such folder"),
        (["--resume", "."], "holds no config.yaml"),
        (["--resume", ".", "--seed", "1"], "the run's own config, so --seed cannot be given"),
        (["--resume", ".", "--set", "seed=1"], "--set cannot be given"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_a_line(arguments: list[str], words: str) -> None:
    write()
    assert words in refused(*arguments)


@pytest.mark.skipif("__import__('torch').cuda.is_available()")
def test_a_device_that_is_not_there_leaves_no_folder() -> None:
    assert "device: cuda is not available here" in refused("--config", write(), "--device", "cuda")


def test_the_command_itself_exits_with_2_and_without_a_traceback() -> None:
    write(TINY + "sed: 1\ngama: 2\n")
    command = [sys.executable, str(ROOT / "scripts/train.py"), "--config", "x.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "train.py: error: the config has 2 problems"
    assert "Traceback" not in done.stderr
    assert not Path("runs").exists()


# --- configs made of rubbish ----------------------------------------------------------------------

RUBBISH: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 3, 7, 1e400, -1e400, 0.5, 1e-400, 10**30, [], [1], [[]], {}),
    *("", "x", "ppo", "dqn", "é", "3e-4", "2001-01-01", "!x", {"a": 1}, {"name": "ppo"}),
    *({"base": "doble"}, {"start": 1, "end": 0}),
]
TEXTS = [*"\t{}[]'\"#\n%|>\0", "  ", "- ", ": ", "&a ", "*a", "!!int ", "\ud7ff", "? ", "<<: "]


def mutated(rng: random.Random) -> str:
    """Return a config that something was done to."""
    source = rng.choice([TINY, *((CONFIG_FOLDER / name).read_text() for name in ("ppo.yaml", "dqn.yaml"))])
    if rng.random() < 0.5:
        values = plain_value(source, "the config")
        for _ in range(rng.randint(1, 5)):
            section = values
            while True:
                inner = [key for key, value in section.items() if isinstance(value, dict)]
                if not inner or rng.random() < 0.3:
                    break
                section = section[rng.choice(inner)]
            known = [*section, rng.choice(["gama", "total_timestep", "seed", "variant", "x", ""])]
            section[rng.choice(known)] = rng.choice(RUBBISH)
        written = io.StringIO()
        YAML(typ="safe", pure=True).dump(values, written)
        return written.getvalue()
    letters = list(source)
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(letters))
        action = rng.random()
        if action < 0.4:
            letters.insert(place, rng.choice(TEXTS))
        elif action < 0.7:
            del letters[place : place + rng.randint(1, 30)]
        else:
            letters[place] = chr(rng.choice([rng.randrange(32, 127), rng.randrange(0x300)]))
    return "".join(letters)


def fuzz(number: int) -> None:
    """Read many broken configs: each is accepted, or refused by a line for each problem."""
    accepted = 0
    for seed in range(number):
        rng = random.Random(seed)
        Path("x.yaml").write_text(mutated(rng), encoding="utf-8", errors="surrogatepass")
        overrides = [
            "--set",
            rng.choice(["seed=1", "algorithm.gamma={", "env=3", "a.b=c", "variant.order=x"]),
        ]
        overrides = overrides if rng.random() < 0.2 else []
        try:
            # What is accepted must not train here, so the folder is one that cannot be made.
            main(["--config", "x.yaml", *overrides, "--run-dir", "x.yaml/run"])
        except UsageError as error:
            lines = str(error).splitlines()
            assert lines, seed
            assert all(len(line) < 2_000 for line in lines), seed
            accepted += lines[0].startswith("--run-dir")
        assert [path.name for path in Path().iterdir()] == ["x.yaml"], seed
    assert number // 50 < accepted < number, "the fuzz should reach both sides"


def test_a_hundred_fuzzed_configs_give_no_traceback_and_leave_no_folder() -> None:
    fuzz(100)


@pytest.mark.slow
def test_a_thousand_fuzzed_configs_give_no_traceback_and_leave_no_folder() -> None:
    fuzz(1_000)


def test_hints_name_programs_as_they_are_started_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "tensorboard"):
        (folder / name).write_text("")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(tmp_path)
    assert program("tensorboard") == ".venv/bin/tensorboard"
    monkeypatch.chdir(folder)
    assert program("python") == "python"
    monkeypatch.chdir("/")
    assert program("python") == str((folder / "python").relative_to("/"))
    monkeypatch.setenv("PATH", str(folder))
    assert program("python") == "python"
    assert program("no such program") == "no such program"
    other = tmp_path / "with a space"
    other.mkdir()
    (other / "python3").write_text("")
    monkeypatch.setattr(sys, "executable", str(other / "python3"))
    monkeypatch.chdir(tmp_path)
    assert program("python") == "'with a space/python3'"
    monkeypatch.setattr(sys, "executable", "")
    assert program("python") == "python"
