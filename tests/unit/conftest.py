"""What tests of weights begin with, a model and a share to stage it to; and one reading of certificate authorities."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from ssl import SSLContext
from typing import Any
from unittest import mock

import pytest


@pytest.fixture(scope="session", autouse=True)
def shared_authorities() -> Iterator[None]:
    """The certificate authorities of the system are read once.

    Each client of httpx reads them anew, which takes 40 ms, and hundreds of audits have a client of their own.
    """
    if "httpx" not in sys.modules:  # no test of this run has a client
        yield
        return
    from httpx._transports import default

    create = default.create_ssl_context

    @cache
    def create_once(*arguments: Any) -> SSLContext:
        verify, certificate, trust_env, *_ = arguments
        return create(verify, certificate, trust_env)

    def shared(verify: Any = True, cert: Any = None, trust_env: bool = True) -> SSLContext:
        return create_once(verify, cert, trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    with mock.patch.object(default, "create_ssl_context", shared):
        yield


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder as it comes from a hub, outside of the share."""
    from tests.weights import a_model  # loads what writes safetensors, which few tests need

    return a_model(tmp_path / "model")


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """An empty folder."""
    (tmp_path / "share").mkdir()
    return tmp_path / "share"
