"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure, and CI runs the same examples every time.
settings.register_profile("judgelab", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("judgelab")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the public data sets and the reference script, next to the repository.

    Tests that need it skip where it is absent, unless JUDGELAB_REQUIRE_DATA=1 forbids skipping.
    """
    folder = Path(__file__).resolve().parents[2] / "shared"
    if (folder / "seeds").is_dir() and (folder / "data").is_dir():
        return folder
    reason = "the folder shared with seeds and data is not next to the repository"
    if os.environ.get("JUDGELAB_REQUIRE_DATA") == "1":
        pytest.fail(f"{reason}, and JUDGELAB_REQUIRE_DATA=1 forbids skipping")
    pytest.skip(reason)
