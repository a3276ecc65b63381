"""judgelab puts an LLM judge on trial.

Data flows one way through four rooms: ``study`` (what is asked), ``judging`` (asking), ``measure``
(pure statistics) and ``report`` (showing). The notebooks in ``notebooks/`` walk through them.
"""

__version__ = "0.1.0"
