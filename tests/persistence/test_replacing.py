"""A model file appears whole or not at all."""

import os
import stat

import pytest

from polyfid import load


def test_an_existing_file_is_replaced_with_its_permissions(models, tmp_path):
    path = tmp_path / "m.polyfid"
    path.write_text("old")
    path.chmod(0o640)
    models("plain").save(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    load(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.polyfid"]


def test_a_new_file_has_the_usual_permissions(models, tmp_path):
    (tmp_path / "usual").write_text("")
    models("plain").save(tmp_path / "m.polyfid")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_link_stays_a_link(models, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "m.polyfid").write_text("old")
    link = tmp_path / "link.polyfid"
    link.symlink_to(tmp_path / "real" / "m.polyfid")
    models("plain").save(link)
    assert link.is_symlink()
    load(tmp_path / "real" / "m.polyfid")


def test_all_is_on_the_disk_before_the_old_file_goes(models, tmp_path, monkeypatch):
    calls = []
    original = os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append("fsync"))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), original(a, b)))
    models("plain").save(tmp_path / "m.polyfid")
    assert calls == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(
    models, tmp_path, monkeypatch, step, error
):
    path = tmp_path / "m.polyfid"
    path.write_text("old")

    def fail(*args):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        models("plain").save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.polyfid"]


def test_errors_of_the_system_stay_what_they_are(models, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.polyfid")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        models("plain").save(tmp_path / "nowhere" / "m.polyfid")
    with pytest.raises(IsADirectoryError):
        models("plain").save(tmp_path)
    assert list(tmp_path.iterdir()) == []
