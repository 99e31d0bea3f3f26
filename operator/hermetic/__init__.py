"""Hermetic: GPU inference in clusters that must never reach the internet, and the proof that they do not."""

__version__ = "0.1.0"
