"""RSD: an experiment harness for Reward-Guided Speculative Decoding (arXiv 2501.19324)."""

__version__ = "0.1.0"
