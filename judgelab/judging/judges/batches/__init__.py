"""Batch interfaces of the providers, one dialect a file, behind one small interface (``base``)."""

from __future__ import annotations

from typing import Any

from judgelab.judging.judges.base import JudgeClient
from judgelab.judging.judges.batches.anthropic import AnthropicBatches
from judgelab.judging.judges.batches.base import BatchProvider
from judgelab.judging.judges.batches.chat import ChatBatches
from judgelab.judging.judges.http import HttpClient

__all__ = ["has_batches", "provider_for"]

_KINDS: dict[str, type[BatchProvider]] = {"chat": ChatBatches, "anthropic": AnthropicBatches}


def has_batches(judge: Any) -> bool:
    """Whether a judge of this kind can be asked through a provider's batches; any other is asked call by call."""
    return judge.kind in _KINDS


def provider_for(judge: Any, client: JudgeClient) -> BatchProvider:
    """The batch interface of a judge's provider. ``client`` says how a call is composed and its reply read."""
    assert isinstance(client, HttpClient)
    return _KINDS[judge.kind](judge, client)
