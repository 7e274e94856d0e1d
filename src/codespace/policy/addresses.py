"""What the names and addresses of a server mean: who can reach it, and what is one at all."""

import ipaddress
import re

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach a server that is bound to `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_host(text: str) -> bool:
    """Say whether a text can stand in a `Host` header, with or without a port."""
    if _HOST.fullmatch(text):
        return True
    try:
        return bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False
