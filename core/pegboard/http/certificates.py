"""The certificates used to verify servers, and the issuer of an untrusted certificate."""

import ssl
from collections.abc import Iterator, Mapping

_VERSION_TAG = 0xA0
_ISSUER = 2
"""Its place behind the version: serial number, algorithm, issuer (RFC 5280 4.1)."""
_LONG = 0x80
_NAMES = (b"\x55\x04\x03", b"\x55\x04\x0a")
"""Common name and organization (RFC 5280 appendix A.1)."""

CERTIFICATES_HINT = "set SSL_CERT_FILE to a PEM file with the certificates to trust"


def tls_context(env: Mapping[str, str]) -> ssl.SSLContext:
    """Return a TLS context with the certificates of `SSL_CERT_FILE` or `SSL_CERT_DIR`.

    Without both it has the system's certificates, or certifi's if the system has none.

    :raises ValueError: when the file or the folder cannot be read.
    """
    file, folder = env.get("SSL_CERT_FILE") or None, env.get("SSL_CERT_DIR") or None
    name, path = ("SSL_CERT_FILE", file) if file else ("SSL_CERT_DIR", folder)
    try:
        context = ssl.create_default_context(cafile=file, capath=folder)
    except OSError as error:  # of which `ssl.SSLError` is one
        raise ValueError(
            f"the certificates of {name}={path} cannot be read ({error.strerror or error}): set "
            f"{name} to a PEM file that exists, or unset it"
        ) from error
    if not context.get_ca_certs() and not folder and not any(ssl.get_default_verify_paths()[:2]):
        import certifi  # only where the system has no certificates

        context.load_verify_locations(certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def unchecked_context() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate; never send data over its connections."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def issuer_of(certificate: bytes) -> str:
    """Return the name of the issuer of a DER certificate, or "" if the name cannot be read."""
    try:
        _, whole = next(_items(certificate))
        _, signed = next(_items(whole))
        fields = [content for tag, content in _items(signed) if tag != _VERSION_TAG]
        issuer = fields[_ISSUER]
        attributes = [
            [content for _, content in _items(attribute)]
            for _, name in _items(issuer)
            for _, attribute in _items(name)
        ]
        names = {each[0]: each[1].decode("utf-8", "replace") for each in attributes}
    except (IndexError, StopIteration):
        return ""
    return next((names[each] for each in _NAMES if each in names), "")


def _items(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each DER value (X.690 8.1)."""
    start = 0
    while start + 2 <= len(content):
        tag, size = content[start], content[start + 1]
        start += 2
        if size & _LONG:
            digits = size & ~_LONG
            size = int.from_bytes(content[start : start + digits])
            start += digits
        yield tag, content[start : start + size]
        start += size
