"""Where a text's first sentence ends."""

import nupunkt


def first_sentence(text: str) -> int:
    """End of its first sentence, or of its first line where that is a heading without a full stop."""
    line = text.partition("\n")[0]
    spans = nupunkt.sent_spans(text)
    end: int = spans[0][1] if spans else len(text)
    if line and len(line) < end and text[len(line) + 1 : len(line) + 2].isupper() and len(line.split()) >= 3:
        return len(line)
    return len(text[:end].rstrip())
