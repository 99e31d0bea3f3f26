"""`hermetic status --out status.html`: one file with models, evidence, findings and endpoints."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hermetic.cli.status import command
from hermetic.cli.status.page import status_page
from hermetic.cli.status.reading import StatusRequest
from hermetic.cli.status.report import AdapterRow, DeploymentReport
from tests.commandline import hermetic
from tests.status_reports import NOW, proven, starting_model

NONE = "\N{EN DASH}"
HOSTILE = '<script>alert(1)</script><img src="http://evil.example/x">'


class Page(HTMLParser):
    """The elements of the page and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [str(value) for name, value in attributes if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_has_models_endpoints_remedies_evidence_and_findings() -> None:
    page = Page(status_page([proven(), starting_model()], NOW))
    for text in (
        "1 of 2 models ready",
        "http://10.0.0.4:8000/v1",
        "inference/llama: Starting",
        "the engine loads the model, for 2 min 10 s of 20 min",
        "The evidence of Azure counts for 23 h more, until 2026-11-21T11:00:00Z.",
        "node-resolv",
    ):
        assert text in page.text


def test_evidence_that_has_expired_is_told_as_such() -> None:
    serving = proven()
    assert serving.proof is not None
    expired = replace(serving, proof=replace(serving.proof, expires=NOW - timedelta(seconds=1)))
    assert "The evidence of Azure expired at 2026-11-20T11:59:59Z." in Page(status_page([expired], NOW)).text


@pytest.mark.parametrize("reports", [[], [starting_model()]], ids=["no model", "no audit"])
def test_what_is_not_known_is_told(reports: list[DeploymentReport]) -> None:
    assert "isolation is not known" in Page(status_page(reports, NOW)).text


def test_names_and_messages_of_the_cluster_are_text_and_nothing_is_fetched() -> None:
    hostile = replace(starting_model(), ready=replace(starting_model().ready, message=HOSTILE, reason=HOSTILE))
    page = Page(status_page([hostile], NOW))
    assert not {"script", "img"} & set(page.tags)
    assert HOSTILE in page.text
    assert set(page.addresses) == {"data:,", "#models"}


def test_adapters_have_a_table_of_their_own_where_a_model_has_some() -> None:
    digest = f"sha256:{'a1' * 32}"
    adapters = (AdapterRow("sql", "Serving", digest, ""), AdapterRow("de", "Pending", "", HOSTILE))
    page = Page(status_page([proven(), replace(starting_model(), adapters=adapters), proven()], NOW))
    assert f"llama inference sql Serving {NONE} {digest}" in page.text
    assert f"llama inference de Pending {HOSTILE} {NONE}" in page.text
    assert "script" not in page.tags
    assert page.tags.count("table") == Page(status_page([proven(), starting_model()], NOW)).tags.count("table") + 1


def _read(reports: list[DeploymentReport]):
    async def read(_: StatusRequest) -> tuple[list[DeploymentReport], None]:
        return reports, None

    return read


def test_out_writes_the_page_beside_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "read_reports", _read([proven()]))
    file = tmp_path / "status.html"
    ran = hermetic("status", "-A", "--out", file)
    assert (ran.code, ran.err) == (0, "")
    assert "SERVING" in ran.out
    assert "1 of 1 models ready" in Page(file.read_text()).text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--out", "{}/status.pdf"], 2, "a page ends with .html"),
        (["--out", "{}/status.html", "--watch"], 2, "not with --watch"),
        (["--out", "{}/none/status.html"], 4, "/none does not exist"),
    ],
)
def test_a_file_that_cannot_be_a_page_is_refused_before_anything_is_read(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    ran = hermetic("status", *(argument.format(tmp_path) for argument in arguments), "--kubeconfig", "/nowhere")
    assert ran.code == code
    assert message in ran.err
    assert list(tmp_path.iterdir()) == []
