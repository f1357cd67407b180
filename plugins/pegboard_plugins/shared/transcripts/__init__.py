"""The transcripts of sessions and their HTML, for exported files and the web view."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard_plugins.shared.transcripts.answers": (
            "answer_html",
            "answer_markdown",
            "fenced",
        ),
        "pegboard_plugins.shared.transcripts.messagehtml": (
            "escape_html",
            "message_html",
            "rows_html",
            "theme_css",
        ),
        "pegboard_plugins.shared.transcripts.transcript": (
            "AnswerText",
            "Entry",
            "Fold",
            "Inner",
            "MessageEntry",
            "Note",
            "Picture",
            "Transcript",
            "Words",
            "transcribe",
        ),
    },
)
