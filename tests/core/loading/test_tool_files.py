"""The cases of tool files: which ids the tools of a project's and a user's files get."""

import json
from pathlib import Path

import pytest

from pegboard.contract.plugin import Origin
from pegboard.contract.tools import Tool
from pegboard.loading.candidates import Sources
from pegboard.loading.register import Register
from pegboard.loading.registrant import Registrant
from pegboard.loading.toolset import ORIGINS, Offer, toolset
from pegboard.paths import UserFolders
from pegboard.schema.config import Config
from pegboard.trust.decisions import TrustStore

DATA = Path(__file__).parents[2] / "data" / "tool_name_cases.json"
CASES = [case for case in json.loads(DATA.read_text()) if case["id"] != "_about"]
ERRORS = {"name", "clash", "import", "signature", "hook"}


async def registered(tmp_path: Path, case) -> Register:
    """The register of a case's files, with the built-in plugins and the project trusted."""
    for name, source in case["files"].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    directory, worktree = tmp_path / case["directory"], tmp_path / "project"
    directory.mkdir(parents=True, exist_ok=True)
    decision = TrustStore(tmp_path / "trust.json").decide(
        directory=directory, worktree=worktree, answer=True
    )
    sources = Sources(
        directory=directory,
        places=UserFolders.of({}, config=tmp_path / "user"),
        config=Config(),
        env={},
        decision=decision,
        installed=False,
        on_failure=lambda failure: pytest.fail(failure.message),
    )
    register = Register(sources)
    await register.load()
    return register


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
async def test_tools_of_files_get_their_ids(tmp_path: Path, case) -> None:
    expect = case["expect"]

    register = await registered(tmp_path, case)
    tools = await register.collect_tools(Config())
    infos = [info for info in register.infos if info.origin in ("user", "project")]
    built_in = {info.name for info in register.infos if info.origin == "builtin"}
    problems = [each for each in register.problems if each.plugin not in built_in]
    await register.aclose()

    contested = set(expect.get("contested", ()))
    ids = {name for info in infos for name in info.tools}
    assert ids - contested == set(expect["ids"]) - contested
    assert ids <= set(tools)
    replaced = [each.text for each in problems if each.kind == "replaced"]
    assert len(replaced) == len(expect["replaced"])
    assert all(name in text for name, text in zip(expect["replaced"], replaced, strict=True))
    errors = [each for each in problems if each.kind in ERRORS]
    assert len(errors) == len(expect["errors"])
    for error, wanted in zip(errors, expect["errors"], strict=True):
        same = {"signature", "import"} if wanted["kind"] == "signature" else {wanted["kind"]}
        assert error.kind in same
        told = f"{error.plugin}: {error.text}"
        assert all(text in told for text in wanted["mentions"])
    assert not any((tmp_path / name).exists() for name in case.get("must_not_exist", ()))


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_tool_that_cannot_be_described_is_left_out_whoever_brings_it(origin: Origin) -> None:
    by = Registrant(name="it", origin=origin, load=object)
    huge = Tool.raw("huge", "", {"enum": ["x" * 300_000]}, lambda _, __: "")

    offers, problems = toolset([Offer(by=by, tool=huge, place="it.py, huge")])

    assert offers == {}
    assert [(each.kind, each.plugin) for each in problems] == [("signature", "it")]
