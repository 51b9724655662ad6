"""The papers' claims beside what the model says of them, each computed when it is asked for."""

from cusim.reproduce.claim import Claim
from cusim.reproduce.registry import PAPERS, reproduce

__all__ = ["PAPERS", "Claim", "reproduce"]
