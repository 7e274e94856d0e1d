"""The white space of the patch format. It is not Python's: U+001C to U+001F stay where they are."""

WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def trim(text: str) -> str:
    """Return `text` without white space at both ends."""
    return text.strip(WHITE_SPACE)


def rtrim(text: str) -> str:
    """Return `text` without white space at its end."""
    return text.rstrip(WHITE_SPACE)
