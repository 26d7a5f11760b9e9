"""What an answer rests on: quotable units of passages, numbers in them, and whether they carry a sentence."""
