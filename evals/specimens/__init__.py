"""Specimen filings: invented companies, their 10-K and 10-Q reports as PDFs, and questions with verified evidence."""
