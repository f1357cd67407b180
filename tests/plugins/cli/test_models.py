"""`pegboard models`: which there are, what is known of them, and which key would open more."""

import json
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from plugins.cli.commands import CommandLine
from support.wire.http_proxy import http_proxy

ENTRY = {
    "litellm_provider": "openai",
    "mode": "chat",
    "input_cost_per_token": 5e-06,
    "output_cost_per_token": 6e-06,
}


@contextmanager
def serving(**answers: object) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server with a JSON answer for each path's last name, and what it was asked for."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("authorization", "")))
            answer = answers.get(self.path.rpartition("/")[2])
            self.send_response(200 if answer is not None else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


async def test_without_a_key_each_provider_says_what_opens_it(pegboard: CommandLine) -> None:
    done = await pegboard("models")

    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()] == ["model", "scripted/demo"]
    assert "no key: OPENAI_API_KEY or `pegboard auth login openai` opens" in done.err
    assert "no key: OPENROUTER_API_KEY" in done.err
    assert "ollama" not in done.err  # which needs none


async def test_a_model_is_shown_with_its_window_its_price_and_the_state_of_its_key(
    pegboard: CommandLine,
) -> None:
    pegboard.env["OPENAI_API_KEY"] = "sk-test"

    done = await pegboard("models", "GPT-5.4-na")

    header, row = (line.split("  ") for line in done.out.splitlines())
    cells = [cell.strip() for cell in row if cell]
    assert header[0] == "model"
    assert cells[:5] == ["openai/gpt-5.4-nano", "400k", "128k", "0.2", "1.25"]
    assert cells[5:] == ["tools thinking pictures pdf", "set"]
    assert "OPENAI" not in done.err


async def test_keys_that_open_other_providers_are_told_where_no_name_is_asked_for(
    pegboard: CommandLine,
) -> None:
    options = {"baseURL": "http://127.0.0.1:9/v1"}
    pegboard.configure(provider={"mine": {"options": options, "models": {"m": {}}}})

    assert "no key: " not in (await pegboard("models", "mine")).err
    assert "no key: OPENAI_API_KEY" in (await pegboard("models")).err


async def test_what_is_not_known_of_a_model_is_said_to_be_unknown(pegboard: CommandLine) -> None:
    options = {"baseURL": "http://127.0.0.1:9/v1", "headers": {"x": "secret"}}
    pegboard.configure(provider={"mine": {"options": options, "models": {"m": {}}}})

    shown = await pegboard("models", "mine/m")
    [told] = json.loads((await pegboard("models", "mine/m", "--json")).out)

    assert shown.out.splitlines()[1].split()[:5] == ["mine/m", *["unknown"] * 4]
    assert (told["cost"], told["limit"]) == (None, dict.fromkeys(("context", "output", "input")))
    assert "secret" not in json.dumps(told)


async def test_models_behind_a_missing_key_are_shown_when_all_are_asked_for(
    pegboard: CommandLine,
) -> None:
    done = await pegboard("models", "openai/gpt-5.4-nano", "--all")

    assert done.out.splitlines()[1].endswith("missing")
    assert done.err == ""


async def test_a_text_that_no_model_has_is_refused_with_the_nearest(pegboard: CommandLine) -> None:
    pegboard.use_model("http://127.0.0.1:9/v1")

    done = await pegboard("models", "fkae")

    assert done.code == 2
    assert "model not found: fkae. Did you mean fake?" in done.err


async def test_an_alias_is_listed_as_the_model_that_it_stands_for(pegboard: CommandLine) -> None:
    alias = """
        from pegboard import hookimpl
        from pegboard.schema.model import Model, ModelApi

        @hookimpl
        async def model_resolve(name):
            if name in ("polly", "birds/polly"):
                return Model(id="m", provider_id="fake", name="M", api=ModelApi(id="m"))
        """
    pegboard.use_model("http://127.0.0.1:9/v1")
    path = pegboard.project / ".pegboard" / "plugins" / "alias.py"
    path.parent.mkdir(parents=True)
    path.write_text(textwrap.dedent(alias))
    await pegboard("trust", "allow", "--yes")

    for name in ("polly", "birds/polly"):
        done = await pegboard("models", name)

        assert (done.code, done.err) == (0, "")
        assert [line.split()[0] for line in done.out.splitlines()] == ["model", "fake/m"]


async def test_a_provider_whose_key_is_missing_is_named_when_it_is_asked_for(
    pegboard: CommandLine,
) -> None:
    parrot = """
        from pegboard import hookimpl
        from pegboard.schema.model import Model, ModelApi

        class Birds:
            id, name, env = "birds", "Birds", ("BIRDS_KEY",)

            def models(self):
                return (Model(id="a", provider_id="birds", name="A", api=ModelApi(id="a")),)

            def resolve(self, model_id):
                return None

            async def stream(self, request):
                yield None

            async def aclose(self):
                return None

        @hookimpl
        async def register_providers():
            return (Birds(),)
        """
    path = pegboard.project / ".pegboard" / "plugins" / "birds.py"
    path.parent.mkdir(parents=True)
    path.write_text(textwrap.dedent(parrot))
    await pegboard("trust", "allow", "--yes")

    done = await pegboard("models", "birds")

    assert done.code == 0
    assert done.err == "no key: BIRDS_KEY or `pegboard auth login birds` opens 1 model of birds\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [("gpt-5.4-nnao", "gpt-5.4-nano"), ("GPT-5.4-nano", "openai/gpt-5.4-nano")],
)
async def test_of_models_behind_a_missing_key_the_nearest_are_named_too(
    pegboard: CommandLine, text: str, named: str
) -> None:
    done = await pegboard("models", text)

    assert done.code == 2
    assert f"model not found: {text}. Did you mean {named}" in done.err


async def test_servers_on_this_machine_are_asked_for_their_models(pegboard: CommandLine) -> None:
    listed = {"data": [{"id": "tiny", "meta": {"n_ctx": 4096}}, {"id": "wide"}]}
    with serving(models=listed) as (url, asked):
        pegboard.configure(provider={"mine": {"options": {"baseURL": url}}})
        done = await pegboard("models", "mine", "--local")
        again = await pegboard("models", "mine")

    assert asked == [("/v1/models", "")]
    assert "mine: 2 models" in done.err
    assert done.out == again.out
    assert [line.split()[:2] for line in again.out.splitlines()[1:]] == [
        ["mine/tiny", "4.096k"],
        ["mine/wide", "unknown"],
    ]


async def test_a_server_that_stands_for_a_provider_s_own_is_asked_by_name(
    pegboard: CommandLine,
) -> None:
    pegboard.env["OPENAI_API_KEY"] = "sk-test"
    async with http_proxy() as proxy:
        with serving(models={"data": [{"id": "own-coder"}]}) as (url, asked):
            place = url.rpartition(":")[2]
            pegboard.env |= {"HTTP_PROXY": proxy.url, "NO_PROXY": ""}
            pegboard.env["OPENAI_BASE_URL"] = f"http://models.example:{place}"
            pegboard.configure(enabled_providers=["openai"])
            unknown = await pegboard("models")
            done = await pegboard("models", "--ask", "openai")
            again = await pegboard("models")

    assert "gpt" not in unknown.out + unknown.err
    assert "`pegboard models --ask openai` asks the server of openai" in unknown.err
    assert asked == [("/v1/models", "Bearer sk-test")]
    assert "openai: 1 model" in done.err
    assert [line.split()[0] for line in again.out.splitlines()[1:]] == ["openai/own-coder"]


async def test_a_provider_that_is_not_there_cannot_be_asked(pegboard: CommandLine) -> None:
    done = await pegboard("models", "--ask", "opena")

    assert done.code == 2
    assert "provider not found: opena. Did you mean openai" in done.err


async def test_newest_prices_are_fetched_and_kept(pegboard: CommandLine) -> None:
    with serving(prices={"gpt-new": ENTRY}) as (url, asked):
        options = {"url": f"{url}/prices"}
        pegboard.configure(plugins={"catalogue": {"options": options}})
        done = await pegboard("models", "gpt-new", "--refresh", "--all")
        again = await pegboard("models", "gpt-new", "--all")

    assert asked == [("/v1/prices", "")]
    assert "1 model" in done.err
    assert again.out.splitlines()[1].split()[3:5] == ["5", "6"]


async def test_a_server_that_does_not_answer_is_named_and_what_was_known_stays(
    pegboard: CommandLine,
) -> None:
    with serving() as (url, _):
        pegboard.configure(
            plugins={"catalogue": {"options": {"url": f"{url}/prices"}}},
            provider={"mine": {"options": {"baseURL": url}, "models": {"m": {}}}},
        )
        done = await pegboard("models", "mine/m", "--refresh", "--local")

    assert done.code == 0
    assert "/prices: status 404" in done.err
    assert "mine: status 404" in done.err
    assert done.out.splitlines()[1].startswith("mine/m ")


async def test_of_a_server_that_does_not_run_it_is_said(pegboard: CommandLine) -> None:
    pegboard.configure(provider={"mine": {"options": {"baseURL": "http://127.0.0.1:9/v1"}}})

    done = await pegboard("models", "--local")

    assert done.code == 0
    assert "mine: nothing listens there" in done.err


async def test_a_key_command_that_fails_is_told_and_the_others_are_asked(
    pegboard: CommandLine,
) -> None:
    with serving(models={"data": [{"id": "tiny"}]}) as (url, _):
        failing = {"options": {"baseURL": "https://a.example/v1"}, "key_command": ["false"]}
        pegboard.configure(provider={"bad": failing, "mine": {"options": {"baseURL": url}}})
        done = await pegboard("models", "mine", "--local")

    assert done.code == 0
    assert "mine: 1 model" in done.err
    assert any(line.startswith("bad: ") for line in done.err.splitlines())


async def test_the_configured_model_is_listed_whatever_the_catalogue_knows(
    pegboard: CommandLine,
) -> None:
    pegboard.env["OPENAI_API_KEY"] = "sk-test"
    pegboard.configure(model="openai/house-model", small_model="openai/house-small")

    done = await pegboard("models", "house")

    names = [line.split()[0] for line in done.out.splitlines()]
    assert names == ["model", "openai/house-model", "openai/house-small"]
