"""What audit reports say, as text that was read and agreed to; `python -m tests.golden.audits` writes it anew."""

from __future__ import annotations

import pytest

from hermetic.cli.audit.formats import FORMS
from tests.golden.audits import ENDINGS, FOLDER, KEPT, file_of, text_of


@pytest.mark.parametrize(("report", "name"), KEPT)
def test_what_is_told_is_what_was_agreed_to(report, name):
    assert text_of(report, name) == file_of(report, name).read_bytes().decode(), (
        "read the difference, then run: python -m tests.golden.audits"
    )


def test_every_format_has_a_kept_text_and_no_file_is_left_over():
    assert ENDINGS.keys() == set(FORMS)
    assert set(FOLDER.iterdir()) == {file_of(report, name) for report, name in KEPT}
