"""The stages in their order, run by papermill, and what follows them: the report and the manifest."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml

from judgelab.errors import JudgelabError, ProtocolError, RunError
from judgelab.judging.batch_ledger import BATCHES
from judgelab.judging.locks import HELD, hold_run
from judgelab.judging.match_run import MatchRun, freeze_matches
from judgelab.judging.progress import LedgerWatch
from judgelab.project import outputs_folder, project_root, shown
from judgelab.report.manifest import check_manifest, write_manifest
from judgelab.report.normalise import normalise_file
from judgelab.report.position_data import in_both_orders
from judgelab.report.publish import publish_run
from judgelab.stages import APPLICATIONS, STAGES, WAVES, Stage, notebook_named, stage_named
from judgelab.study.configuration import asks_a_model
from judgelab.study.freeze import open_run
from judgelab.study.match_study import is_match_study, parse_match_study
from judgelab.study.protocol import Study, check_run_name, parse_study, read_params
from judgelab.study.run import Run

__all__ = ["execute", "prepared", "publish", "refresh_notebooks", "run_study", "verify"]

MATCH_STAGES = ("06", "09")  # what a study of matches has


def run_study(
    params: Path,
    *,
    first: str | None = None,
    last: str = "10",
    changes: Sequence[str] = (),
    jobs: int = 1,
    batch: bool = False,
    say: Callable[[str], None] = print,
) -> Path:
    """Run the notebooks of one study with papermill, then write the report and the manifest.

    Parameters
    ----------
    params
        ``params/<name>.yaml``.
    first, last
        Numbers of the first and the last stage. A run begins with 00 where the study has answers to make, else with 01.
    changes
        ``key=value`` pairs that change the protocol before it is frozen; keys are dotted paths.
    jobs
        How many notebooks may run side by side.
    batch
        Whether judges whose provider has batches are asked through them: half the price, within a day.
    say
        Called with each line of progress.

    Returns
    -------
    pathlib.Path
        The report's ``index.html``.

    Raises
    ------
    JudgelabError
        For a mistake in the parameters or files, or a stage that stopped. What was judged stays.
    """
    if is_match_study(read_params(params).get("study")):
        return _run_matches(params, changes, (first, last), say)
    name, study = prepared(params, changes)
    begin, end = stage_named(first or ("00" if study.makes_answers else "01")), stage_named(last)
    if STAGES.index(begin) > STAGES.index(end):
        raise RunError(f"--from {begin.number} comes after --to {end.number}")
    folder = outputs_folder() / name
    if begin.number > "01" or (folder / "protocol.yaml").is_file():
        open_run(name, study)  # refuses another protocol, or none, before anything is executed
    wanted = STAGES[STAGES.index(begin) : STAGES.index(end) + 1]
    with hold_run(folder), _environment({BATCHES: "1"} if batch else {}):
        for wave in WAVES:
            stages = [stage for stage in wave if stage in wanted]
            _run_wave(stages, name, study, jobs, say)
        if end.number == "00":
            return folder / "notebooks" / end.notebook.name
        run = open_run(name, study)
        index = publish(run)
        write_manifest(run)
    if run.labels_open:
        notebook = shown(folder / "notebooks" / stage_named("02").notebook.name)
        say(
            f"labels: not closed yet; label in JupyterLab (`make lab`, open {notebook}, Run > Run All Cells) "
            f"or in sheets (`judgelab labels export {name}`), close them, then run the same command again"
        )
    return index


def _run_matches(
    params: Path, changes: Sequence[str], stages: tuple[str | None, str], say: Callable[[str], None]
) -> Path:
    """Freeze a study of matches, and run the stages that it has: the ranking, and of both orders the position test."""
    name, values = _changed(params, changes)
    study = parse_match_study(values, where=shown(params))
    first, last = (stage_named(given) if given is not None else None for given in stages)
    asked = [
        stage
        for stage in map(stage_named, MATCH_STAGES)
        if (first is None or first.number <= stage.number) and (last is None or stage.number <= last.number)
    ]
    if not asked:
        raise RunError(f"{shown(params)} is a study of matches: it has the stages {' and '.join(MATCH_STAGES)} alone")
    with hold_run(outputs_folder() / name):
        run = freeze_matches(name, study)
        both, every = in_both_orders(run.matches())
        if not both and asked[0].number == "06":
            told = f"the matches hold one order only (n = 0 of {every} comparisons in both orders)"
            asked = asked[1:]
            if not asked:
                raise RunError(f"{shown(params)}: stage 06 cannot be answered: {told}")
            say(f"06  left out: {told}")
        for stage in asked:
            say(f"{stage.number}  {stage.question}")
            execute(stage, name, study.model_dump(mode="json", exclude_defaults=True))
        index = publish(run)
        write_manifest(run)
    return index


def publish(run: Run | MatchRun) -> Path:
    """Write ``report/``: every executed notebook as one self-contained HTML file, and ``index.html``."""
    questions = {stage.name: stage.question for stage in STAGES}
    return publish_run(run, questions)


def refresh_notebooks(names: Sequence[str] = (), *, say: Callable[[str], None] = print) -> None:
    """Execute committed notebooks at their defaults, in place, and bring them into their normal form.

    Parameters
    ----------
    names
        Stages or applications, by number or name; none: all of them.
    say
        Called with each notebook's question.
    """
    for stage in [notebook_named(name) for name in names] or (*STAGES, *APPLICATIONS):
        say(f"{stage.number}  {stage.question}")
        _execute(stage, stage.notebook, {})
        normalise_file(stage.notebook)


def prepared(params: Path, changes: Sequence[str] = ()) -> tuple[str, Study]:
    """The run's name and its validated protocol, with ``key=value`` changes applied."""
    run, values = _changed(params, changes)
    if is_match_study(values):
        raise RunError(f"{shown(params)} is a study of matches that were judged elsewhere: it asks nobody")
    return run, parse_study(values, where=shown(params))


def _changed(params: Path, changes: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The run's name and its protocol as plain values, with ``key=value`` changes applied."""
    document = read_params(params)
    for change in changes:
        _apply(document, change)
    run = document.get("run", params.stem)
    check_run_name(run, shown(params))
    return run, document.get("study") or {}


def _apply(document: dict[str, Any], change: str) -> None:
    """One ``--set key=value``: ``run=name`` or a dotted path into the protocol. Values are YAML."""
    key, found, text = change.partition("=")
    if not found or not key.strip():
        raise ProtocolError(f"--set {change!r}: the form is key=value, for example random_seed=7")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ProtocolError(f"--set {key}: {text!r} is not a YAML value") from None
    if key.strip() == "run":
        document["run"] = str(value)
        return
    place: Any = document.setdefault("study", {})
    *path, leaf = key.strip().removeprefix("study.").split(".")
    for part in path:
        place = (
            place[int(part)]
            if isinstance(place, list) and part.isdecimal() and int(part) < len(place)
            else (place.setdefault(part, {}) if isinstance(place, dict) else None)
        )
        if not isinstance(place, dict | list):
            raise ProtocolError(f"--set {key}: {part!r} is not a group of keys in the protocol")
    if isinstance(place, list):
        if not leaf.isdecimal() or int(leaf) >= len(place):
            raise ProtocolError(f"--set {key}: the list has {len(place)} entries, numbered from 0")
        place[int(leaf)] = value
    else:
        place[leaf] = value


def _run_wave(stages: list[Stage], name: str, study: Study, jobs: int, say: Callable[[str], None]) -> None:
    if not stages:
        return
    asking = [judge for judge in study.judges if asks_a_model(judge)]
    strategies = [strategy for stage in stages for strategy in stage.strategies]
    values = study.model_dump(mode="json", exclude_defaults=True)
    with LedgerWatch(outputs_folder() / name / "ledger.sqlite", asking, strategies):
        if jobs == 1 or len(stages) == 1:
            for stage in stages:
                say(f"{stage.number}  {stage.question}")
                execute(stage, name, values)
            return
        for stage in stages:
            say(f"{stage.number}  {stage.question}")
        # Processes, not threads: papermill changes the working folder of its process.
        with ProcessPoolExecutor(min(jobs, len(stages)), mp_context=get_context("spawn")) as pool:
            done = [pool.submit(execute, stage, name, values) for stage in stages]
            errors = [error for error in (future.exception() for future in done) if error is not None]
        if errors:
            raise errors[0]


def execute(stage: Stage, run: str, study: Mapping[str, Any]) -> Path:
    """Execute one notebook into ``outputs/<run>/notebooks`` and bring it into its normal form."""
    import papermill

    source = stage.notebook
    target = outputs_folder() / run / "notebooks" / source.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {shown(target.parent)}: {error.strerror}") from None
    parameters = {"run": run, "study": dict(study)}
    unknown = set(parameters) - set(papermill.inspect_notebook(str(source)))
    if unknown:
        raise RunError(f"{shown(source)}: its parameters cell has no {', '.join(sorted(unknown))}")
    _execute(stage, target, parameters)
    normalise_file(target)
    return target


def _execute(stage: Stage, target: Path, parameters: Mapping[str, Any]) -> None:
    """Run one notebook in a kernel of its own. The target is replaced only when the kernel has ended."""
    import papermill

    started = target.with_name(f".{target.name}")
    here = Path.cwd()
    try:
        with _project_environment(parameters.get("run")), _socket_folder() as sockets:
            papermill.execute_notebook(
                str(stage.notebook),
                str(started),
                parameters=dict(parameters),
                kernel_name="python3",
                cwd=str(stage.notebook.parent),
                progress_bar=False,
                record_timing=False,
                kernel_manager_class=_kernel_manager(sockets),
                extra_arguments=["--log-level=50"],  # a kernel that is told to end logs an error of its own
            )
    except KeyboardInterrupt:
        # the kernel got the same signal; that its client then finds it gone is no news
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        raise
    except papermill.PapermillExecutionError as error:
        message = _stopped(stage, error, target)
        if parameters:
            started.replace(target)
        raise RunError(message) from None
    except OSError as error:  # a full disk, above all
        place = shown(error.filename or target)
        raise RunError(f"stage {stage.number} stopped: {place}: {error.strerror}; what was judged is kept") from None
    else:
        started.replace(target)
    finally:
        os.chdir(here)
        started.unlink(missing_ok=True)


def _stopped(stage: Stage, error: Any, target: Path) -> str:
    """Why a stage stopped: our own message as it is, anything else with its place."""
    known = {cls.__name__ for cls in _all_errors(JudgelabError)}
    if error.ename in known:
        return f"stage {stage.number} stopped: {error.evalue}"
    if error.ename == "KeyboardInterrupt":
        return f"stage {stage.number} was interrupted; what was judged is kept, run the same command to go on"
    return (
        f"stage {stage.number} stopped in cell {error.exec_count} with {error.ename}: {error.evalue}; "
        f"the whole traceback stands in {shown(target)}"
    )


def _all_errors(cls: type[BaseException]) -> Iterator[type[BaseException]]:
    yield cls
    for below in cls.__subclasses__():
        yield from _all_errors(below)


def _project_environment(run: str | None) -> contextlib.AbstractContextManager[None]:
    """Kernels find the same project and outputs as this process, and judge in the run that it holds for them."""
    values = {"JUDGELAB_ROOT": str(project_root()), "JUDGELAB_OUTPUTS": str(outputs_folder())}
    if run is not None:
        values[HELD] = str((outputs_folder() / run).resolve())
    return _environment(values)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """These environment variables for a while; kernels and processes that are started meanwhile have them, too."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _socket_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="judgelab-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _kernel_manager(sockets: Path) -> Any:
    """A kernel manager with unix sockets of its own: kernels started side by side race for TCP ports."""
    from jupyter_client import AsyncKernelManager
    from traitlets import default

    class SocketKernelManager(AsyncKernelManager):
        @default("transport")  # type: ignore[untyped-decorator]
        def _default_transport(self) -> str:
            return "ipc"

        @default("ip")  # type: ignore[untyped-decorator]
        def _default_ip(self) -> str:
            return str(sockets / "kernel")

    return SocketKernelManager


def verify(run: Run | MatchRun, *, say: Callable[[str], None] = print) -> list[str]:
    """Recompute the manifest's hashes and execute the analysis notebooks again under nbval, in a copy of the run.

    Returns
    -------
    list of str
        What differs, one line each; empty if the run can be reproduced from what it stored.
    """
    differences = check_manifest(run)
    alone = isinstance(run, Run) and run.study.ranking.listwise is None and run.study.ranking.leaderboard is None
    again = ("09",) if alone else ()  # the ranking, where it asks nobody and feeds no leaderboard of others
    say(f"hashes: {len(differences)} of the files differ from the manifest" if differences else "hashes: all equal")
    with tempfile.TemporaryDirectory(prefix="judgelab-verify-") as scratch:
        copy = Path(scratch) / run.name
        shutil.copytree(run.folder, copy, ignore=shutil.ignore_patterns(".lock*"))
        before = {path.name: path.read_bytes() for path in (copy / "tables").glob("*.csv")}
        for stage in STAGES:
            notebook = copy / "notebooks" / f"{stage.name}.ipynb"
            if not (stage.analysis or stage.number in again) or not notebook.exists():
                continue
            found = _nbval(notebook, Path(scratch))
            say(f"{stage.number}  {'outputs differ' if found else 'same outputs'}")
            differences += [f"{stage.name}: {line}" for line in found]
        for name, content in before.items():
            if (copy / "tables" / name).read_bytes() != content:
                differences.append(f"tables/{name}: computing it again gives other numbers")
    return differences


def _nbval(notebook: Path, outputs: Path) -> list[str]:
    """Execute one notebook under nbval; the lines in which its outputs differ."""
    command = [
        sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout", "600",
        "-p", "no:cacheprovider", "-q", "--rootdir", str(notebook.parent), "-c", os.devnull, str(notebook),
    ]  # fmt: skip
    environment = {**os.environ, "JUDGELAB_OUTPUTS": str(outputs), "JUDGELAB_ROOT": str(project_root())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode == 0:
        return []
    lines = [line.strip() for line in done.stdout.splitlines()]
    kept = [
        line for line in lines if line.startswith(("FAILED", "- ", "+ ", "E ")) or "passed" in line or "failed" in line
    ]
    return kept[:40] or lines[-10:] or [done.stderr[-500:]]
