"""Studies whose labels are made in JupyterLab: small projects of their own, with answers that tell who gave them."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from judgelab.pipeline import run_study
from judgelab.study.freeze import freeze, open_run
from judgelab.study.items import read_items
from judgelab.study.protocol import load_params

ROOT = Path(__file__).parents[2]
COLOURS = {"ALPHA": "red", "BETA": "blue", "GAMMA": "green"}  # what an answer says of who gave it
EXPLANATION = "The policy of the shop says so."


@dataclass
class LabellingStudy:
    """A study in a project under JupyterLab's root: ``ROOT/<name>`` holds params, notebooks and outputs."""

    root: Path
    name: str
    systems: tuple[str, ...]

    @property
    def run(self) -> Path:
        """``outputs/<name>``."""
        return self.root / "outputs" / self.name

    @property
    def notebook(self) -> Path:
        """Notebook 02 as it was executed."""
        return self.run / "notebooks" / "02_human_reference.ipynb"

    def at(self, notebook: Path | None = None) -> str:
        """The place of a notebook below JupyterLab's root."""
        return (notebook or self.notebook).relative_to(self.root.parent).as_posix()

    def copy(self, name: str) -> Path:
        """Notebook 02 once more, which JupyterLab gives a kernel of its own."""
        return shutil.copy(self.notebook, self.notebook.with_name(f"{name}.ipynb"))

    def open_with_parameters(self) -> Path:
        """Notebook 02 of the project itself, with this run in its parameters."""
        notebook = self.root / "notebooks" / self.notebook.name
        text = notebook.read_text(encoding="utf-8")
        assert text.count('run: str = \\"demo\\"') == 1
        notebook.write_text(text.replace('run: str = \\"demo\\"', f'run: str = \\"{self.name}\\"'), encoding="utf-8")
        return notebook

    def spot_check(self) -> Path:
        """A notebook of the cells about the spot check alone, as they stand in notebook 09."""
        cells = nbformat.read(self.root / "notebooks" / "09_ranking.ipynb", 4).cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        [form] = [source for source in code if "spot_check_view(" in source]
        [result] = [source for source in code if source.startswith("spot_check_result(")]
        opened = (
            "from judgelab.judging.ranking_data import open_ranking\n"
            f"data = open_ranking({self.name!r}, {{}})\nrules, intervals = data.rules, data.study.intervals"
        )
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in (opened, form, result)])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(made, self.run / "notebooks" / "spot_check.ipynb")
        return self.run / "notebooks" / "spot_check.ipynb"

    @contextmanager
    def here(self) -> Iterator[None]:
        """This process in the project, as the kernels are that JupyterLab starts there."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUDGELAB_ROOT", str(self.root))
            patch.setenv("JUDGELAB_OUTPUTS", str(self.root / "outputs"))
            yield

    def stages(self, first: str | None, last: str) -> list[str]:
        """``judgelab run``; what it says."""
        told: list[str] = []
        with self.here():
            run_study(self.root / "params" / f"{self.name}.yaml", first=first, last=last, say=told.append)
        return told

    def freeze(self) -> None:
        """Stage 01 without its notebook."""
        with self.here():
            freeze(*load_params(self.root / "params" / f"{self.name}.yaml"))

    def split(self, which: str) -> list[str]:
        """The ids of the items of one split, in the order of the file."""
        with self.here():
            return [item.item_id for item in open_run(self.name).items() if item.split == which]

    def task(self, item_id: str) -> str:
        """The task of an item."""
        return f"Ticket {item_id}: the parcel has not come. What does the desk write?"

    def item_of(self, task: str) -> str:
        """The item whose task was shown."""
        return task.partition(":")[0].removeprefix("Ticket ")

    def system_of(self, answer: str) -> str:
        """Who gave an answer that was shown, by its colour: the test knows it from the text alone."""
        found = [name for name, colour in COLOURS.items() if f"{colour} van" in answer]
        assert len(found) == 1, answer
        return found[0]

    def journal(self, path: str) -> list[dict[str, Any]]:
        """The records of a journal, ``labelling/<path>.jsonl``; none without it."""
        file = self.run / "labelling" / f"{path}.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    def rows(self, file: str) -> list[dict[str, str]]:
        """The rows of a CSV file of the run, as text."""
        with (self.run / file).open(encoding="utf-8", newline="") as opened:
            return list(csv.DictReader(opened))


def labelling_study(
    lab_root: Path,
    name: str,
    *,
    systems: int = 2,
    items: int = 16,
    reviewers: int = 2,
    share: float = 0.25,
    **labelling: Any,
) -> LabellingStudy:
    """Write the project: items, a protocol with two control judges, a key to the training items.

    ``labelling`` are keys of ``human_review.labelling``.
    """
    study = LabellingStudy(lab_root / name, name, tuple(list(COLOURS)[:systems]))
    shutil.copytree(ROOT / "notebooks", study.root / "notebooks")
    own = study.root / "params" / name
    own.mkdir(parents=True)
    names = [f"t{number:02d}" for number in range(1, items + 1)]
    records = [_item(study, item_id, "returns" if at % 2 else "delivery") for at, item_id in enumerate(names)]
    (own / "items.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    criteria = [
        {"name": "correctness", "description": "agrees with the policy and with the facts of the ticket"},
        {"name": "completeness", "description": "has every step that the customer needs"},
    ]
    values = {
        "study_id": name,
        "title": "Support desk",
        "question": "Which desk writes the better reply?",
        "sampling_rule": "every ticket of one week",
        "items": {"path": f"params/{name}/items.jsonl"},
        "systems": {system: {} for system in study.systems},
        "human_labels": {"provenance": "human"},
        "human_review": {
            "reviewers_per_item": reviewers,
            "adjudicate_disagreement": reviewers > 1,
            "labelling": {"training_key": f"params/{name}/key.csv", **labelling},
        },
        "rubric_version": "rubric-v1",
        "direct_scale": {"criteria": criteria},
        "direct_tie_margin": 0.25,
        "random_seed": 7,
        "split": {"development_share": share},
        "judges": [
            {"name": "longest", "kind": "control", "rule": "longest"},
            {"name": "coin", "kind": "control", "rule": "coin"},
        ],
        "ranking": {"spot_check": {"size": 5}},
        "measures": {"resamples": 500},
    }
    params = study.root / "params" / f"{name}.yaml"
    params.write_text(yaml.safe_dump({"run": name, "study": values}), encoding="utf-8")
    with study.here():
        training = [item for item in read_items(load_params(params)[1]).items if item.split == "development"]
    pair = ",".join(study.systems[:2])
    lines = [f"{item.item_id},{pair},{study.systems[0]},{EXPLANATION}" for item in training]
    key = "\n".join(["item_id,system_x,system_y,preference,explanation", *lines])
    (own / "key.csv").write_text(f"{key}\n", encoding="utf-8")
    return study


def _item(study: LabellingStudy, item_id: str, category: str) -> dict[str, Any]:
    """An item; its answers have more than one paragraph, and Markdown."""
    answers = {}
    for system, colour in zip(study.systems, COLOURS.values(), strict=False):
        steps = "\n".join(
            f"{at}. **{what}** within {at + 1} working days" for at, what in enumerate(("Search", "Refund"), 1)
        )
        answers[system] = (
            f"Dear customer,\n\nI am sorry that ticket {item_id} waits. The {colour} van was sent out today.\n\n"
            f"{steps}\n\n"
            "You do not have to do anything, and nothing of this costs you anything.\n\nThe support desk"
        )
    return {
        "item_id": item_id,
        "category": category,
        "task": study.task(item_id),
        "reference_context": "Policy 4.2: a lost parcel is searched for within three working days, then refunded.",
        "answers": answers,
    }
