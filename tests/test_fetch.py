"""`python -m rsd.fetch` against a hub on this machine, and runs that then need none."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import ROOT, Command, compose_config, environment

COMMIT = "c" * 40
DRAFT = Path(compose_config().model.policies["draft"].path)
FILES = {file.name: file.stat().st_size for file in DRAFT.iterdir()} | {"pytorch_model.bin": 10**12}


class Hub(BaseHTTPRequestHandler):
    """The part of the hub's interface that downloads use: one public model, one gated, no other."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if "me/gated" in path:
            self._answer(403, b"", **{"X-Error-Code": "GatedRepo"})
        elif "me/draft" not in path:
            self._answer(404, b"", **{"X-Error-Code": "RepoNotFound"})
        elif "/tree/" in path:
            files = [{"type": "file", "path": name, "size": size, "oid": name} for name, size in FILES.items()]
            self._answer(200, json.dumps(files).encode())
        elif path.startswith("/api/models/"):
            siblings = [{"rfilename": name, "size": size} for name, size in FILES.items()]
            self._answer(200, json.dumps({"id": "me/draft", "sha": COMMIT, "siblings": siblings}).encode())
        else:
            self._answer(200, (DRAFT / path.rpartition("/")[2]).read_bytes(), ETag=f'"{path}"')

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"X-Repo-Commit": COMMIT, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub() -> Iterator[str]:
    """The address of a hub."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def fetch(address: str, home: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rsd.fetch", *overrides],
        capture_output=True, text=True, cwd=ROOT, check=False, timeout=120,
        env=environment(HF_ENDPOINT=address, HF_HOME=str(home), HF_HUB_OFFLINE="0", HF_HUB_DISABLE_PROGRESS_BARS="1"),
    )  # fmt: skip


def test_what_was_fetched_runs_without_a_network(hub: str, cli: Command, tmp_path: Path) -> None:
    fetched = fetch(hub, tmp_path / "home", "model.draft.path=me/draft")
    assert fetched.returncode == 0, fetched.stderr
    wanted = sum(FILES.values()) - FILES["pytorch_model.bin"]  # which are the same weights in another format
    first, *others, last = fetched.stdout.splitlines()
    assert first == f"me/draft: {wanted / 1e9:.2f} GB"
    assert all(line.endswith(": here") for line in others), "the other models are folders here"
    assert last == "tiny_chain: 500 questions, here"
    ran = cli(
        *("model.draft.path=me/draft", "method=single", "method.role=draft", "limit=2"),
        **{"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")},
    )
    assert ran.returncode == 0, ran.stderr
    (manifest,) = (tmp_path / "results").rglob("manifest.json")
    assert json.loads(manifest.read_text())["revisions"] == {"draft": COMMIT}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("me/gated", "Error: model.draft.path: me/gated is gated; ask for access at https://huggingface.co/me/gated"),
        ("me/absent", "Error: model.draft.path: the hub has no model me/absent, or none that you may see."),
    ],
)
def test_what_cannot_be_had_is_one_sentence(hub: str, tmp_path: Path, name: str, sentence: str) -> None:
    refused = fetch(hub, tmp_path, f"model.draft.path={name}")
    assert refused.returncode == 2
    assert refused.stderr.startswith(sentence)
    assert len(refused.stderr.splitlines()) == 1


def test_no_network_is_one_sentence(tmp_path: Path) -> None:
    refused = fetch("http://127.0.0.1:9", tmp_path, "model.draft.path=me/draft")
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: model.draft.path: cannot fetch me/draft from the hub (")
    assert refused.stderr.endswith("is there a network?\n")
    assert len(refused.stderr.splitlines()) == 1


def test_a_run_without_a_network_is_one_sentence_as_well(cli: Command, tmp_path: Path) -> None:
    refused = cli("model.draft.path=me/draft", HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path))
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "Error: model.draft.path: cannot read the weights of me/draft: We couldn't connect"
    )
    assert len(refused.stderr.splitlines()) == 1


def test_a_folder_beside_the_command_is_no_hub_model(tmp_path: Path) -> None:
    fetched = fetch("http://127.0.0.1:9", tmp_path, "model.draft.path=rsd/tiny/weights/s")
    assert fetched.returncode == 0, fetched.stderr
    assert "rsd/tiny/weights/s: here\n" in fetched.stdout
