"""Sextant: six retrieval-augmented-generation architectures over financial filings, priced and cited."""
