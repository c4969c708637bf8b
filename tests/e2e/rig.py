"""What the browser tests are built from: processes of ours, pages that may not leave the machine, pictures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

from playwright.sync_api import BrowserContext, Dialog, Page

ROOT = Path(__file__).parent.parent.parent
TENSORFLOW = ROOT / ".envs/tf221/bin/python"
PICTURES = ROOT / "tests/out"
ANALYSES = ROOT / "frontend/src/workbench/analyses.ts"
#: Playwright keeps connections that the server may have closed for their idleness: asked again on another.
RETRIES = 5
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Process:
    """A program of ours whose output is read line by line."""

    def __init__(self, command: list[str], cwd: Path, **environment: str) -> None:
        self.child = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(cwd / f"{Path(command[1]).stem}.stderr").open("w"),
            text=True,
        )

    def word(self, name: str) -> str:
        """What follows ``name`` on the next line of output that begins with it."""
        assert self.child.stdout
        for line in self.child.stdout:
            if line.startswith(name + " "):
                return line[len(name) + 1 :].strip()
        raise AssertionError(f"the program ended without saying {name}")

    def end_training(self) -> None:
        assert self.child.stdin
        self.child.stdin.close()

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


class Watch:
    """Collects what no page may do: throw, log a broken rule, open a dialog of its own, ask another machine for anything."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        context.on("weberror", lambda error: self.complaints.append(f"threw {error.error}"))
        context.on("request", lambda request: self.asked(request.url))
        context.on("console", lambda message: self.logged(message.text))
        context.on("dialog", self.dismiss)

    def dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(f"opened a dialog: {dialog.message}")
        dialog.dismiss()

    def asked(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "https://127.0.0.1:", "blob:", "data:", "file:")):
            self.complaints.append(f"asked for {url}")

    def logged(self, text: str) -> None:
        if "Content Security Policy" in text or "[Vue warn]" in text:
            self.complaints.append(f"logged {text}")


def tabs_of_a_trace(*left_out: str) -> list[str]:
    """The tabs of a trace of one process, in their order, without those that are left out."""
    table = ANALYSES.read_text(encoding="utf-8")
    entries = re.findall(r'^  "?([\w-]+)"?: \{.*?\.\.\.(ANY|TRACE|JOB)\b', table, re.MULTILINE | re.DOTALL)
    assert len(entries) == len(re.findall(r'\btitle: "', table)), "an entry of analyses.ts was not understood"
    tabs = [tab for tab, of in entries if of != "JOB"]
    assert set(left_out) < set(tabs), (left_out, tabs)
    return [tab for tab in tabs if tab not in left_out]


def picture(page: Page, name: str, *, full: bool = False) -> None:
    """A screenshot in tests/out, for people; the cursor is moved away and motion has ended."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=full, animations="disabled")


def sign_in(context: BrowserContext, url: str) -> None:
    """What the URL with the token does to a browser, without a page: the cookie, and the key in this server's local storage."""
    answer = context.request.get(url, max_redirects=0, max_retries=RETRIES)
    origin, key = "/".join(url.split("/")[:3]), answer.headers["location"].partition("#key=")[2]
    context.add_init_script(f"if (location.origin === '{origin}') localStorage.setItem('tftracer key /', '{key}')")


def bearer(url: str) -> dict[str, str]:
    """The headers of a script's requests. ``url``: with the token."""
    return {"Authorization": f"Bearer {unquote(url.partition('token=')[2])}"}


def start_job(folder: Path, *arguments: str, **environment: str) -> tuple[Process, str]:
    """A training job and its page's URL. It is called train.py, in a folder of its own: pictures show no more of a machine."""
    shutil.copy(ROOT / "tests/e2e/job.py", folder / "train.py")
    process = Process([str(TENSORFLOW), "train.py", *arguments], folder, TFTRACER_SPOOL_DIR="spool", **environment)
    return process, process.word("URL")


def start_viewer(folder: Path, file: Path, *arguments: str) -> tuple[Process, str]:
    """``tftracer FILE`` where there is no TensorFlow, and its URL."""
    command = [sys.executable, "-m", "tftracer", "--no-browser", "--port", "0", *arguments, file.name]
    assert file.parent == folder
    process = Process(command, folder, TFTRACER_SPOOL_DIR=str(folder / "spool"))
    assert process.child.stdout
    for line in process.child.stdout:
        if "http" in line:
            return process, line[line.index("http") :].split()[0]
    raise AssertionError("the viewer ended without saying its URL")
