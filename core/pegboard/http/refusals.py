"""The conversion of failed requests to errors that the engine handles.

Statuses have the meaning of HTTP. Some servers use one status for many errors, or report errors
inside a stream. These are recognised by their words, which `MEANINGS` lists.
"""

import errno
import json
import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError, ToolSchemaError
from pegboard.http.askedwait import asked_wait_s
from pegboard.http.certificates import CERTIFICATES_HINT
from pegboard.http.errorbody import excerpt, read_body, texts_of
from pegboard.http.keyadvice import key_advice
from pegboard.http.overflow import OVERFLOWS, THROTTLED, is_overflow
from pegboard.http.wireformat import Endpoint, ErrorBody, Meaning
from pegboard.kit.hosts import is_loopback
from pegboard.kit.redact import without_values
from pegboard.providers import ToolDefinition

_FIRST_ERROR = 400
_DIGITS = 10
"""A code with as many is no status."""
_REFUSED = (401, 403)
_NOT_FOUND = 404
_MISUNDERSTOOD = (400, 422)
_TOO_MANY = 429
MEANINGS: Mapping[Meaning, str] = {
    "no-money": (
        r"insufficient_quota|billing|exceeded your current quota|insufficient (balance|credit)"
        r"|out of credits|payment required|credit balance is too low"
    ),
    "policy": r"content[_ -]?(policy|filter|management)|safety (policy|system)|usage polic",
    "overflow": "|".join(OVERFLOWS.values()),
    "throttled": THROTTLED,
    "refused-key": (
        r"api[_ ]?key.{0,20}(not valid|invalid|expired)|(invalid|incorrect).{0,10}api[_ -]?key"
        r"|authentication_error|unauthenticated|unauthorized"
    ),
    "passing": (
        r"overloaded|rate.?limit|too.?many.?requests|unavailable|timeout|timed out|server.?error"
        r"|internal|exhausted|capacity|try again|api_error"
    ),
    "final": r"invalid|not.?found|unsupported|authentication|permission",
}
"""Expressions, read without regard to case, by what they say of a request."""
_SHOULD_RETRY = {"true": True, "false": False}
_SECRET_HEADERS = ("set-cookie", "authorization", "proxy-authorization")


class Refusals:
    """The maker of error objects for the failed requests to one endpoint.

    `meanings` are regular expressions that recognise this server's error texts. `tools` are the
    tools of the request; an error may name one with an invalid schema. `read_error` reads errors in
    the endpoint's own format. `key_advice` ends the error for a refused key. `secrets` are removed
    from every error, even if the server encodes them differently.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        meanings: Mapping[Meaning, str],
        secrets: Sequence[str] = (),
        tools: Sequence[ToolDefinition] = (),
        *,
        read_error: Callable[[Any], ErrorBody] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self.key_advice = key_advice(endpoint.id, endpoint.env)
        self._secrets = secrets
        self._tools = tools
        self._id = endpoint.id
        self._meanings = meanings
        self._read_error = read_error

    def refused(self, status: int, headers: Mapping[str, str], body: str) -> ProviderError:
        """Return the error for a response with an HTTP status other than 200."""
        body = self._hidden(body)
        return self._refused(status, headers, body, read_body(body, self._read_error))

    def _refused(
        self, status: int, headers: Mapping[str, str], body: str, found: ErrorBody
    ) -> ProviderError:
        message = found.message or f"HTTP status {status}"
        texts = texts_of(body, found)
        names = [name for name in headers if name not in _SECRET_HEADERS]
        facts: dict[str, Any] = {
            "provider_id": self._id,
            "status": status,
            "wait_s": asked_wait_s(headers, status, body),
            "headers": {name: self._hidden(headers[name]) for name in names},
            "body": body,
        }
        if is_overflow(texts, status, self._meanings):
            return ContextOverflowError(f"{self._id}: the request is too long: {message}", **facts)
        refused = status in _REFUSED or (status < _TOO_MANY and self._says(texts, "refused-key"))
        if refused and not (self._says(texts, "policy") or self._says(texts, "throttled")):
            said = f"{self._id} refused the credential ({status}): {message.rstrip('.')}"
            return ProviderAuthError(f"{said}. {self.key_advice}", **facts)
        if status in _MISUNDERSTOOD and (schema := self._refused_schema(message, texts, facts)):
            return schema
        passing = self._passes(status, texts, waits=asked_wait_s({}, None, body) is not None)
        if passing is None:  # what OpenAI's and Anthropic's own clients go by
            passing = _SHOULD_RETRY.get(headers.get("x-should-retry", "").lower())
        return ProviderError(f"{self._id}: {message} ({status})", retryable=passing, **facts)

    def _refused_schema(
        self, message: str, texts: str, facts: dict[str, Any]
    ) -> ToolSchemaError | None:
        """Return the error for tools with an invalid schema, or None if `texts` name no tool."""
        from pegboard.http.toolrefusal import refused_keyword, refused_tools  # where one may be

        tools = refused_tools(texts, self._tools, body=facts["body"])
        if not tools:
            return None
        text, keyword = f"{self._id}: {message} ({facts['status']})", refused_keyword(texts)
        return ToolSchemaError(text, tools=tools, keyword=keyword, **facts)

    def moved(self, status: int, headers: Mapping[str, str]) -> ProviderError:
        """Return the error for a redirect, which is not followed as it would leak the API key."""
        target = self._hidden(headers.get("location", "nowhere"))
        return ProviderError(
            f"{self._id}: the server sends the request on to {target}, which is not followed; "
            f"set provider.{self._id}.options.baseURL to where the API is",
            provider_id=self._id,
            status=status,
        )

    def in_stream(self, error: object) -> ProviderError:
        """Return the error for an error object inside a stream that began with status 200."""
        body = self._hidden(json.dumps({"error": error}, ensure_ascii=False))
        own = self._read_error
        found = read_body(body, own and (lambda value: own(value["error"])))
        if found.code.isdecimal() and len(found.code) < _DIGITS and int(found.code) >= _FIRST_ERROR:
            return self._refused(int(found.code), {}, body, found)
        message = f"{self._id}: {found.message or 'the answer broke off'}"
        texts = texts_of(body, found)
        facts: dict[str, Any] = {
            "provider_id": self._id,
            "wait_s": asked_wait_s({}, None, body),
            "body": body,
        }
        if is_overflow(texts, None, self._meanings):
            return ContextOverflowError(message, **facts)
        throttled = self._says(texts, "throttled")
        if self._says(texts, "refused-key") and not throttled:
            text = f"{message.rstrip('.')}. {self.key_advice}"
            return ProviderAuthError(text, **facts)
        final = self._says(texts, "no-money") or self._says(texts, "policy")
        passing = throttled or self._says(texts, "passing") or not self._says(texts, "final")
        return ProviderError(message, retryable=passing and not final, **facts)

    def no_stream(self, content_type: str, body: str) -> ProviderError:
        """Return the error for a body of status 200 that is not a model's answer."""
        body = self._hidden(body)
        what = read_body(body, self._read_error).message or excerpt(body) or "nothing"
        return ProviderError(
            f"{self._id}: the server answered with {content_type or 'no content type'} instead of "
            f"a model's answer: {what}; is provider.{self._id}.options.baseURL right?",
            provider_id=self._id,
            body=body,
        )

    def broken(self, what: str, *, retryable: bool = True) -> ProviderError:
        """Return the error for an answer that broke off or cannot be read; a retry may help."""
        text = f"{self._id}: {self._hidden(what)}"
        return ProviderError(text, provider_id=self._id, retryable=retryable)

    def late(self, what: str) -> ProviderError:
        """Return the error for an answer that did not begin within the time limit."""
        return self.broken(f"{what}; a higher `provider.{self._id}.options.timeout_s` allows more")

    def silent(self, what: str) -> ProviderError:
        """Return the error for an answer in which a pause exceeded the time limit."""
        return self.broken(f"{what}; a higher `stream_idle_timeout_s` allows more")

    def unreachable(self, url: SplitResult, error: OSError) -> ProviderError:
        """Return the error for a connection that could not be made.

        An untrusted certificate is not retried, nor is a closed port of this machine.
        """
        host = url.netloc.rpartition("@")[2]
        if _is_refused(error) and is_loopback(url.hostname or ""):
            start = self._endpoint.start
            way_out = f"start it with `{start}`" if start else "is the server running?"
            text = f"{self._id}: nothing listens at {host}; {way_out}"
            return ProviderError(text, provider_id=self._id)
        why, hint = error.strerror or str(error), ""
        if error.errno and why.startswith("Connect call failed"):  # asyncio's text
            why = os.strerror(error.errno)
        if isinstance(error, ssl.SSLCertVerificationError):
            why = error.verify_message
            hint = f"; {CERTIFICATES_HINT}"
        return ProviderError(
            f"{self._id}: cannot reach {host}: {why}{hint}",
            provider_id=self._id,
            retryable=not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError),
        )

    def _hidden(self, text: str) -> str:
        return without_values(text, self._secrets)

    def _passes(self, status: int, texts: str, *, waits: bool) -> bool | None:
        """Return whether a retry may help, or None if the error's texts do not tell.

        The caller then decides by the status. `waits` is whether the server names a time to wait.
        """
        if self._says(texts, "policy"):
            return False
        if self._says(texts, "no-money"):
            return status == _TOO_MANY and waits
        # OpenAI answers 404 for models that are only just there (opencode `message-v2.ts`).
        new = status == _NOT_FOUND and self._id == "openai"
        return True if new or self._says(texts, "throttled") else None

    def _says(self, body: str, meaning: Meaning) -> bool:
        own, flags = self._meanings.get(meaning), re.IGNORECASE | re.MULTILINE
        return says(body, meaning) or bool(own and re.search(own, body, flags))


def says(text: str, meaning: Meaning) -> bool:
    """Return whether an error text matches the expression for this meaning in `MEANINGS`."""
    # Compiled at the first failure (and kept by `re`), not at every start.
    return re.search(MEANINGS[meaning], text, re.IGNORECASE) is not None


def _is_refused(error: OSError) -> bool:
    """Return whether the host refused the connection at all its addresses."""
    tried = str(error).count("[Errno ")
    refused = str(error).count(f"[Errno {errno.ECONNREFUSED}]")
    return isinstance(error, ConnectionRefusedError) or 0 < tried == refused
