"""The files of a complete study, of items or of matches, for tests that take something away from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from judgelab.judging.check import Finding, check_study

__all__ = ["CHAT", "COIN", "HEADER", "KEY", "Files", "Matches"]

KEY = "JUDGELAB_TEST_CHECK_KEY"
CHAT = {"kind": "chat", "name": "hosted", "model": "m", "base_url": "https://judge.example/v1", "api_key_env": KEY}
COIN = {"kind": "control", "name": "coin", "rule": "coin"}
HEADER = "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated\n"


class Files:
    """The files of one study, complete until a test changes something."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.params = root / "params/small.yaml"
        self.items_path = root / "params/items.jsonl"
        self.labels_path = root / "params/labels.csv"
        self.values: dict[str, Any] = {
            "study_id": "small",
            "sampling_rule": "all of one week",
            "items": {"path": "params/items.jsonl"},
            "systems": {"ALPHA": {}, "BETA": {}},
            "human_labels": {"path": "params/labels.csv"},
            "rubric_version": "r1",
            "direct_scale": {"criteria": ["correctness"]},
            "direct_tie_margin": 0.25,
            "random_seed": 7,
            "judges": [{"kind": "simulated", "name": "sim"}, COIN],
            "decision": {"minimum_items": 4},
        }
        self.protocol()
        self.items([self.item(number) for number in range(4)])
        self.labels("".join(f"i{number},{who},4,3,ALPHA,false\n" for number in range(4) for who in ("r1", "r2")))

    def item(self, number: int, **changes: Any) -> dict[str, Any]:
        answers = {"ALPHA": f"It is {number}.", "BETA": "Nobody knows."}
        return {"item_id": f"i{number}", "category": "sums", "task": f"{number}?", "answers": answers} | changes

    def protocol(self, **changes: Any) -> None:
        self.params.write_text(yaml.safe_dump({"run": "small", "study": self.values | changes}), encoding="utf-8")

    def items(self, records: list[Any]) -> None:
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        self.items_path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def labels(self, rows: str) -> None:
        self.labels_path.write_text(HEADER + rows, encoding="utf-8")

    def check(self) -> list[Finding]:
        """What is found, after a look that nothing was written."""
        before = {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}
        found = check_study(self.params)
        assert {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()} == before
        assert all(finding.mend for finding in found if finding.blocks)
        return found

    def blocking(self) -> list[tuple[str, str]]:
        return [(finding.level, finding.what) for finding in self.check() if finding.blocks]

    def advice(self) -> list[str]:
        return [finding.what for finding in self.check() if finding.level == "advice"]


class Matches:
    """A study of matches."""

    def __init__(self, root: Path) -> None:
        self.params, self.path = root / "params/m.yaml", root / "params/matches.csv"
        self.values = {"study_id": "m", "matches": "params/matches.csv", "random_seed": 1}
        self.write("a,b,a,j1\nb,c,b,j2\n")
        self.protocol()

    def protocol(self, **changes: Any) -> None:
        values = self.values | {"ranking": {"minimum_matches": 1}} | changes
        self.params.write_text(yaml.safe_dump({"run": "m", "study": values}), encoding="utf-8")

    def write(self, rows: str, header: str = "system_x,system_y,preference,judge") -> None:
        self.path.write_text(f"{header}\n{rows}", encoding="utf-8")

    def check(self) -> list[tuple[str, str]]:
        found = check_study(self.params)
        assert all(finding.mend for finding in found if finding.blocks)
        return [(finding.level, finding.what) for finding in found]
