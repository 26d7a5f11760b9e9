"""What a run was and found: kept, shown, compared."""
