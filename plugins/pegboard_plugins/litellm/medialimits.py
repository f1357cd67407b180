"""The limits on images that the providers behind litellm document."""

from pegboard.http import MediaLimits
from pegboard_plugins.shared import pictures

_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_CLAUDE = MediaLimits(
    image_bytes=5 << 20, side=8000, side_of_many=2000, images=_TYPES, fit=pictures.fitting_picture
)
_BEDROCK = MediaLimits(
    image_bytes=5 << 20,
    side=8000,
    side_of_many=2000,
    images=_TYPES,
    most=20,
    fit=pictures.fitting_picture,
)
_OPENAI = MediaLimits(
    image_bytes=20 << 20,
    images=_TYPES,
    most=500,
    total_bytes=50 << 20,
    fit=pictures.fitting_picture,
)
_GOOGLE = MediaLimits(
    images=("image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"),
    fit=pictures.fitting_picture,
)
_BY_PREFIX = {
    "anthropic": _CLAUDE,
    "openai": _OPENAI,
    "azure": _OPENAI,
    "bedrock": _BEDROCK,
    "gemini": _GOOGLE,
    "vertex_ai": _GOOGLE,
}
_BY_NAME = {"claude": _CLAUDE, "gpt-": _OPENAI, "gemini": _GOOGLE}


def limits_for(model_id: str) -> MediaLimits:
    """Return the limits on images of a model's provider; an unknown provider has no limits."""
    prefix, slash, name = model_id.partition("/")
    if slash and not (prefix == "vertex_ai" and "claude" in name):
        return _BY_PREFIX.get(prefix, MediaLimits())
    found = (limits for word, limits in _BY_NAME.items() if word in model_id)
    return next(found, MediaLimits())
