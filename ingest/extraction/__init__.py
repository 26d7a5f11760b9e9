"""What is read out of a filing's pages: metadata, figures, names, relations."""
