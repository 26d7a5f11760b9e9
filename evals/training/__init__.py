"""Trains the small cross-encoder that the service ships: pairs, then weights, then the file in `app/models/grader`."""
