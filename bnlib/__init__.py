"""Batch normalization decomposed: the library behind the book. Everything that computes lives here."""

__version__ = "0.1.0"
