"""`pegboard explain` and the approvals that a user has given for good."""

from plugins.cli.commands import CommandLine, approve


async def test_an_approval_is_named_also_where_another_request_is_asked_for(
    pegboard: CommandLine,
) -> None:
    pegboard.configure(permission={"bash": "ask", "edit": "ask"})
    await approve(pegboard, "touch *")

    shown = await pegboard("explain", "touch made")

    assert 'allow: approved before, for the project: bash "touch *"' in shown.out
    assert 'permission."edit"."made" = "allow"' in shown.out
