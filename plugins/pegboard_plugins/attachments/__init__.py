"""The plugin `attachments`: it turns files in a prompt into text and media for the model."""

from pegboard import SessionView, hookimpl
from pegboard.files import FileAccess
from pegboard.schema.part import FileInput, FilePart, TextInput

READ_LIMIT_S = 60.0
"""A file on a network drive takes its time."""


@hookimpl(timeout_s=READ_LIMIT_S)
def expand_file(
    session: SessionView, file: FilePart, files: FileAccess
) -> tuple[FileInput | TextInput, ...] | None:
    """Return the file in a form for the model, with its content as text if it is a text file."""
    from pegboard_plugins.attachments.expansion import Expansion, expansion  # few prompts have any

    found = expansion(file, session.directory, worktree=session.worktree, on_read=files.note_read)
    if found == Expansion():
        return None
    kept = FileInput(
        id=file.id,
        mime=found.mime or file.mime,
        url=found.url or file.url,
        filename=file.filename,
        source=file.source,
    )
    return (kept, *(TextInput(text=text, synthetic=True) for text in found.texts))
