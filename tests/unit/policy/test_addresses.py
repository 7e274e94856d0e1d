"""What is a loopback address, and what can stand in a `Host` header."""

import pytest

from codespace.policy.addresses import is_host, is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_an_address_that_only_this_machine_reaches_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.1", "", "[]"])
def test_any_other_is_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "text", ["a.example", "a.example:8443", "[2001:db8::1]:1", "2001:db8::1", "192.0.2.1", "a_b"]
)
def test_a_name_stands_in_a_header_with_and_without_a_port(text: str) -> None:
    assert is_host(text)


@pytest.mark.parametrize("text", ["", "https://a.example", "*.example", "a b", "a.example:", "a:x"])
def test_what_is_no_name_does_not(text: str) -> None:
    assert not is_host(text)
