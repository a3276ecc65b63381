"""Where the project and its outputs are, whichever folder a kernel starts in."""

from __future__ import annotations

import os
from pathlib import Path

from judgelab.errors import RunError

__all__ = ["outputs_folder", "project_root", "resolve", "shown"]


def project_root() -> Path:
    """The folder that holds the project: ``JUDGELAB_ROOT``, else the nearest parent with params and notebooks."""
    named = os.environ.get("JUDGELAB_ROOT")
    if named:
        return Path(named).resolve()
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "notebooks").is_dir() and (folder / "params").is_dir():
            return folder
    raise RunError(
        f"no judgelab project at {here} or above: a project has the folders notebooks and params. "
        "Change into it, or name it in the environment variable JUDGELAB_ROOT."
    )


def outputs_folder() -> Path:
    """The folder with one sub-folder a run: ``JUDGELAB_OUTPUTS``, else ``outputs`` in the project."""
    named = os.environ.get("JUDGELAB_OUTPUTS")
    return Path(named).resolve() if named else project_root() / "outputs"


def resolve(path: str | Path) -> Path:
    """A path of the protocol as an absolute one: relative to the project, ``outputs/`` to the outputs folder."""
    given = Path(path).expanduser()
    if given.is_absolute():
        return given
    if given.parts and given.parts[0] == "outputs":
        return outputs_folder().joinpath(*given.parts[1:])
    return project_root() / given


def shown(path: str | Path) -> str:
    """A path as it is shown to people and written into reports: never an address of this machine."""
    absolute = Path(path).resolve()
    outputs = outputs_folder()
    if absolute.is_relative_to(outputs):
        return (Path("outputs") / absolute.relative_to(outputs)).as_posix()
    root = project_root()
    if absolute.is_relative_to(root):
        return absolute.relative_to(root).as_posix()
    return absolute.name
