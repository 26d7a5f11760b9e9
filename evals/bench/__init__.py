"""How fast the service and the ingestion are, and how far from the sum of what they cannot do without."""
