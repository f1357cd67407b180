# Written by `poe stubs` from the table in the module beside it.
from pegboard_plugins.shared.transcripts.answers import answer_html as answer_html
from pegboard_plugins.shared.transcripts.answers import answer_markdown as answer_markdown
from pegboard_plugins.shared.transcripts.answers import fenced as fenced
from pegboard_plugins.shared.transcripts.messagehtml import escape_html as escape_html
from pegboard_plugins.shared.transcripts.messagehtml import message_html as message_html
from pegboard_plugins.shared.transcripts.messagehtml import rows_html as rows_html
from pegboard_plugins.shared.transcripts.messagehtml import theme_css as theme_css
from pegboard_plugins.shared.transcripts.transcript import AnswerText as AnswerText
from pegboard_plugins.shared.transcripts.transcript import Entry as Entry
from pegboard_plugins.shared.transcripts.transcript import Fold as Fold
from pegboard_plugins.shared.transcripts.transcript import Inner as Inner
from pegboard_plugins.shared.transcripts.transcript import MessageEntry as MessageEntry
from pegboard_plugins.shared.transcripts.transcript import Note as Note
from pegboard_plugins.shared.transcripts.transcript import Picture as Picture
from pegboard_plugins.shared.transcripts.transcript import Transcript as Transcript
from pegboard_plugins.shared.transcripts.transcript import Words as Words
from pegboard_plugins.shared.transcripts.transcript import transcribe as transcribe
