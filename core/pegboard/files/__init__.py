"""The public names for tools that read, search and change files."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.contract.context": (
            "FileAccess",
            "FileLedger",
            "named_path",
        ),
        "pegboard.files.diffs": (
            "Diff",
            "diff_texts",
        ),
        "pegboard.files.encodings": ("file_encoding",),
        "pegboard.files.globs": ("glob_expression",),
        "pegboard.files.mediacontent": (
            "MediaContent",
            "media_content",
            "media_mime",
        ),
        "pegboard.files.placing": (
            "is_resolved",
            "open_resolved",
            "remove_resolved",
        ),
        "pegboard.files.secretfiles": ("secret_path",),
        "pegboard.files.textfile": (
            "FileText",
            "decode_text",
            "line_text",
            "new_text",
        ),
        "pegboard.files.walk": (
            "printable_name",
            "walk_files",
        ),
        "pegboard.paths": ("resolved_path",),
    },
)
