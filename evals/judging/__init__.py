"""Whether answers are faithful and relevant, judged by rules or by a model."""
