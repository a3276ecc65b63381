"""The real battery of probes on fair judges: how often does it call one biased, and how often does it find a bias?

Protocol, items, plans of passes, judges, contract, matched pairs and table are the package's own. Only the runner and
its ledger are left out: each call of a plan goes straight to the simulated judge, whose reply is read by the contract.
The ledger would keep the same verdicts, at a multiple of the time. A simulated judge does not look at its prompt, so
one prompt stands for all.

All studies are parts of one frozen run. Each has items, qualities and labels of its own and a judge with a seed of its
own. The studies of 27 items are the first 27 of those of 60, so the two sizes are no independent evidence.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.loopback import make_run, project
from judgelab.judging.judges import client_for
from judgelab.judging.passes import PassPlan
from judgelab.judging.probes import probe_plans
from judgelab.judging.prompts import render
from judgelab.judging.replies import contract_for
from judgelab.judging.work import passes_of
from judgelab.measure.intervals import wilson
from judgelab.measure.matched_pairs import matched_pairs
from judgelab.measure.probes import probe_table
from judgelab.study.battery import ANSWER_PROBES, PROBES
from judgelab.study.items import Item
from judgelab.study.run import Run

__all__ = ["ANY", "JUDGES", "alarms", "frozen", "main", "pairs_of"]

SIZES = (27, 60)
STUDIES = 200
NOISE, SHIFT, PLACE = 0.5, 0.5, 0.5  # the qualities of answers have standard deviation 1
SIGNIFICANT = 0.05
ANY = "any, after Holm"
SYSTEMS = ("ALPHA", "BETA")
# typos cost what the others gain; order and labels are nothing that a simulated judge can be made to see
_PLANTED = dict.fromkeys(ANSWER_PROBES, SHIFT) | {"surface_noise": -SHIFT}
JUDGES: dict[str, dict[str, Any]] = {
    "fair": {},
    "planted": {"probe_effects": _PLANTED, "first_position_effect": PLACE},
}


def frozen(folder: Path, items: int) -> Run:
    """A frozen run of this many items with drawn qualities and the labels of one reviewer, who errs too."""
    rng = np.random.default_rng(items)
    quality = rng.standard_normal((items, 2))
    seen = quality[:, 0] - quality[:, 1] + NOISE * rng.standard_normal(items)
    said = np.select([seen > NOISE / 2, seen < -NOISE / 2], SYSTEMS, "TIE")
    ids = [f"i{number:06d}" for number in range(items)]  # as make_run names them
    labels = pd.DataFrame({"item_id": ids, "reviewer_id": "r1", "preference": said, "is_adjudicated": "false"})
    labels.to_csv(folder / "params" / "labels.csv", index=False)
    table = pd.DataFrame({"item_id": np.repeat(ids, 2), "system": SYSTEMS * items, "quality": quality.ravel()})
    table.to_csv(folder / "params" / "quality.csv", index=False)
    common = {"kind": "simulated", "noise": NOISE, "quality_path": "params/quality.csv"}
    return make_run(
        folder,
        items,
        [common | {"name": name} | planted for name, planted in JUDGES.items()],
        passes=["pairwise_original", "pairwise_swapped"],
        position_test={"enabled": True},
        human_labels={"path": "params/labels.csv", "provenance": "simulated", "reference_rule": ["majority"]},
        probes={"run": "all", "repeats": 2, "identity": "Model Q"},
    )


def pairs_of(run: Run, plans: Sequence[PassPlan], items: Sequence[Item], seed: int) -> pd.DataFrame:
    """The matched pairs of one judge and study, whose plans hold plain passes and probes; ``seed`` is the judge's."""
    client = client_for(plans[0].judge.model_copy(update={"seed": seed}), run.study)
    prompt = render(run.study, items[0], "pairwise", SYSTEMS)

    async def rows() -> list[dict[str, Any]]:
        found = []
        for plan in plans:
            contract = contract_for(run.study, "pairwise", wording=plan.shape)
            for call in (call for item in items for call in plan.calls(item)):
                verdict = contract.read((await client.ask(call, prompt)).text).verdict
                found.append(
                    {
                        "judge": plan.judge.name, "strategy": "pairwise", "pass": call.pass_,
                        "item_id": call.item.item_id, "category": call.item.category,
                        "system_x": SYSTEMS[0], "system_y": SYSTEMS[1],
                        "first": call.presentation[0], "second": call.presentation[1],
                        "verdict": verdict and verdict["winner"], "status": "verdict" if verdict else "unusable",
                        "reason": "", "repeat": call.repeat, "probe": call.probe, "manipulated": call.manipulated,
                        "words_added": 0,  # shown to people, and not measured
                    }
                )  # fmt: skip
        return found

    calls = pd.DataFrame(asyncio.run(rows()))
    return matched_pairs(calls[calls["probe"] == ""], calls[calls["probe"] != ""])


def alarms(run: Run, judge: str, studies: int) -> dict[int, Counter[str]]:
    """By number of items, in how many studies each probe has p < 0.05, and in how many any has after Holm."""
    items, size = run.evaluation_items(), max(SIZES)
    every = [*passes_of(run.study, ["pairwise_original", "pairwise_swapped"]), *probe_plans(run)]
    plans = [plan for plan in every if plan.judge.name == judge]
    found: dict[int, Counter[str]] = {n: Counter() for n in SIZES}
    for study in range(studies):
        own = items[study * size : (study + 1) * size]
        pairs = pairs_of(run, plans, own, study)
        for n in SIZES:
            chosen = pairs[pairs["item_id"].isin([item.item_id for item in own[:n]])]
            # the tests are exact: one resample is enough, since no interval is read
            rows = probe_table(chosen, ci_level=0.95, resamples=1, seed=1)
            significant = rows[rows["estimate"] < SIGNIFICANT]
            tested = significant.loc[significant["measure"] == "probe_p", "slice"]
            found[n].update(tested.str.removeprefix("probe="))
            found[n][ANY] += bool((significant["measure"] == "probe_p_holm").any())
    return found


def main(scale: float = 1.0) -> None:
    """Measure and print."""
    studies = max(10, int(STUDIES * scale))
    with project() as folder:
        run = frozen(folder, studies * max(SIZES))
        found = {judge: alarms(run, judge, studies) for judge in JUDGES}
    print(f"{studies} studies each; share in which a probe has p < {SIGNIFICANT} before Holm [95 % interval]")
    print(f"planted: {SHIFT} for the target, {PLACE} for the first place, nothing for order and labels; noise {NOISE}")
    print(f"  {'probe':<16} {'n':>4}" + "".join(f" {judge:>24}" for judge in JUDGES))
    for name in (*PROBES, ANY):
        for n in SIZES:
            cells = [_cell(found[judge][n][name], studies) for judge in JUDGES]
            if name == "repetition":
                cells = ["no test"] * len(JUDGES)
            print(f"  {name:<16} {n:>4}" + "".join(f" {cell:>24}" for cell in cells), flush=True)
    print("repetition measures the noise that the other probes are compared with: there is nothing to test")


def _cell(count: int, studies: int) -> str:
    """A share with its interval."""
    low, high = wilson(count, studies, 0.95)
    return f"{count / studies:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
