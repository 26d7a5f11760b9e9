"""Collections made worse on purpose, and orders planted in them."""
