"""Acting on a question in steps: with a model that decides, or by rules over what was found."""
