"""Roles share a server, and none reads or writes what belongs to another."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from pegboard_postgres import open_postgres
from postgres_server import PostgresServer

from pegboard.errors import InvalidInputError, NotFoundError, StorageError
from pegboard.ids import IdSource
from pegboard.schema.session import Project, ProjectTime
from pegboard.storage import (
    CreateSession,
    OpenStorage,
    PutMessage,
    PutProject,
    PutState,
    Storage,
)
from support.storage import rows

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "share-a-database.md"
TABLES = (
    *("worker", "receipt", "project", "session", "message", "part", "part_text"),
    *("todos", "state", "approval", "permission_request", "event"),
)


@asynccontextmanager
async def opened(url: str, opens: OpenStorage = open_postgres) -> AsyncIterator[Storage]:
    storage = await opens(url, ids=IdSource())
    try:
        yield storage
    finally:
        await storage.aclose()


def grants() -> str:
    """Return the statements of the page that let a role in."""
    block = PAGE.read_text().split("```sql\n", 1)[1].split("```", 1)[0]
    assert "GRANT" in block
    return block


@pytest.fixture
async def schema(server: PostgresServer) -> str:
    """Tables of `keeper` that the roles `acme` and `globex` may use, as the page says."""
    schema = server.new_schema()
    async with opened(server.url(schema=schema)):
        pass
    for role in ("acme", "globex"):
        server.sql(f"DROP ROLE IF EXISTS {role}_{schema}")
        statements = grants().replace("acme", f"{role}_{schema}").replace("public", schema)
        server.sql(f"SET search_path TO {schema}; {statements}", database="pegboard")
    return schema


def project(name: str) -> PutProject:
    time = ProjectTime(created=1, updated=1)
    return PutProject(Project(id="project", worktree=name, time=time, sandboxes=()))


async def test_a_role_reads_and_writes_its_own_rows_only(
    server: PostgresServer, schema: str
) -> None:
    acme, globex = (server.url(f"{role}_{schema}", schema) for role in ("acme", "globex"))
    async with opened(acme) as mine, opened(globex) as other:
        await mine.commit(project("/acme"), CreateSession(rows.session("ses_a")))
        await mine.commit(PutMessage(rows.question(session_id="ses_a")), PutState("ses_a", "k", 1))
        await other.commit(project("/globex"), CreateSession(rows.session("ses_g")))

        assert [each.worktree for each in await other.projects()] == ["/globex"]
        assert [each.id for each in await other.sessions()] == ["ses_g"]
        assert await other.turns("ses_a") == ()
        assert await other.state("ses_a", "k") is None
        assert {each.session_id for each in await other.events(0)} == {None, "ses_g"}
        with pytest.raises(NotFoundError):
            await other.claim("ses_a")
        with pytest.raises(NotFoundError):
            await other.commit(PutMessage(rows.question("msg_2", session_id="ses_a")))
        with pytest.raises(InvalidInputError):
            await other.commit(CreateSession(rows.session("ses_a")))

        with psycopg.connect(globex, autocommit=True) as db:
            others = {
                table: db.execute(
                    f"SELECT count(*) FROM {table} WHERE tenant <> current_user".encode()
                ).fetchone()
                for table in TABLES
            }
            db.execute("DELETE FROM session WHERE id = 'ses_a'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute("UPDATE session SET tenant = 'acme' WHERE id = 'ses_g'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute("SET ROLE keeper")
        assert (await mine.session("ses_a")).id == "ses_a"

    assert others == dict.fromkeys(TABLES, (0,))


async def test_a_role_that_may_make_no_tables_is_told_who_does(server: PostgresServer) -> None:
    schema = server.new_schema()
    server.sql("DROP ROLE IF EXISTS guest")
    server.sql("CREATE ROLE guest LOGIN")
    server.sql(f"GRANT USAGE ON SCHEMA {schema} TO guest", database="pegboard")

    with pytest.raises(StorageError, match="open the database once as the role that owns"):
        await open_postgres(server.url("guest", schema), ids=IdSource())


def test_every_table_with_rows_of_a_tenant_has_a_policy(
    server: PostgresServer, schema: str
) -> None:
    query = "SELECT tablename FROM pg_policies WHERE schemaname = current_schema()"
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    with psycopg.connect(server.url(schema=schema)) as db:
        guarded = {name for (name,) in db.execute(query)}
        every = {name for (name,) in db.execute(tables)}

    assert guarded == set(TABLES)
    assert every - guarded == {"meta"}
