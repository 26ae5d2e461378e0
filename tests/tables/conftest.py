"""What tests of tables share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file."""

    def to_file(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to_file
