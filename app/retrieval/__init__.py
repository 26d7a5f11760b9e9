"""From a question to its best passages: searched, fused, graded, widened."""
