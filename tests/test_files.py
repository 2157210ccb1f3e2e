"""Files that belong together: all of them or none, through links, pipes and devices, and where there is no room."""

from __future__ import annotations

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qgen.errors import QgenError
from qgen.files import save_files, write_text


@pytest.mark.parametrize("place", range(3))
def test_where_one_cannot_be_written_none_is(place: int, tmp_path: Path) -> None:
    names = ("a", "b/c", "d")
    (tmp_path / "a").write_text("old", encoding="utf-8")
    blocked = ("a", "b/c", "d")[place]
    (tmp_path / blocked).unlink(missing_ok=True)
    (tmp_path / blocked).mkdir(parents=True)
    before = {path: path.is_dir() or path.read_bytes() for path in tmp_path.rglob("*")}
    with pytest.raises(QgenError, match=f"cannot write .*{blocked}: Is a directory"):
        save_files(tmp_path, dict.fromkeys(names, "new"))
    after = {path: path.is_dir() or path.read_bytes() for path in tmp_path.rglob("*") if path.name != "b" or path in before}
    assert after == before
    (tmp_path / blocked).rmdir()
    assert save_files(tmp_path, dict.fromkeys(names, b"new")) == tuple(tmp_path / name for name in names)
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in names] == ["new"] * 3


def test_where_there_is_no_room_for_the_last_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "small").write_text("old", encoding="utf-8")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(QgenError, match=r"cannot write .*large: File too large") as caught:
            save_files(tmp_path, {"small": "new", "large": "x" * 1001})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.hint == "make room there, or name another folder"
    assert [path.name for path in tmp_path.iterdir()] == ["small"]
    assert (tmp_path / "small").read_text(encoding="utf-8") == "old"


def test_a_file_behind_a_link_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "k.wgsl"
    link.symlink_to("elsewhere/real.wgsl")
    for text in ("made", "made anew"):
        write_text(link, text)
        assert link.is_symlink()
        assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["real.wgsl"]
        assert link.read_text() == text


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as readers:
        read = readers.submit(pipe.read_text)
        write_text(pipe, "text")
        assert read.result(timeout=60) == "text"
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert pipe.is_fifo()


def test_a_device_that_is_full_is_an_error_and_stays(tmp_path: Path) -> None:
    link = tmp_path / "y.npy"
    link.symlink_to("/dev/full")
    with pytest.raises(QgenError, match=r"cannot write .*: No space left on device") as caught:
        write_text(link, "text")
    assert caught.value.code == "QG110"
    assert link.is_char_device()


@pytest.mark.parametrize("name", ["a\0b", "round", "n" * 300])
def test_a_path_that_no_file_can_have_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(QgenError, match="cannot write") as caught:
        write_text(tmp_path / name / "k.wgsl", "text")
    assert caught.value.code == "QG110"
    assert [path.name for path in tmp_path.iterdir()] == ["round"]
