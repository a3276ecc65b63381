"""A JupyterLab on loopback for all tests of this folder, and a headless Chromium of the system for each file."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from .bench import enter

TOKEN = "labelling"
PATIENCE = 20_000  # milliseconds
HERE = Path(__file__).parent
IMPORTS = "from scripted import Scripted\nfrom judgelab.labelling.form import LabellingForm\n"
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none", "autoStartDefaultKernel": True},
    "apputils-extension/notification": {"checkForUpdates": False, "fetchNews": "false", "doNotDisturbMode": True},
    "docmanager-extension/plugin": {"autosave": False},
}


class Lab:
    """A running JupyterLab. Its notebooks lie in ``root``; every test gets a folder of its own."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root = url, root

    def write(self, folder: str, *cells: str) -> str:
        """A notebook of code cells, beside a copy of the scripted session; its path below the root."""
        place = self.root / folder
        place.mkdir(exist_ok=True)
        shutil.copy(HERE / "scripted.py", place)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, place / "form.ipynb")
        return f"{folder}/form.ipynb"

    def open(self, page: Page, notebook: str, *, run: bool = True, workspace: str = "") -> None:
        """Open a notebook in a workspace of its own, wait for its kernel, and run all its cells."""
        own = workspace + notebook.partition("/")[0]
        page.goto(f"{self.url}/lab/workspaces/{own}/tree/{notebook}?token={TOKEN}")
        self.idle(page)
        if run:
            self.run_all(page)

    def run_all(self, page: Page) -> None:
        """Run all cells by the menu and wait until each has run."""
        page.evaluate("() => document.querySelectorAll('.jp-InputPrompt').forEach(e => { e.textContent = '[ ]:'; })")
        page.locator('.lm-MenuBar-itemLabel:text-is("Run")').click()
        page.locator('.lm-Menu-itemLabel:text-is("Run All Cells")').click()
        page.wait_for_function(
            "() => [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].every(e => /\\d/.test(e.textContent))"
        )
        self.idle(page)

    def idle(self, page: Page) -> None:
        page.locator("text=/\\| Idle/").wait_for()

    def messages(self, folder: str) -> list[dict]:
        """What the scripted session was told."""
        path = self.root / folder / "messages.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a free port, with settings, workspaces and configuration in a temporary folder.

    Its kernels find a project by the folder of their notebook, as a person's do.
    """
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "root"
    root.mkdir()
    for name, values in SETTINGS.items():
        path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    own = {"JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces"}
    own |= {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_RUNTIME_DIR": "runtime", "IPYTHONDIR": "ipython"}
    own |= {"JUPYTER_DATA_DIR": "data"}  # here are the signatures of the notebooks that are trusted
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}"]
    command += ["--LabApp.extension_manager=readonly", "--LabApp.news_url=None"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JUDGELAB_")}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, env=kept | {name: str(folder / value) for name, value in own.items()}, stdout=log, stderr=log
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/api/status?token={TOKEN}", server, folder / "log")
        yield Lab(url, root)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="module")  # playwright's event loop must not outlive a file: other tests run their own
def browser() -> Iterator[Browser]:
    """The system's Chromium, which can reach loopback alone."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "no Chromium on this machine: apt-get install chromium"
        if os.environ.get("JUDGELAB_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, and JUDGELAB_REQUIRE_BROWSER=1 forbids skipping")
        pytest.skip(reason)
    rules = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", rules])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of 1280 by 800 pixels. After the test: no request to another machine, no error in the page."""
    with _watched(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def form_page(lab: Lab, browser: Browser) -> Iterator[Page]:
    """One page for all tests of the form, on a notebook whose cell runs what a test has written for it."""
    notebook = lab.write("form", "exec(open('cell.py', encoding='utf-8').read()); form")
    with _watched(browser) as opened:
        lab.open(opened, notebook, run=False)
        yield opened


@pytest.fixture
def show(lab: Lab, form_page: Page) -> Callable[..., Locator]:
    """Show a form over a scripted session, and enter it with a click on its title."""

    def shown(*items: dict, before: str = "", **options: object) -> Locator:
        form = f"form = LabellingForm(Scripted({items!r}, **{options!r}), fallback='Run the notebook to label.')"
        (lab.root / "form" / "cell.py").write_text(f"{IMPORTS}{before}{form}", encoding="utf-8")
        (lab.root / "form" / "messages.jsonl").unlink(missing_ok=True)
        form_page.set_viewport_size({"width": 1280, "height": 800})
        form_page.evaluate("sessionStorage.removeItem('judgelab-labelling')")
        lab.run_all(form_page)
        return enter(form_page)

    return shown


@pytest.fixture
def told(lab: Lab) -> Callable[..., list[dict]]:
    """The messages that the scripted session took, or those of one action."""

    def messages(action: str = "") -> list[dict]:
        return [each for each in lab.messages("form") if not action or each["action"] == action]

    return messages


@contextmanager
def _watched(browser: Browser) -> Iterator[Page]:
    """A page in a context of its own, which is watched: at its end it has asked no other machine and had no error."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    elsewhere: list[str] = []
    errors: list[str] = []

    def note(request: object) -> None:
        url = urlsplit(request.url)  # type: ignore[attr-defined]
        if url.scheme.startswith(("http", "ws")) and url.hostname != "127.0.0.1":
            elsewhere.append(request.url)  # type: ignore[attr-defined]

    context.on("request", note)
    opened = context.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert elsewhere == []
    assert errors == []
