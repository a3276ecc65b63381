"""Matches by hand, and what an addition to a match log says of their version."""

from __future__ import annotations

import pandas as pd

SYSTEMS = ("ALPHA", "BETA", "GAMMA")
P1, P2, I1, I2 = "1a" * 32, "2b" * 32, "3c" * 32, "4d" * 32
KEY = "sk-" + "abcdefghijklmnop"


def match(**changes):
    return {
        "judge": "j", "config_sha256": "c", "item_id": "i1", "category": "even", "pass": "original", "repeat": 0,
        "system_x": "ALPHA", "system_y": "BETA", "first": "ALPHA", "preference": "ALPHA", "reason": "",
        "words_x": 12.0, "words_y": 9.0,
    } | changes  # fmt: skip


def table(*matches):
    return pd.DataFrame(list(matches) or [match()])


def version(protocol=P1, items=I1, **changes):
    return {
        "run": "run-1", "study_id": "study", "protocol_sha256": protocol, "items_sha256": items,
        "rubric_version": "r1", "prompt_version": "judge-v1", "systems": SYSTEMS,
    } | changes  # fmt: skip
