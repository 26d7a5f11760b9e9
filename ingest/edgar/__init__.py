"""Filings from EDGAR."""
