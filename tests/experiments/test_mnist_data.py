import gzip
import hashlib
import http.server
import struct
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dpopt import ParameterError
from experiments.data.mnist import ARRAYS, Source, download, load_digits, read_idx
from tests.experiments.comparing import refusal

SAMPLE = Path(__file__).parents[1] / "data" / "mnist_sample.npz"


def idx(array: np.ndarray, kind: int = 8) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, kind, array.ndim, *array.shape) + bytes(array)


def arrays() -> dict[str, np.ndarray]:
    with np.load(SAMPLE) as archive:
        return {name: archive[name] for name in ARRAYS}


def write_folder(folder: Path, content: dict[str, np.ndarray], *, packed: bool) -> Path:
    folder.mkdir()
    for name, array in content.items():
        data = idx(array)
        file = ARRAYS[name] + (".gz" if packed else "")
        (folder / file).write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return folder


def test_the_sample_has_both_classes_as_zeros_and_ones() -> None:
    digits = load_digits(SAMPLE)
    raw = arrays()
    assert digits.train_images.shape == (300, 28, 28)
    assert digits.test_images.shape == (100, 28, 28)
    assert digits.train_labels.sum() == np.sum(raw["y_train"] == 8) == 155
    assert np.array_equal(digits.test_labels, raw["y_test"] == 8)
    assert np.array_equal(digits.test_images, raw["x_test"])
    assert not digits.train_images.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        digits.test_labels[0] = 1


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_and_the_archive_hold_the_same(tmp_path: Path, packed: bool) -> None:
    folder = write_folder(tmp_path / "idx", arrays(), packed=packed)
    assert load_digits(folder).sha256 == load_digits(SAMPLE).sha256
    assert load_digits(str(folder), (8, 5)).sha256 != load_digits(SAMPLE).sha256


def test_other_classes_are_left_out_in_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    content = {
        "x_train": rng.integers(0, 256, (40, 28, 28), dtype=np.uint8),
        "y_train": np.arange(40, dtype=np.uint8) % 10,
        "x_test": rng.integers(0, 256, (20, 28, 28), dtype=np.uint8),
        "y_test": np.arange(20, dtype=np.uint8) % 10,
    }
    digits = load_digits(write_folder(tmp_path / "idx", content, packed=True), (9, 2))
    assert digits.train_labels.tolist() == [1, 0] * 4
    assert np.array_equal(digits.train_images[:2], content["x_train"][[2, 9]])
    keras = tmp_path / "mnist.npz"
    labels = {name: content[name].astype(np.int64) for name in ("y_train", "y_test")}
    np.savez(keras, allow_pickle=True, **content | labels)
    assert load_digits(keras, (9, 2)).sha256 == digits.sha256


LABELS = np.arange(20, dtype=np.uint8)


def test_a_malformed_idx_file_is_refused(tmp_path: Path) -> None:
    for content, wanted in [
        (b"", "IDX file"),
        (b"\0\0\x08", "IDX file"),
        (b"nonsense of some length", "IDX file"),
        (idx(LABELS)[:-1], "19 values"),
        (idx(LABELS) + b"\0", "21 values"),
        (idx(LABELS, kind=13), "type 13"),
        (idx(LABELS.reshape(4, 5)), "2 dimensions"),
        (struct.pack(">BBBBI", 0, 0, 8, 1, 2**32 - 1), "4294967295"),
        (gzip.compress(idx(LABELS), mtime=0)[:-9], "gzip"),
        (gzip.compress(idx(LABELS), mtime=0)[:-8] + b"\0" * 8, "gzip"),
        (b"\x1f\x8b\x08\0 and nothing that deflates", "gzip"),
    ]:
        path = tmp_path / "labels"
        path.write_bytes(content)
        message = refusal(read_idx, path, 1)
        assert wanted in message
        assert str(path) in message


def test_an_archive_of_other_arrays_is_refused(tmp_path) -> None:
    for name, change, wanted in [
        ("x_train", lambda a: a[:, :27], "train images have shape"),
        ("x_test", lambda a: a / 255.0, "float64"),
        ("y_train", lambda a: a[:-1], "299"),
        ("y_train", lambda a: a.astype(float), "float64"),
        ("y_test", lambda a: np.full_like(a, 8), "test set has no class 5"),
        ("y_train", lambda a: np.full_like(a, 5), "train set has no class 8"),
        ("y_test", lambda a: a.astype(object), "damaged"),
        ("x_test", None, "x_test is missing"),
    ]:
        content = arrays()
        changed = content.pop(name)
        if change is not None:
            content[name] = change(changed)
        path = tmp_path / "other.npz"
        np.savez(path, allow_pickle=True, **content)
        message = refusal(load_digits, path)
        assert wanted in message
        assert str(path) in message


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address and folder of a local server."""
    folder = write_folder(tmp_path / "served", arrays(), packed=True)
    handler = partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", folder
        server.shutdown()
        thread.join()


def source(folder: Path, *mirrors: str, algorithm: str = "md5") -> dict[str, Source]:
    digests = {p.name: hashlib.new(algorithm, p.read_bytes()) for p in sorted(folder.iterdir())}
    sums = {name: f"{algorithm}:{digest.hexdigest()}" for name, digest in digests.items()}
    return {"mnist": Source(mirrors, sums)}


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_download_and_load(tmp_path: Path, mirror: tuple[str, Path], algorithm: str) -> None:
    address, folder = mirror
    target = tmp_path / "new" / "data"
    paths = download("mnist", target, source(folder, address, algorithm=algorithm))
    assert sorted(p.name for p in target.iterdir()) == sorted(p.name for p in paths)
    assert len(paths) == 4
    assert load_digits(target).sha256 == load_digits(SAMPLE).sha256


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path, mirror: tuple[str, Path]) -> None:
    address, folder = mirror
    wanted = source(folder, address)
    served = folder / "t10k-images-idx3-ubyte.gz"
    served.write_bytes(served.read_bytes()[:-1])
    target = tmp_path / "data"
    with pytest.raises(ParameterError, match="t10k-images.*its checksum is wrong"):
        download("mnist", target, wanted)
    assert list(target.iterdir()) == []


def test_the_next_mirror_is_tried(tmp_path: Path, mirror: tuple[str, Path]) -> None:
    address, folder = mirror
    gone = "http://127.0.0.1:1/"
    paths = download("mnist", tmp_path / "a", source(folder, gone, address + "no/", address))
    assert len(paths) == 4
    with pytest.raises(ParameterError, match="Error 404") as caught:
        download("mnist", tmp_path / "b", source(folder, gone, address + "no/"))
    assert "refused" in str(caught.value).lower()
    assert list((tmp_path / "b").iterdir()) == []
    local = folder.as_uri() + "/"
    assert len(download("mnist", tmp_path / "c", source(folder, local))) == 4


def test_images_are_held_out_of_the_training_images_alone() -> None:
    digits = load_digits(SAMPLE)
    part = digits.hold_out(50, 3)
    assert part.train_images.shape == (250, 28, 28)
    assert part.test_images.shape == (50, 28, 28)

    def listed(images: np.ndarray, labels: np.ndarray) -> list[list[int]]:
        return np.column_stack([labels, images.reshape(len(images), -1)]).tolist()

    both = listed(part.train_images, part.train_labels)
    both += listed(part.test_images, part.test_labels)
    assert sorted(both) == sorted(listed(digits.train_images, digits.train_labels))
    assert part.sha256 == digits.hold_out(50, 3).sha256 != digits.hold_out(50, 4).sha256
