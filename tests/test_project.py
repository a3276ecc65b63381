"""What must hold for the project as a whole: dependencies, locks, modules, documents."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import typer.main
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import judgelab.cli
from judgelab.cli import app

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-model.lock", "requirements-uv.lock")
MODULES = sorted({"judgelab"} | {found.name for found in pkgutil.walk_packages(judgelab.__path__, "judgelab.")})
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Written in pieces, so that this file does not name them.
PLACES = [f"/{name}/" for name in ("work", "root", "home")] + ["/tmp" + "/w"]
REGISTRIES = ["py" + "pi.org", "python" + "hosted.org", "registry.npm" + "js", "/sim" + "ple/", "arti" + "factory"]


def requirements(texts: list[str]) -> dict[str, str]:
    """Specifier by canonical name."""
    parsed = [Requirement(text) for text in texts]
    return {canonicalize_name(one.name): str(one.specifier) for one in parsed}


def locked(name: str) -> list[tuple[Requirement, list[str]]]:
    """Requirements of a lock file with their hashes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    logical = re.sub(r"\\\n", " ", text).splitlines()
    lines = [line.split(" #")[0].strip() for line in logical if line.strip() and not line.lstrip().startswith("#")]
    found = []
    for line in lines:
        requirement, *hashes = line.split("--hash=")
        found.append((Requirement(requirement.strip()), [value.strip() for value in hashes]))
    return found


def text_files() -> list[Path]:
    """Every text file that is tracked or about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this copy of the project is not under git")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8192]]


# Dependencies


def test_environment_yml_follows_pyproject():
    document = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [entry["pip"] for entry in document["dependencies"] if isinstance(entry, dict)]
    project = PYPROJECT["project"]
    assert pip[-1] == "-e ."
    assert requirements(pip[:-1]) == requirements(
        project["dependencies"] + project["optional-dependencies"]["embedded"]
    )
    (python,) = [entry for entry in document["dependencies"] if str(entry).startswith("python>")]
    assert Requirement(python).specifier == Requirement(f"python{project['requires-python']}").specifier


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_names_no_address_and_a_hash_for_everything(name):
    assert "://" not in (ROOT / name).read_text(encoding="utf-8")
    found = locked(name)
    assert found
    for requirement, hashes in found:
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), requirement
        assert hashes, requirement
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", value) for value in hashes), requirement


@pytest.mark.parametrize(
    ("lock", "texts"),
    [
        (
            "requirements.lock",
            PYPROJECT["project"]["dependencies"]
            + PYPROJECT["project"]["optional-dependencies"]["embedded"]
            + [text for text in PYPROJECT["dependency-groups"]["dev"] if isinstance(text, str)],
        ),
        ("requirements-model.lock", PYPROJECT["dependency-groups"]["model"]),
        ("requirements-uv.lock", PYPROJECT["dependency-groups"]["uv"]),
    ],
    ids=LOCKS,
)
def test_every_direct_dependency_is_locked_at_an_allowed_version(lock, texts):
    versions: dict[str, set[str]] = {}
    for requirement, _ in locked(lock):
        (pinned,) = requirement.specifier
        versions.setdefault(canonicalize_name(requirement.name), set()).add(pinned.version)
    for text in texts:
        wanted = Requirement(text)
        found = versions.get(canonicalize_name(wanted.name), set())
        assert found, f"{wanted} is not in {lock}"
        assert all(wanted.specifier.contains(version) for version in found), f"{wanted}: {lock} has {found}"


# Files


def test_no_file_names_a_place_on_a_machine_or_a_registry():
    found = []
    for path in text_files():
        text = path.read_text(encoding="utf-8")
        for word in PLACES + REGISTRIES:
            at = re.search(rf"(?<![\w.}}]){re.escape(word)}", text) if word.startswith("/") else re.search(word, text)
            if at:
                line = text[: at.start()].count("\n") + 1
                found.append(f"{path.relative_to(ROOT)}:{line}: {word}")
    assert found == []


@pytest.mark.parametrize("name", ["CHANGELOG.md", "LICENSE", "GLOSSARY.md", "CITATION.cff", "README.md"])
def test_a_document_exists(name):
    assert (ROOT / name).read_text(encoding="utf-8").strip()


def test_the_version_is_the_same_everywhere():
    version = PYPROJECT["project"]["version"]
    assert judgelab.__version__ == version
    assert str(yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]) == version
    assert version in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# Modules


@pytest.mark.parametrize("name", MODULES)
def test_a_module_offers_what_exists_and_explains_it(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    offered = getattr(module, "__all__", [])
    assert len(set(offered)) == len(offered)
    for public in offered:
        thing = getattr(module, public)
        if inspect.isroutine(thing) or inspect.isclass(thing):
            assert inspect.getdoc(thing), f"{name}.{public} has no docstring"


@pytest.mark.parametrize("name", [name for name in MODULES if not hasattr(importlib.import_module(name), "__path__")])
def test_a_module_says_what_is_public(name):
    module: ModuleType = importlib.import_module(name)
    defined = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == name]
    public = {key for key in defined if not key.startswith("_") and inspect.isroutine(getattr(module, key))}
    if module is judgelab.cli:  # its functions are public as commands
        public -= {command.callback.__name__ for command in app.registered_commands if command.callback}
    assert public <= set(module.__all__), f"{name}: {public - set(module.__all__)} not in __all__"


def test_every_module_fits_in_a_head():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.glob("judgelab/**/*.py")}
    assert len(lengths) > 40
    assert {path.name: length for path, length in lengths.items() if length >= 400} == {}


def test_imports_go_one_way():
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* kept, 0 broken", done.stdout)


# README


def code_of_readme() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])


def test_the_readme_s_commands_exist():
    code = code_of_readme()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?<![\w/])make +([a-z]+)", code))
    assert {"run", "test"} <= named
    assert named <= targets
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    used = set(re.findall(r"(?<![\w./-])(?:\.venv/bin/)?judgelab +([a-z]+)", code))
    assert "run" in used
    assert used <= commands


def test_the_readme_s_files_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
    params = set(re.findall(r"params/[\w-]+\.yaml", code_of_readme())) - {"params/mine.yaml"}
    assert [path for path in sorted(params) if not (ROOT / path).is_file()] == []
