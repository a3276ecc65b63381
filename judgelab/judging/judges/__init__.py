"""The judges, one kind a file, behind one small interface (``base``)."""

from __future__ import annotations

from typing import Any

from judgelab.judging.judges.anthropic import AnthropicClient
from judgelab.judging.judges.base import JudgeClient
from judgelab.judging.judges.chat import ChatClient
from judgelab.judging.judges.control import ControlClient
from judgelab.judging.judges.embedded import EmbeddedClient
from judgelab.judging.judges.gemini import GeminiClient
from judgelab.judging.judges.recorded import RecordedClient
from judgelab.judging.judges.simulated import SimulatedClient
from judgelab.study.protocol import Study

__all__ = ["client_for"]

_KINDS: dict[str, Any] = {
    "chat": ChatClient,
    "anthropic": AnthropicClient,
    "gemini": GeminiClient,
    "embedded": EmbeddedClient,
    "recorded": RecordedClient,
    "control": ControlClient,
    "simulated": SimulatedClient,
}


def client_for(judge: Any, study: Study) -> JudgeClient:
    """The client for one judge of the protocol."""
    client: JudgeClient = _KINDS[judge.kind](judge, study)
    return client
