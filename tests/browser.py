"""The browser that pages are tested in, where there is one."""

import shutil

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

in_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium to open the page in")
