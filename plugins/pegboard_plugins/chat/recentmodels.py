"""The models that the user chose recently in chats, newest first."""

from collections.abc import Mapping, Sequence

from pegboard_plugins.chat.outside import private_file

REMEMBERED = 8
FILE = "chat-models"
"""The file in the state folder with one name per line."""


def recent_models(env: Mapping[str, str]) -> Sequence[str]:
    """Return the names of the recently chosen models, newest first."""
    file = private_file(env, FILE)
    names = file.read_text(encoding="utf-8", errors="replace").split("\n") if file else []
    return [name for name in names[:REMEMBERED] if name]


def remember_model(env: Mapping[str, str], name: str) -> None:
    """Store the name of a model as the most recently chosen."""
    if file := private_file(env, FILE):
        names = dict.fromkeys([name, *recent_models(env)])
        file.write_text("\n".join([*names][:REMEMBERED]), encoding="utf-8")
