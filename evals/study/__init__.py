"""The mechanism study: the architectures that serve requests, over a geometry that shows what each wins and damages."""
