"""Readers of published data sets: each makes tables, or a whole study, of a foreign layout.

``IMPORTERS`` has those that make a study, by the name that `judgelab import` knows. Each takes a folder (most of
them also a file) and the run's name, writes ``outputs/<run>/source`` and, if missing, ``params/<run>.yaml``, and
returns that path and notes for the user. The ``read_...`` functions give the labels, verdicts and scores of a set as
tables, and `judgelab fetch` gets the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from judgelab.study.sources.alpaca_eval import import_alpaca_eval
from judgelab.study.sources.arena import import_arena
from judgelab.study.sources.judge_bench import import_judge_bench
from judgelab.study.sources.judgebench import JudgeBench, read_judgebench
from judgelab.study.sources.llmbar import import_llmbar
from judgelab.study.sources.llmfao import Evalica, Llmfao, read_evalica, read_llmfao
from judgelab.study.sources.llmfao_study import import_llmfao
from judgelab.study.sources.mt_bench import import_mt_bench
from judgelab.study.sources.pandalm import PandaLM, read_pandalm
from judgelab.study.sources.pandalm_study import import_pandalm
from judgelab.study.sources.plain import import_plain
from judgelab.study.sources.position_bias import PositionBias, read_position_bias
from judgelab.study.sources.prometheus import read_prometheus
from judgelab.study.sources.unieval import published_unieval, read_unieval

__all__ = [
    "IMPORTERS",
    "Evalica",
    "JudgeBench",
    "Llmfao",
    "PandaLM",
    "PositionBias",
    "import_alpaca_eval",
    "import_arena",
    "import_judge_bench",
    "import_llmbar",
    "import_llmfao",
    "import_mt_bench",
    "import_pandalm",
    "import_plain",
    "published_unieval",
    "read_evalica",
    "read_judgebench",
    "read_llmfao",
    "read_pandalm",
    "read_position_bias",
    "read_prometheus",
    "read_unieval",
]

IMPORTERS: dict[str, Callable[[Path, str], tuple[Path, list[str]]]] = {
    "alpaca-eval": import_alpaca_eval,
    "arena": import_arena,
    "judgebench": import_judge_bench,
    "llmbar": import_llmbar,
    "llmfao": import_llmfao,
    "mt-bench": import_mt_bench,
    "pandalm": import_pandalm,
    "plain": import_plain,
}
