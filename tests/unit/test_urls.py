"""Addresses of callbacks: what is read, what is refused, and what secrets may stand for."""

import pytest

from foliot.core.allow_list import CLOSED, read_allow_list
from foliot.core.errors import InvalidInput
from foliot.core.urls import check_url, literal_refusal, read_url


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("https://example.com", "https://example.com/"),
        ("https://example.com/", "https://example.com/"),
        ("HTTPS://Example.COM/A", "https://example.com/A"),
        ("http://example.com:80/x", "http://example.com/x"),
        ("https://example.com:80/x", "https://example.com:80/x"),
        ("https://example.com:08443/x", "https://example.com:8443/x"),
        ("https://example.com?a=1&b=2", "https://example.com/?a=1&b=2"),
        ("https://example.com/a/../b?x=/..//", "https://example.com/a/../b?x=/..//"),
        ("https://bücher.example/ä?ö=€", "https://xn--bcher-kva.example/%C3%A4?%C3%B6=%E2%82%AC"),
        ("https://example.com/%20%zz", "https://example.com/%20%zz"),
        ("https://example.com/a@b:c", "https://example.com/a@b:c"),
        ("https://example.com/?to=me@example.com", "https://example.com/?to=me@example.com"),
        ('https://example.com/<"|^`{}>', "https://example.com/%3C%22%7C%5E%60%7B%7D%3E"),
        ("http://93.184.216.34/", "http://93.184.216.34/"),
        ("http://[2606:0:0::1]:8080/x", "http://[2606::1]:8080/x"),
    ],
)
def test_an_address_is_sent_in_one_form(text: str, sent: str) -> None:
    url = read_url(text, "url")
    assert url.text == sent
    assert read_url(url.text, "url") == url


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not an http or https address"),
        ("ftp://example.com/", "is not an http or https address"),
        ("example.com/x", "is not an http or https address"),
        ("https:///x", "names no host"),
        ("https://me:hunter2@example.com/", "has a user or a password in it"),
        ("https://example.com/#x", "has a #, and what follows one is never sent"),
        ("https://example.com:0/", "has a port that is none"),
        ("https://example.com:65536/", "has a port that is none"),
        ("https://example.com:/", "has a port that is none"),
        ("https://example.com/a b", "has a space, a backslash or a control character"),
        ("https://example.com/a\r\nb", "has a space, a backslash or a control character"),
        ("https://example.com\\x", "has a space, a backslash or a control character"),
        ("https://example.com/" + "a" * 8000, "has more than 8000 characters"),
        ("https://127.1/", "'127.1' is not an IPv4 address in its plain form"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(text: str, words: str) -> None:
    for read in (read_url, check_url):
        with pytest.raises(InvalidInput) as refused:
            read(text, "target.url")
        assert (refused.value.field, refused.value.reason) == ("target.url", words)
        assert refused.value.hint
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "${secrets.HOOK}",
        "${secrets.BASE}/orders?id=1",
        "https://example.com/${secrets.TOKEN}/x",
        "https://example.com/?key=${secrets.KEY}&x=1",
    ],
)
def test_a_secret_may_stand_for_the_beginning_or_for_pieces_of_path_and_query(text: str) -> None:
    url = check_url(text, "target.url")
    assert (url is None) == text.startswith("$")


@pytest.mark.parametrize(
    "text",
    [
        "https://${secrets.HOST}/",
        "https://a.${secrets.ZONE}/",
        "https://a:${secrets.PORT}/",
        "https://${secrets.USER}@a/",
    ],
)
def test_a_secret_is_not_a_piece_of_a_host(text: str) -> None:
    with pytest.raises(InvalidInput, match="has a secret in its host"):
        check_url(text, "target.url")


def test_a_secret_does_not_hide_what_is_no_address() -> None:
    for text in ("${secrets.A}/a b", "${secrets.A}\r\n"):
        with pytest.raises(InvalidInput, match="has a space"):
            check_url(text, "target.url")
    with pytest.raises(InvalidInput, match="is not an http or https address"):
        read_url("${secrets.A}", "target.url")


@pytest.mark.parametrize(
    ("text", "allow", "words"),
    [
        ("http://8.8.8.8/", "", None),
        ("http://not-there-yet.example/", "", None),
        ("http://10.0.0.1/", "", "10.0.0.1 is a private address"),
        ("http://10.0.0.1/", "private", None),
        ("http://[::1]/", "", "::1 is the loopback address"),
        ("http://localhost/", "", "localhost is this machine: 127.0.0.1 is a loopback address"),
        ("http://localhost/", "loopback", None),
        ("http://localhost/", "localhost", None),
        ("http://localhost/", "127.0.0.1", None),
        ("http://localhost/", "[::1]:80", None),
        (
            "http://a.localhost/",
            "localhost",
            "a.localhost is this machine: 127.0.0.1 is a loopback address",
        ),
    ],
)
def test_only_what_the_text_tells_is_judged(text: str, allow: str, words: str | None) -> None:
    opened = read_allow_list([allow], "X") if allow else CLOSED
    assert literal_refusal(read_url(text, "url"), opened) == words
