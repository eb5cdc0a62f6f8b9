"""The documentation site: `make docs` builds it without a warning, and it needs nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}

pytest.importorskip("mkdocs", reason="mkdocs is not installed (extra docs)")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_pages_say_what_the_code_says() -> None:
    pages = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md")))]
    check = run("cogapp", "--check", "--diff", "-I", "docs", "-I", ".", "-p", "import from_code", *pages)
    assert check.returncode == 0, f"`make docs` brings the pages up to date\n{check.stdout}{check.stderr}"


class Loaded(HTMLParser):
    """Collect what a page loads when it is opened: not links, which a reader follows."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("stylesheet", "icon", "preload"):
            return
        address = given.get(LOADS.get(tag, ""))
        if address:
            self.addresses.append(address)


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    build = run("mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site"))
    assert build.returncode == 0, build.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert {"index.html", "environment.html", "solver.html"} <= {page.name for page in pages}
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses, page
        assert not [address for address in loaded.addresses if re.match(r"(\w+:)?//", address)], page
    for style in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"(@import|url\()\W*(https?:)?//", style.read_text(encoding="utf-8")), style
    formulas = (tmp_path / "site" / "solvers.html").read_text(encoding="utf-8")
    assert formulas.count("<math") > 10
    assert "$" not in re.sub(r"<script.*?</script>", "", formulas, flags=re.DOTALL)
