"""Proxies: which requests go through one, and what a failure names."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pegboard.errors import ProviderError
from pegboard.http.httpprovider import HttpProvider
from pegboard.http.proxies import proxy_for
from support.models import model_server as ms
from support.models.provider_run import events_of, provider_at, request_for, text_of
from support.wire.http_proxy import LOGIN, http_proxy

PROXY = "http://proxy.test:3128"
LOOPBACK = [
    *("http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1", "http://0.0.0.0:1"),
    *("https://LOCALHOST", "http://localhost.:1", "http://ollama.localhost:1", "http://127.9.9.9"),
    *("http://127.1:11434", "http://2130706433:1", "http://[::ffff:127.0.0.1]:1", "http://[::]:1"),
]
VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]


async def _answer_of(provider: HttpProvider) -> str:
    try:
        return text_of(await events_of(provider, request_for(provider.resolve("m"))))
    finally:
        await provider.aclose()


async def _error_of(provider: HttpProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await _answer_of(provider)
    return caught.value


@pytest.mark.parametrize("url", LOOPBACK)
def test_a_loopback_url_goes_through_no_proxy_of_the_environment(url: str) -> None:
    assert proxy_for(urlsplit(url), dict.fromkeys(VARIABLES, PROXY)) is None


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "all_proxy"])
async def test_the_prompt_of_a_local_model_goes_through_no_proxy(variable: str) -> None:
    async with http_proxy() as proxy, ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        assert await _answer_of(provider_at(server.url, {variable: proxy.url})) == "hi"

    assert proxy.requests == []


async def test_a_proxy_that_the_configuration_names_is_used_for_a_local_model_too() -> None:
    async with http_proxy() as proxy, ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        provider = provider_at(server.url, {"NO_PROXY": "*"}, proxy=proxy.url)

        assert await _answer_of(provider) == "hi"

    assert proxy.requests == [f"POST {server.url}/chat/completions HTTP/1.1", LOGIN]


@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_http_goes_through_the_proxy_of_the_environment(scheme: str) -> None:
    async with http_proxy() as proxy, ms.ModelServer(ms.in_order(ms.say("hi"))) as server:
        url = f"http://model.test:{server.port}/v1"
        environ = {"HTTP_PROXY": proxy.url.replace("http://", scheme)}

        assert await _answer_of(provider_at(url, environ)) == "hi"

    assert proxy.requests == [f"POST {url}/chat/completions HTTP/1.1", LOGIN]


async def test_https_goes_through_a_tunnel(tls: ssl.SSLContext, certificate: Path) -> None:
    async with (
        http_proxy() as proxy,
        ms.ModelServer(ms.in_order(ms.say("hi")), tls=tls) as server,
    ):
        environ = {"https_proxy": proxy.url, "SSL_CERT_FILE": str(certificate)}
        provider = provider_at(f"https://model.test:{server.port}/v1", environ, key="sk-secret")
        for _ in range(2):
            assert text_of(await events_of(provider, request_for(provider.resolve("m")))) == "hi"
        await provider.aclose()

    assert proxy.requests == [f"CONNECT model.test:{server.port} HTTP/1.1", LOGIN]
    assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert "proxy-authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("no_proxy", "url"),
    [
        ("*", "http://api.test"),
        ("other.test, *", "http://api.test"),
        ("api.test", "http://api.test"),
        ("test", "http://api.test"),
        (".test", "http://api.test"),
        ("*.test", "http://api.test"),
        ("API.Test", "http://api.test"),
        ("api.test", "http://API.TEST"),
        ("api.test.", "http://api.test"),
        ("api.test", "http://api.test."),
        ("api.test:80", "http://api.test"),
        ("api.test:443", "https://api.test"),
        ("api.test:8080", "http://api.test:8080"),
        ("other.test api.test", "http://api.test"),
        ("http://api.test", "http://api.test"),
        ("all://api.test", "https://api.test"),
        ("10.0.0.0/8", "http://10.1.2.3:8000"),
        ("10.1.2.3", "http://10.1.2.3:8000"),
        ("10.1.2.3:8000", "http://10.1.2.3:8000"),
        ("fd00::/8", "http://[fd00::1]"),
        ("[fd00::1]", "http://[fd00::1]"),
        ("[fd00::1]:80", "http://[fd00::1]"),
        ("fd00::1", "http://[fd00:0::1]"),
    ],
)
def test_no_proxy_names_a_host(no_proxy: str, url: str) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        assert proxy_for(urlsplit(url), {"ALL_PROXY": PROXY, name: no_proxy}) is None


@pytest.mark.parametrize(
    ("no_proxy", "url"),
    [
        ("", "http://api.test"),
        (",", "http://api.test"),
        ("pi.test", "http://api.test"),
        ("www.api.test", "http://api.test"),
        ("api.test:8080", "http://api.test"),
        ("https://api.test", "http://api.test"),
        ("10.0.0.0/8", "http://11.1.2.3"),
        ("10.0.0.0/8", "http://10.0.0.0.test"),
        ("10.0.0.0/99", "http://10.0.0.1"),
        ("0.0.1", "http://10.0.0.1"),
        ("[fd00::2]", "http://[fd00::1]"),
        ("[", "http://api.test"),
    ],
)
def test_no_proxy_names_no_other_host(no_proxy: str, url: str) -> None:
    proxy = proxy_for(urlsplit(url), {"ALL_PROXY": PROXY, "NO_PROXY": no_proxy})

    assert str(proxy) == "proxy proxy.test:3128 of ALL_PROXY"


def test_the_variable_in_lower_case_and_that_of_the_scheme_come_first() -> None:
    env = {"ALL_PROXY": "a.test:1", "HTTP_PROXY": "b.test:2", "http_proxy": "c.test:3"}

    assert str(proxy_for(urlsplit("http://api.test"), env)) == "proxy c.test:3 of http_proxy"
    assert str(proxy_for(urlsplit("https://api.test"), env)) == "proxy a.test:1 of ALL_PROXY"


@pytest.mark.parametrize(
    "value", ["socks5://me:secret@127.0.0.1:1", "https://p.test", "http://", "http://p.test:x"]
)
async def test_a_proxy_that_cannot_be_used_is_named_with_its_variable(value: str) -> None:
    error = await _error_of(provider_at("http://model.test/v1", {"ALL_PROXY": value}))

    assert not error.retryable
    assert "set ALL_PROXY to http://HOST:PORT" in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("status", "retryable"), [(407, False), (502, True)])
async def test_a_proxy_that_refuses_is_named_with_its_variable(
    scheme: str, status: int, *, retryable: bool
) -> None:
    async with http_proxy(status=status) as proxy:
        environ = {f"{scheme.upper()}_PROXY": proxy.url}
        error = await _error_of(provider_at(f"{scheme}://model.test/v1", environ))

    assert error.retryable is retryable
    if scheme == "https" or status == 407:
        named = f"the proxy 127.0.0.1:{proxy.port} of {scheme.upper()}_PROXY refuses"
        assert named in str(error)


async def test_a_proxy_that_cannot_be_reached_is_named_with_its_variable() -> None:
    async with http_proxy() as proxy:
        pass
    error = await _error_of(provider_at("https://model.test/v1", {"HTTPS_PROXY": proxy.url}))

    assert f"the proxy 127.0.0.1:{proxy.port} of HTTPS_PROXY cannot be reached" in str(error)
    assert "or name model.test in NO_PROXY" in str(error)
