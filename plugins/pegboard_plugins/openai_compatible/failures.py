"""What went wrong with a request, as the error that the engine acts on."""

import json
import re
import ssl
from collections.abc import Mapping
from typing import Any

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError

EXCERPT_CHARS = 500
_RETRYABLE = {408, 409, 425, 429}
_FIRST_ERROR = 400
_REFUSED = (401, 403)
_TOO_LARGE = 413
_TOO_MANY = 429
_SERVER_ERROR = 500
_NO_MONEY = (
    r"insufficient_quota|billing|exceeded your current quota|insufficient (balance|credit)"
    r"|out of credits|payment required"
)
_POLICY = r"content[_ -]?(policy|filter|management)|safety (policy|system)|usage polic"
_OVERFLOW = (
    r"context_length_exceeded|maximum context length|prompt is too long|exceed_context_size"
    r"|exceeds the (maximum number of tokens|available context size|context window)"
    r"|(input|prompt|request).{0,40}(is )?too (long|large).{0,40}(token|context|model)"
    r"|context (window|length|size).{0,40}exceed|exceed.{0,40}context (window|length|size)"
    r"|reduce the length of the messages|too many tokens|max_prompt_tokens|token limit exceeded"
    r"|input length .{0,60}exceed"
)
_PASSING = (
    r"overloaded|rate.?limit|too.?many.?requests|unavailable|timeout|timed out|server.?error"
    r"|internal|exhausted|capacity|try again"
)
_FINAL = r"invalid|not.?found|unsupported|authentication|permission"
_HTML = r"\s*(<!doctype html|<html)"
_TITLE = r"(?s)<title[^>]*>(.*?)</title>"
_SECRET_HEADERS = ("set-cookie", "authorization", "proxy-authorization")


def refused(
    provider: str, status: int, headers: Mapping[str, str], body: str, *, credential: str
) -> ProviderError:
    """The error for an HTTP status that is not 200; `credential` says where the key belongs."""
    message = _message(body) or f"HTTP status {status}"
    facts: dict[str, Any] = {
        "provider_id": provider,
        "status": status,
        "headers": {key: value for key, value in headers.items() if key not in _SECRET_HEADERS},
        "body": body,
    }
    if status == _TOO_LARGE or (status != _TOO_MANY and _says(body, _OVERFLOW)):
        return ContextOverflowError(f"{provider}: the request is too long: {message}", **facts)
    if status in _REFUSED and not _says(body, _POLICY):
        return ProviderAuthError(
            f"{provider} refused the credential ({status}): {message}. {credential}", **facts
        )
    return ProviderError(
        f"{provider}: {message} ({status})", retryable=_passing_status(status, body), **facts
    )


def moved(provider: str, status: int, headers: Mapping[str, str]) -> ProviderError:
    """The error for a redirect, which is never followed: the key would go along."""
    target = headers.get("location", "nowhere")
    return ProviderError(
        f"{provider}: the server sends the request on to {target}, which is not followed; "
        f"set provider.{provider}.options.baseURL to where the API is",
        provider_id=provider,
        status=status,
    )


def in_stream(provider: str, error: object) -> ProviderError:
    """The error for an error object inside a stream that began with status 200."""
    body = json.dumps({"error": error}, ensure_ascii=False)
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if isinstance(code, int) and code >= _FIRST_ERROR:
        return refused(provider, code, {}, body, credential="")
    message = f"{provider}: {_message(body) or 'the answer broke off'}"
    if _says(body, _OVERFLOW):
        return ContextOverflowError(message, provider_id=provider, body=body)
    final = _says(body, _NO_MONEY) or _says(body, _POLICY)
    passing = _says(body, _PASSING) or not _says(body, _FINAL)
    return ProviderError(message, provider_id=provider, retryable=passing and not final, body=body)


def no_stream(provider: str, content_type: str, body: str) -> ProviderError:
    """The error for an answer of status 200 that is no answer of a model."""
    what = _message(body) or _excerpt(body) or "nothing"
    return ProviderError(
        f"{provider}: the server answered with {content_type or 'no content type'} instead of a "
        f"model's answer: {what}; is provider.{provider}.options.baseURL right?",
        provider_id=provider,
        body=body,
    )


def broken(provider: str, what: str) -> ProviderError:
    """The error for an answer that broke off or cannot be read: worth another attempt."""
    return ProviderError(f"{provider}: {what}", provider_id=provider, retryable=True)


def unreachable(provider: str, host: str, error: OSError) -> ProviderError:
    """The error for a connection that failed; a bad certificate will be as bad the next time."""
    why, hint = error.strerror or str(error), ""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        hint = "; SSL_CERT_FILE may name a file of further certificates to trust"
    return ProviderError(
        f"{provider}: cannot reach {host}: {why}{hint}",
        provider_id=provider,
        retryable=not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError),
    )


def _passing_status(status: int, body: str) -> bool:
    if status == _TOO_MANY:
        return not _says(body, _NO_MONEY)
    if status >= _SERVER_ERROR:
        return not _says(body, _POLICY)
    return status in _RETRYABLE


def _says(body: str, pattern: str) -> bool:
    # Compiled at the first failure (and kept by `re`), not at every start.
    return re.search(pattern, body, re.IGNORECASE) is not None


def _message(body: str) -> str:
    """The sentence in an error body, of whatever shape; an HTML page's title."""
    if re.match(_HTML, body, re.IGNORECASE):
        title = re.search(_TITLE, body, re.IGNORECASE)
        return f"an HTML page titled {title[1].strip()!r}" if title else "an HTML page"
    try:
        value = json.loads(body)
    except ValueError:
        return _excerpt(body)
    return _excerpt(_sentence(value))


def _sentence(value: object) -> str:
    if isinstance(value, list) and value:
        return _sentence(value[0])
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    # OpenRouter's `metadata.raw` is what the server behind it said.
    for key in ("error", "metadata", "raw", "message", "detail", "msg", "code", "type"):
        found = _sentence(value.get(key))
        if found:
            return found
    return ""


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EXCERPT_CHARS else f"{text[:EXCERPT_CHARS]}…"
