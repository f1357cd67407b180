"""Certificates: which are trusted, and what a refusal names."""

import ssl
from pathlib import Path

import pytest

from pegboard.errors import ProviderError
from pegboard.http.certificates import issuer_of
from pegboard.http.httpprovider import HttpProvider
from support.models import model_server as ms
from support.models.provider_run import events_of, provider_at, request_for
from support.wire.http_proxy import http_proxy


async def _error_of(provider: HttpProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await events_of(provider, request_for(provider.resolve("m")))
    await provider.aclose()
    return caught.value


async def test_a_refused_certificate_is_named_with_its_issuer_and_the_variable(
    tls: ssl.SSLContext,
) -> None:
    async with ms.ModelServer(ms.in_order(ms.say("hi")), tls=tls) as server, http_proxy() as proxy:
        environs: list[dict[str, str]] = [{}, {"HTTPS_PROXY": proxy.url}]
        hosts = ["127.0.0.1", "model.test"]
        for environ, host in zip(environs, hosts, strict=True):
            error = await _error_of(provider_at(f"https://{host}:{server.port}/v1", environ))

            assert "the issuer is '127.0.0.1'" in str(error)
            assert "set SSL_CERT_FILE to a PEM file" in str(error)
            assert not error.retryable
        assert server.requests == []


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE"])
async def test_a_certificate_file_that_cannot_be_read_is_named(
    variable: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no certificate")
    for path in (tmp_path / "missing", tmp_path / "empty", tmp_path / "text", tmp_path):
        error = await _error_of(provider_at("https://127.0.0.1:9/v1", {variable: str(path)}))

        assert f"the certificates of {variable}={path} cannot be read" in str(error)
        assert f"set {variable} to a PEM file that exists, or unset it" in str(error)
        assert not error.retryable


def test_the_issuer_of_bytes_that_are_no_certificate_is_unknown() -> None:
    for content in (b"", b"\x30", b"\x30\x82", b"\x30\x03abc", bytes(100), b"\xff" * 100):
        assert issuer_of(content) == ""
