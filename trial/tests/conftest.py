"""Shared by the tests of the trial service."""

import random
import secrets

import pytest


@pytest.fixture(autouse=True)
def same_secrets(request, monkeypatch):
    """Secrets of trials differ from test to test, and not from run to run: a test that counts draws counts the same."""
    draw = random.Random(request.node.nodeid)
    monkeypatch.setattr(secrets, "token_hex", lambda size=32: draw.randbytes(size).hex())
