"""Ratios, margins and growth, computed from cited table rows."""
