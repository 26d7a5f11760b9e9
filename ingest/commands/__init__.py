"""What the command line does once its arguments are understood."""
