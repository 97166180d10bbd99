"""The one exception a user is meant to read."""


class BadInput(Exception):
    """Something the user gave cannot be used; the message is one sentence that says what, where and how to mend it."""


def suggest(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """`; did you mean 'x'?` when a known word is close to the given one, else the known words when they are few."""
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= 20 else ""
