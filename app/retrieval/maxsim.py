"""Late interaction: how well a passage's tokens cover a question's (Khattab and Zaharia 2020, ColBERT)."""

from app.types import FloatArray


def maxsim(query: FloatArray, passage: FloatArray) -> float:
    """Mean over the query's tokens of the greatest cosine to a token of the passage: -1 to 1.

    Both of shape (tokens, dimensions), unit rows. The paper sums; the mean ranks alike and compares across questions.
    A side without tokens gives -1.
    """
    if not (len(query) and len(passage)):
        return -1.0
    return float((query @ passage.T).max(axis=1).mean())
