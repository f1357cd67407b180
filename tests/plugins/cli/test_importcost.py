"""What plugins' imports cost is told also where one does not end."""

from pathlib import Path

import pytest

from pegboard_plugins.cli import importcost


def test_an_import_that_does_not_end_has_no_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plugin_without_end.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(importcost, "_LIMIT_S", 2)

    found = importcost.import_costs(["plugin_without_end"])

    assert "plugin_without_end" not in {each.module for each in found}
