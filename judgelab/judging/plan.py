"""What a run will ask, before anything is sent: calls, tokens and cost for each judge."""

from __future__ import annotations

import pandas as pd

from judgelab.judging.passes import plan_pass
from judgelab.study.configuration import describe
from judgelab.study.run import Run

__all__ = ["cost_table"]

CHARACTERS_PER_TOKEN = 4  # English prose under common tokenisers; an estimate, and named so in the table
REPLY_TOKENS = 80


def cost_table(run: Run) -> pd.DataFrame:
    """One row per judge: calls, estimated tokens (characters / 4), and cost by the protocol's prices.

    Judges that ask no model cost nothing. Retries are not counted.
    """
    rows = []
    for judge in run.study.judges:
        planned = [call for name in run.study.passes_of(judge) for call in plan_pass(run, judge, name)]
        paid = planned if judge.kind in ("chat", "embedded") else []
        sent = sum(len(call.prompt.system) + len(call.prompt.user) for call in paid) // CHARACTERS_PER_TOKEN
        received = len(paid) * REPLY_TOKENS
        prices = judge.prices
        cost = (sent * prices.input_per_million + received * prices.output_per_million) / 1e6
        rows.append(
            {
                "judge": judge.name,
                "what it is": describe(judge),
                "calls": len(planned),
                "calls to a model": len(paid),
                "tokens in (est.)": sent,
                "tokens out (est.)": received,
                "cost (est.)": f"{cost:.2f} {prices.currency}",
            }
        )
    return pd.DataFrame(rows)
