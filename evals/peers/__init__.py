"""Other frameworks on the same work: the same PDFs, embedding model and questions, each in its own environment."""
