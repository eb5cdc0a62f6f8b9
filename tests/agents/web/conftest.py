"""A page to ask: one server, and browsers that have nothing to do with each other."""

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from agents.web.server import Server, Settings

HOST = "http://localhost"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    runs = tmp_path / "runs"
    runs.mkdir()
    return Settings(games=tmp_path / "games", runs=runs, store=tmp_path / "store")


@pytest.fixture
def browser(settings: Settings) -> Callable[[], TestClient]:
    """Make browsers of one server; each has cookies of its own."""
    app = Server(settings).app()
    return lambda: TestClient(app, base_url=HOST)


@pytest.fixture
def page(browser: Callable[[], TestClient]) -> TestClient:
    return browser()
