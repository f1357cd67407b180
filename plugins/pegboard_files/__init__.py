"""What tools for files share: walks, patterns, text in its encoding, differences, safe writing.

And how the states of files are kept step by step, for snapshots of any kind.

Also which files programs run by themselves, so that nobody changes them unasked, and which ones
hold secrets, so that nobody reads them unasked.

Each name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard_files.diffs import Diff as Diff
    from pegboard_files.diffs import diff_texts as diff_texts
    from pegboard_files.encodings import file_encoding as file_encoding
    from pegboard_files.encodings import marked_encoding as marked_encoding
    from pegboard_files.expressions import LineExpression as LineExpression
    from pegboard_files.expressions import line_expression as line_expression
    from pegboard_files.filestates import States as States
    from pegboard_files.globs import glob_expression as glob_expression
    from pegboard_files.ignores import IgnoreRules as IgnoreRules
    from pegboard_files.ledger import LocalLedger as LocalLedger
    from pegboard_files.mediacontent import MEDIA_MIMES as MEDIA_MIMES
    from pegboard_files.mediacontent import MediaContent as MediaContent
    from pegboard_files.mediacontent import media_content as media_content
    from pegboard_files.mediacontent import media_mime as media_mime
    from pegboard_files.mediatypes import is_text as is_text
    from pegboard_files.placing import TEMPORARY as TEMPORARY
    from pegboard_files.placing import copy_traits as copy_traits
    from pegboard_files.placing import is_resolved as is_resolved
    from pegboard_files.placing import move_resolved as move_resolved
    from pegboard_files.placing import open_resolved as open_resolved
    from pegboard_files.placing import remove_resolved as remove_resolved
    from pegboard_files.placing import temporary_beside as temporary_beside
    from pegboard_files.protection import autorun_files as autorun_files
    from pegboard_files.protection import home_secrets as home_secrets
    from pegboard_files.protection import instructs as instructs
    from pegboard_files.protection import protected_folder as protected_folder
    from pegboard_files.protection import protected_path as protected_path
    from pegboard_files.searchprocess import run_until as run_until
    from pegboard_files.secretfiles import may_name as may_name
    from pegboard_files.secretfiles import may_read as may_read
    from pegboard_files.secretfiles import secret_path as secret_path
    from pegboard_files.shellpatterns import folder_entries as folder_entries
    from pegboard_files.shellpatterns import shell_escape as shell_escape
    from pegboard_files.shellpatterns import shell_fits as shell_fits
    from pegboard_files.shellpatterns import shell_names as shell_names
    from pegboard_files.shellpatterns import shell_paths as shell_paths
    from pegboard_files.shellpatterns import shell_unescape as shell_unescape
    from pegboard_files.stepsnapshots import COPIED_LIMIT_BYTES as COPIED_LIMIT_BYTES
    from pegboard_files.stepsnapshots import StepSnapshots as StepSnapshots
    from pegboard_files.stepsnapshots import bounded as bounded
    from pegboard_files.stepsnapshots import changed_files as changed_files
    from pegboard_files.stepsnapshots import summary_of as summary_of
    from pegboard_files.stepsnapshots import total as total
    from pegboard_files.stepsnapshots import total_by_name as total_by_name
    from pegboard_files.stepsnapshots import ways_of as ways_of
    from pegboard_files.storednames import name_of as name_of
    from pegboard_files.storednames import stored_name as stored_name
    from pegboard_files.textfile import FileText as FileText
    from pegboard_files.textfile import decode_text as decode_text
    from pegboard_files.textfile import line_text as line_text
    from pegboard_files.textfile import new_text as new_text
    from pegboard_files.typography import PLAIN as PLAIN
    from pegboard_files.typography import in_letters_of as in_letters_of
    from pegboard_files.typography import plain as plain
    from pegboard_files.walk import printable_name as printable_name
    from pegboard_files.walk import ripgrep as ripgrep
    from pegboard_files.walk import ripgrep_names as ripgrep_names
    from pegboard_files.walk import walk_files as walk_files
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
