"""Checks that a storage loses and reorders no content, and brings no deleted session back."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from msgspec.structs import replace

from pegboard.errors import InvalidInputError, NotFoundError, SessionBusyError
from pegboard.schema.event import PartUpdated, SessionCreated, SessionDeleted, SessionUpdated
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.session import Rule, Todo, Tokens
from pegboard.storage import OpenStorage
from pegboard.storage.changes import (
    AddText,
    ChangeSession,
    CreateSession,
    DropMessage,
    DropPart,
    DropSession,
    PutApproval,
    PutMessage,
    PutPart,
    PutState,
    PutTodos,
)
from pegboard.testing.finding import Finding, broken, must
from pegboard.testing.finding import Rule as Check
from pegboard.testing.storagesite import (
    NOW_MS,
    PROJECT,
    Sites,
    StorageSite,
    check_refusal,
    storage_site,
)


async def check_storage(
    open_storage: OpenStorage, new_url: Callable[[], str]
) -> tuple[Finding, ...]:
    """Return the faults found in a kind of database; () if it keeps the promises of `Storage`.

    `open_storage` is the function that `register_storage` returns for the URL scheme. `new_url`
    returns the URL of another empty database each time.
    """
    checks = (
        _sessions,
        _changes,
        _gone,
        _children,
        _turns,
        _texts,
        _whole,
        _large,
        _events,
        _commits,
        _json,
        _search,
        _todos_and_state,
        _approvals,
        _claims,
        _fences,
        _reopened,
    )

    def site() -> "AbstractAsyncContextManager[StorageSite]":
        return storage_site(open_storage, new_url())

    rules: dict[str, Check] = {each.__name__.strip("_"): partial(each, site) for each in checks}
    return await broken("storage", rules)


async def _sessions(sites: Sites) -> None:
    async with sites() as site:
        first, second = await site.with_session("First"), await site.with_session("Second")
        must(await site.storage.session(first.id) == first, "a session comes back otherwise")
        later = ChangeSession(session_id=first.id, updated=NOW_MS + 1)
        await site.storage.commit(later)
        found = [each.id for each in await site.storage.sessions(PROJECT.id)]
        must(found == [first.id, second.id], "sessions do not stand with the last used first")
        limited = await site.storage.sessions(PROJECT.id, limit=1)
        must([each.id for each in limited] == [first.id], "`limit` does not keep the last used")
        named = await site.storage.sessions(PROJECT.id, search="SECOND")
        must([each.id for each in named] == [second.id], "`search` minds the case of a title")
        other = await site.storage.sessions("another")
        must(not other, "another project has sessions that are not its own")
        await check_refusal(NotFoundError, site.storage.session("ses_none"), "an unknown session")
        again = site.storage.commit(CreateSession(first))
        await check_refusal(InvalidInputError, again, "a session that is made twice")


async def _changes(sites: Sites) -> None:
    """Check that changes of different fields do not undo each other, and that costs are added."""
    async with sites() as site:
        session = await site.with_session()
        cost = ChangeSession(session_id=session.id, cost=0.5, tokens=Tokens(input=2))
        await site.storage.commit(ChangeSession(session_id=session.id, title="New"))
        await site.storage.commit(cost, cost)
        await site.storage.commit(ChangeSession(session_id=session.id, updated=NOW_MS - 5))
        stale = ChangeSession(session_id=session.id, title="Late", title_was="Title")
        await site.storage.commit(stale)
        found = await site.storage.session(session.id)
        must(found.title == "New", f"the title is {found.title!r} after changes of other fields")
        must((found.cost, found.tokens) == (1.0, Tokens(input=4)), "costs do not add up")
        must(found.time.updated == NOW_MS, "`updated` goes back")


async def _gone(sites: Sites) -> None:
    """Check that a deleted session stays deleted when a late writer writes to it."""
    async with sites() as site:
        session = await site.with_session()
        message = (await site.with_turn(session, "hello")).info
        await site.storage.commit(DropSession(session.id))
        assert isinstance(message, UserMessage)
        late = (
            ChangeSession(session_id=session.id, title="Again"),
            PutMessage(message),
            PutPart(site.part(message, "late")),
        )
        for change in late:
            name = f"{type(change).__name__} of a deleted session"
            await check_refusal(NotFoundError, site.storage.commit(change), name)
        await check_refusal(NotFoundError, site.storage.session(session.id), "a deleted session")
        deleted = [each for each in site.events if isinstance(each.properties, SessionDeleted)]
        must(len(deleted) == 1, "session.deleted is not published once")
        await site.storage.commit(DropSession(session.id))


async def _children(sites: Sites) -> None:
    async with sites() as site:
        parent = await site.with_session()
        first = await site.with_session(parent=parent.id)
        second = await site.with_session(parent=parent.id)
        found = [each.id for each in await site.storage.children(parent.id)]
        must(found == [first.id, second.id], "children do not stand in the order of creation")
        roots = [each.id for each in await site.storage.sessions(PROJECT.id, roots=True)]
        must(roots == [parent.id], "`roots` lists subagents' sessions")
        orphan = CreateSession(site.session(parent="ses_none"))
        await check_refusal(NotFoundError, site.storage.commit(orphan), "a child without a parent")
        await site.storage.commit(DropSession(parent.id))
        left = await site.storage.sessions(PROJECT.id)
        must(not left, "the children of a deleted session stay")


async def _turns(sites: Sites) -> None:
    async with sites() as site:
        session = await site.with_session()
        first = await site.with_turn(session, "a", "b")
        second = await site.with_turn(session, "c")
        turns = await site.storage.turns(session.id)
        must(turns == (first, second), "turns do not come back as they were, in order")
        last = await site.storage.turns(session.id, limit=1)
        must(last == (second,), "`limit` does not keep the last turns")
        one = await site.storage.turn(session.id, first.info.id)
        must(one == first, "one turn does not come back as it was")
        ids = await site.storage.last_ids(session.id)
        must((ids.message, ids.part) == (second.info.id, second.parts[-1].id), "last_ids differ")
        part = first.parts[0]
        await site.storage.commit(DropPart(session.id, first.info.id, part.id))
        await site.storage.commit(DropMessage(session.id, second.info.id))
        left = await site.storage.turns(session.id)
        must(left == (Turn(info=first.info, parts=first.parts[1:]),), "dropped parts come back")
        unknown = site.storage.turn(session.id, "msg_none")
        await check_refusal(NotFoundError, unknown, "an unknown message")


async def _texts(sites: Sites) -> None:
    """Check that a streamed text includes all texts that were added to it."""
    async with sites() as site:
        session = await site.with_session()
        turn = await site.with_turn(session, "one")
        part = turn.parts[0]
        await site.storage.commit(AddText(session.id, part.id, " two"))
        await site.storage.commit(AddText(session.id, part.id, " ünï"))
        (found,) = (await site.storage.turn(session.id, turn.info.id)).parts
        must(getattr(found, "text", "") == "one two ünï", "added text is not read")
        before = len(site.events)
        await site.storage.commit(AddText(session.id, "prt_none", "x"))
        must(len(site.events) == before, "text that is added to an unknown part is published")


async def _whole(sites: Sites) -> None:
    """Check that a commit writes all its changes, or else none, and then publishes no event."""
    async with sites() as site:
        session = await site.with_session()
        before = len(site.events)
        bad = ChangeSession(session_id="ses_none", title="x")
        both = site.storage.commit(ChangeSession(session_id=session.id, title="Half"), bad)
        await check_refusal(NotFoundError, both, "a commit with a change of an unknown session")
        found = await site.storage.session(session.id)
        must(found.title == session.title, "half of a commit that failed is written")
        must(len(site.events) == before, "a commit that failed has published events")
        mine, next_ = await site.with_turn(session, "a"), await site.with_turn(session, "b")
        moved = PutPart(replace(mine.parts[0], message_id=next_.info.id))
        await check_refusal(
            InvalidInputError, site.storage.commit(moved), "a part of another message"
        )


async def _large(sites: Sites) -> None:
    """Check that a commit can have many changes."""
    async with sites() as site:
        turn = await site.with_turn(await site.with_session(), *map(str, range(1000)))
        found = await site.storage.turn(turn.info.session_id, turn.info.id)
        must(found == turn, "1,000 parts of one commit do not come back in order")


async def _events(sites: Sites) -> None:
    async with sites() as site:
        session = await site.with_session()
        await site.with_turn(session, "a")
        await site.storage.commit(ChangeSession(session_id=session.id, title="New"))
        kinds = [type(each.properties) for each in site.events]
        wanted = {SessionCreated, PartUpdated, SessionUpdated}
        must(
            wanted <= set(kinds),
            f"not published: {', '.join(sorted(map(str, wanted - set(kinds))))}",
        )
        numbers = [each.seq for each in site.events]
        must(all(numbers), "a stored event has no number")
        must(numbers == sorted(set(numbers)), "the numbers of events do not grow")
        stored = await site.stored_events(0, last=numbers[-1])
        must(
            [each.seq for each in stored] == numbers,
            "stored events are not the published ones",
        )
        later = await site.stored_events(numbers[1], last=numbers[-1])
        must([each.seq for each in later] == numbers[2:], "`events` gives more than those after it")


async def _commits(sites: Sites) -> None:
    """Check that `commit` returns the events that it publishes, in the order of the changes."""
    async with sites() as site:
        session, before = site.session(), len(site.events)
        change = ChangeSession(session_id=session.id, title="New")
        answered = await site.storage.commit(CreateSession(session), change)
        kinds = [type(each.properties) for each in answered]
        must(kinds == [SessionCreated, SessionUpdated], "a commit's events are in another order")
        must(tuple(site.events[before:]) == answered, "`on_commit` gets other events")


async def _json(sites: Sites) -> None:
    async with sites() as site:
        session = await site.with_session("ünï \u2028 <b> \x00")
        await site.with_turn(session, 'a "b" \\ \x00')
        listed = json.loads(await site.storage.sessions_json(PROJECT.id))
        must([each["id"] for each in listed] == [session.id], "sessions_json lists other sessions")
        must(listed[0]["title"] == session.title, "sessions_json has another title")
        turns = json.loads(await site.storage.turns_json(session.id))
        text: Any = turns[0]["parts"][0]["text"]
        must(text == 'a "b" \\ \x00', "turns_json has another text")
        newest = turns[-1]["info"]["id"]
        older = json.loads(await site.storage.turns_json(session.id, limit=1, before=newest))
        must(older == turns[-2:-1], "turns_json lists other messages before one")


async def _search(sites: Sites) -> None:
    async with sites() as site:
        titled = await site.with_session("Whales of the sea")
        spoken = await site.with_session("Other")
        await site.with_turn(spoken, "I saw a WHALE and 100% of it")
        hits = await site.storage.search(PROJECT.id, "whale")
        found = [each.session.id for each in hits]
        must(found == [titled.id, spoken.id], "a text is not found in titles first, then in parts")
        must(hits[1].message_id is not None, "a hit in a message does not name it")
        wild = await site.storage.search(PROJECT.id, "%")
        must([each.session.id for each in wild] == [spoken.id], "a % is taken as a wildcard")
        none = await site.storage.search("another", "whale")
        must(not none, "another project's sessions are found")


async def _todos_and_state(sites: Sites) -> None:
    async with sites() as site:
        session, other = await site.with_session(), await site.with_session()
        todos = (Todo(content="a", status="pending"),)
        await site.storage.commit(
            PutTodos(session.id, todos), PutState(session.id, "k", {"a": [1]})
        )
        must(await site.storage.todos(session.id) == todos, "todos do not come back")
        must(await site.storage.state(session.id, "k") == {"a": [1]}, "state does not come back")
        must(await site.storage.state(other.id, "k") is None, "another session has its state")
        await site.storage.commit(PutTodos(session.id, ()), PutState(session.id, "k", None))
        left = (await site.storage.todos(session.id), await site.storage.state(session.id, "k"))
        must(left == ((), None), "todos and state cannot be taken back")


async def _approvals(sites: Sites) -> None:
    async with sites() as site:
        rules = tuple(Rule("launch", each, "allow") for each in ("a *", "b *"))
        await site.storage.commit(PutApproval(PROJECT.id, rules, at=1))
        await site.storage.commit(PutApproval(PROJECT.id, rules[:1], at=2))
        found = await site.storage.approvals(PROJECT.id)
        must(sorted(each.rule.pattern for each in found) == ["a *", "b *"], "approvals are doubled")
        must(not await site.storage.approvals("another"), "another project has these approvals")


async def _claims(sites: Sites) -> None:
    async with sites() as site:
        session = await site.with_session()
        fence = await site.storage.claim(session.id)
        await check_refusal(SessionBusyError, site.storage.claim(session.id), "a second claim")
        await site.storage.release(fence)
        again = await site.storage.claim(session.id)
        must(again.epoch > fence.epoch, "the epoch of a later claim is not greater")
        await site.storage.release(again)
        await check_refusal(NotFoundError, site.storage.claim("ses_none"), "a claim of nothing")


async def _fences(sites: Sites) -> None:
    """Check that a process that has lost the claim to a session cannot write to the session."""
    async with sites() as site:
        session = await site.with_session()
        fence = await site.storage.claim(session.id)
        change = ChangeSession(session_id=session.id, title="Mine")
        await site.storage.commit(change, fence=fence)
        await site.storage.release(fence)
        other = await site.storage.claim(session.id)
        late = ChangeSession(session_id=session.id, title="Late")
        written = site.storage.commit(late, fence=fence)
        await check_refusal(SessionBusyError, written, "a commit with a fence that was given back")
        found = await site.storage.session(session.id)
        must(found.title == "Mine", "a commit that was fenced off is written")
        await site.storage.release(other)


async def _reopened(sites: Sites) -> None:
    """Check that a reopened database has all confirmed changes, and no claims."""
    async with sites() as site:
        session = await site.with_session()
        turn = await site.with_turn(session, "a")
        await site.storage.claim(session.id)
        last = site.events[-1].seq
        await site.storage.aclose()
        storage = await site.reopen()
        must(await storage.turns(session.id) == (turn,), "turns are gone after a reopening")
        await storage.release(await storage.claim(session.id))
        (event, *_) = await storage.commit(ChangeSession(session_id=session.id, title="New"))
        must(event.seq > last, "the numbers of events start again after a reopening")
        must(not await storage.problems(), "a sound database has problems")
