"""What a question names and asks: filings, periods, parts, kind, and other words for it."""
