"""Units of size, and the one limit that is JSON's own."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

JSON_INTEGER_MAX = 2**53 - 1
"""The largest integer that every client's JSON keeps exact."""
