"""Damaged and forged model files: ``python -m benchmarks.attacks.model_fuzz FOLDER SECONDS SEED``.

Reads files in a process of its own, whose memory is watched, and prints what it counted as JSON.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import signal
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from polyfid import MultiFidelityClassifier, load
from polyfid.model_files import ModelFileError, inspect

#: What a file may cost.
MAX_BYTES, MAX_SECONDS = 200e6, 10
#: Values that are put into headers.
VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 2**70, 1e308, -1e-308, "", "nan", "RBF", "<f8", "|O"),
    *([], [[]] * 50, [10**6, 10**6], [2**62, 4], [0, 2**62], {}, "x" * 5000),
    *({"$array": 0}, {"$array": -1}, {"$tuple": []}, {"$float": "inf"}, {"$items": [[9, 9], []]}),
    *({"$class": ["RBF", {}]}, {"$class": ["os.system", {"command": "true"}]}),
    {"$scalar": {"$array": 0}},
]


def split(data: bytes) -> tuple[Any, list[bytes]]:
    """The header of a file, and its arrays."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        header, *arrays = (archive.read(member) for member in archive.infolist())
    return json.loads(header), arrays


def seal(header: Any, arrays: list[bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    """The file of a header and arrays, with the right checksums."""
    if isinstance(header, dict):
        header = {**header, "sha256": hashlib.sha256(b"".join(arrays)).hexdigest()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("header.json", json.dumps(header))
        for place, array in enumerate(arrays):
            archive.writestr(f"{place:05d}.npy", array)
    return file.getvalue()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, removed, repeated or put in."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        near = rng.choice([len(out), 2000])
        a = (
            rng.randrange(near)
            if rng.random() < 0.5
            else max(0, len(out) - 1 - rng.randrange(near))
        )
        b = min(len(out), a + rng.choice([0, 1, 4, 50, 5000]))
        c = rng.randrange(len(data))
        new = [rng.randbytes(rng.choice([0, 1, 4])), bytes(b - a), b"\xff" * (b - a)]
        out[a:b] = rng.choice([*new, data[c : c + rng.choice([4, 50, 5000])]])
    return bytes(out)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
            found.append((node, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    return found


def forged_header(data: bytes, rng: random.Random) -> bytes:
    """Values of the header replaced, dropped or swapped, with the right checksums."""
    header, arrays = split(data)
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(["state", "state", "state", "arrays", None])
        places = _places(header if part is None else header.get(part) or [])
        if not places:
            break
        (tree, key), (other, place) = rng.choice(places), rng.choice(places)
        with suppress(KeyError, IndexError):  # what was there may have been dropped
            if rng.random() < 0.2:
                del tree[key]
            else:
                tree[key] = rng.choice([rng.choice(VALUES), json.loads(json.dumps(other[place]))])
    return seal(header, arrays)


def forged_arrays(data: bytes, rng: random.Random) -> bytes:
    """Numbers of arrays replaced by others, with the right checksums."""
    header, arrays = split(data)
    for _ in range(rng.randint(1, 4)):
        k = rng.randrange(len(arrays))
        array = bytearray(arrays[k])
        value = rng.choice([np.nan, np.inf, -1.0, 0.0, 1e308, 1e-320, rng.gauss(0.0, 1e6)])
        size = max(1, (len(array) - 128) // 8)
        place = 128 + 8 * rng.randrange(size)
        array[place : place + 8] = np.array(value).tobytes()[: max(0, len(array) - place)]
        arrays[k] = bytes(array)
    return seal(header, arrays)


def bomb(data: bytes, rng: random.Random) -> bytes:
    """Shapes of exabytes, zips of zeros, deep and wide JSON."""
    header, arrays = split(data)
    kind = rng.randrange(5)
    if kind == 0:
        entry = rng.choice(header["arrays"])
        entry["shape"] = rng.choice([[2**40], [2**31, 2**31], [1] * 1000, [2**62, 0], [-1], [1.5]])
        if rng.random() < 0.5:
            entry["nbytes"] = int(rng.choice([2**40, 2**62, -8, 0]))
    elif kind == 1:
        k = rng.randrange(len(arrays))
        arrays[k] = arrays[k][:128] + bytes(20_000_000)
        return seal(header, arrays, zipfile.ZIP_DEFLATED)
    elif kind == 2:
        text = json.dumps(header).encode()
        opened = rng.choice([b"[", b'{"a":'])
        text = text[:-1] + b',"deep":' + opened * rng.choice([500, 50_000]) + b"}"
        return _with_text(text, arrays)
    elif kind == 3:
        header["state"] = [{"$array": 0}] * 200_000
    else:
        header["state"] = {"$items": [[2**20, 2**20], [0] * rng.randrange(100_000)]}
    return seal(header, arrays)


def _with_text(text: bytes, arrays: list[bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", text)
        for place, array in enumerate(arrays):
            archive.writestr(f"{place:05d}.npy", array)
    return file.getvalue()


WAYS: list[Callable[[bytes, random.Random], bytes]] = [
    damaged,
    cut,
    forged_header,
    forged_header,
    forged_arrays,
    bomb,
]


def _memory(field: str) -> float:
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024.0


def read(path: Path) -> None:
    """Do with a file what a user does: inspect, load, predict."""
    try:
        inspect(path)
        model = load(path)
    except ModelFileError:
        return
    if isinstance(model, MultiFidelityClassifier):
        X = np.zeros((3, model.n_features_in_))
        if model.predict_proba(X).shape != (3, len(model.classes_)):
            raise AssertionError("a wrong number of probabilities")


def _late(number: int, frame: Any) -> None:
    raise TimeoutError(f"it takes more than {MAX_SECONDS} s")


def problem_of(path: Path, start: float) -> str | None:
    """What is wrong with how a file is read; ``start`` is the memory before all files."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    signal.alarm(MAX_SECONDS)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # forged numbers may overflow
            read(path)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    used = _memory("VmHWM") - start
    return None if used <= MAX_BYTES else f"it takes {used / 1e6:.0f} MB"


def main(folder: Path, seconds: float, seed: int) -> None:
    signal.signal(signal.SIGALRM, _late)
    originals = [path.read_bytes() for path in sorted(folder.glob("*.polyfid"))]
    path = folder / "hostile"
    for data in originals:  # imports are not counted
        path.write_bytes(data)
        read(path)
    start, end = _memory("VmRSS"), time.monotonic() + seconds
    tried: Counter[str] = Counter()
    failures: dict[str, Counter[str]] = {way.__name__: Counter() for way in WAYS}
    slowest = 0.0
    while time.monotonic() < end:
        seed += 1
        rng = random.Random(seed)
        way = rng.choice(WAYS)
        path.write_bytes(way(rng.choice(originals), rng))
        began = time.monotonic()
        problem = problem_of(path, start)
        slowest = max(slowest, time.monotonic() - began)
        tried[way.__name__] += 1
        if problem is not None:
            failures[way.__name__][problem[:150]] += 1
            (folder / f"failed-{way.__name__}-{seed}").write_bytes(path.read_bytes())
    print(json.dumps({"tried": tried, "failures": failures, "slowest": slowest}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
