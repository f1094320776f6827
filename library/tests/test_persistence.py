"""Files of arrays: whole or not at all, of the kind asked for or refused, never a pickle."""

import contextlib
import dataclasses
import io
import os
import pickle
import stat
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from omg_cmdp.fingerprints import fingerprint
from omg_cmdp.oracles import CountRewards
from omg_cmdp.persistence import read_arrays, whole_file, write_arrays, write_state

ARRAYS = {
    "numbers": np.array([0.1, -0.0, np.nan, np.inf, 5e-324]),
    "part/integers": np.arange(6).reshape(2, 3),
    "text": np.array("π, a text"),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3)),
    "scalar": np.array(3.5),
}
REFUSAL = "`path` must be a thing of format 2, got "


def write(path, arrays=ARRAYS, kind="thing", version=2):
    write_arrays(path, arrays, kind=kind, version=version)


def read(path):
    return read_arrays(path, kind="thing", version=2)


def bits(arrays):
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


@pytest.fixture
def file(tmp_path):
    write(tmp_path / "file")
    return tmp_path / "file"


def test_what_is_written_is_read_to_the_bit(file):
    assert bits(read(file)) == bits(ARRAYS)
    assert bits(read(str(file))) == bits(ARRAYS)


def test_lists_and_numbers_are_written_as_arrays(tmp_path):
    write(tmp_path / "file", {"list": [1, 2], "number": 0.5})
    found = read(tmp_path / "file")
    assert found["list"].tolist() == [1, 2]
    assert found["number"] == 0.5


def test_the_name_is_kept_as_given(tmp_path):
    write(tmp_path / "run.state")
    assert [path.name for path in tmp_path.iterdir()] == ["run.state"]


def test_a_file_is_replaced(file):
    write(file, {"new": np.ones(3)})
    assert list(read(file)) == ["new"]
    assert [path.name for path in file.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("where", ["writestr", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(file, where, monkeypatch):
    def full(*arguments, **named):
        raise OSError("No space left on device")

    owner = {"writestr": zipfile.ZipFile, "fsync": os, "replace": Path}[where]
    monkeypatch.setattr(owner, where, full)
    before = file.read_bytes()
    with pytest.raises(OSError, match="No space left"):
        write(file, {"new": np.ones(3)})
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(file, monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    before = file.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write(file, {"new": np.ones(3)})
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_objects_are_not_written(file):
    before = file.read_bytes()
    with pytest.raises(ValueError, match="Object arrays"):
        write(file, {"object": np.array([object()], dtype=object)})
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["file"]


@pytest.mark.parametrize(("kind", "version"), [("other", 2), ("thing", 1), ("thing", 3), ("thing 2", 2), ("thin", 2)])
def test_another_kind_or_version_is_refused(tmp_path, kind, version):
    write(tmp_path / "file", kind=kind, version=version)
    with pytest.raises(ValueError, match=REFUSAL):
        read(tmp_path / "file")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")


def test_every_torn_file_is_refused(file):
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=REFUSAL):
            read(file)


def test_a_file_with_one_byte_changed_is_read_as_it_was_or_refused(tmp_path):
    arrays = {name: ARRAYS[name] for name in ("numbers", "text")}
    write(tmp_path / "file", arrays)
    whole, found = (tmp_path / "file").read_bytes(), {}
    for place in range(len(whole)):
        for change in (0x01, 0x80):
            changed = bytes([*whole[:place], whole[place] ^ change, *whole[place + 1 :]])
            outcome = reading(tmp_path / "file", changed, arrays)
            found.setdefault(outcome, (place, change))
    assert found.keys() == {"as it was", "refused"}, found


def reading(path, content, arrays):
    """Return in a word what comes of reading `content`."""
    path.write_bytes(content)
    try:
        found = bits(read(path))
    except Exception as error:
        fine = type(error) is ValueError and str(error).startswith(REFUSAL)
        return "refused" if fine else repr(error)
    return "as it was" if found == bits(arrays) else f"something else: {sorted(found)}"


def npy(path):
    np.save(path.open("wb"), np.arange(3))


def pickled(path):
    path.write_bytes(pickle.dumps({"a": 1}))


def plain_npz(path):
    with path.open("wb") as opened:
        np.savez(opened, a=np.arange(3))


def pickles_inside(path):
    with path.open("wb") as opened:
        np.savez(opened, format="thing 2", a=np.array([{"x": 1}], dtype=object))


def another_zip(path):
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("format", "thing 2")


def text(path):
    path.write_text("thing 2")


@pytest.mark.parametrize("make", [npy, pickled, plain_npz, pickles_inside, another_zip, text])
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_of_others_are_refused(tmp_path, make):
    make(tmp_path / "file")
    with pytest.raises(ValueError, match=REFUSAL):
        read(tmp_path / "file")


@pytest.mark.parametrize("name", ["file", "format", "allow_pickle"])
def test_any_name_will_do_for_an_array(tmp_path, name):
    write(tmp_path / "file", {name: np.arange(3)})
    assert read(tmp_path / "file")[name].tolist() == [0, 1, 2]


def members(path):
    with zipfile.ZipFile(path) as opened:
        return {each: opened.read(each) for each in opened.namelist()}


def packed(path, content, form=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", form) as opened:
        for name, member in content.items():
            opened.writestr(name, member)


def bomb(path):
    """A member that nobody asked for: 64 MB in 64 kB."""
    packed(path, {**members(path), "junk.npy": bytes(2**26)}, zipfile.ZIP_DEFLATED)


def small_bomb_in_a_known_member(path):
    whole = members(path)
    file = io.BytesIO()
    np.save(file, np.zeros(2**23))
    packed(path, {**whole, "/numbers.npy": file.getvalue()}, zipfile.ZIP_DEFLATED)


def huge_header(path):
    """A header that declares 64 MB where there are 40 bytes."""
    whole = members(path)
    declared = whole["/numbers.npy"].replace(b"(5,), }      ", b"(8388608,), }")
    assert declared != whole["/numbers.npy"]
    packed(path, {**whole, "/numbers.npy": declared})


@pytest.mark.parametrize("make", [bomb, small_bomb_in_a_known_member, huge_header])
def test_a_small_file_takes_little_memory(file, make):
    """Members that nobody asked for are not read, and declared shapes are checked before anything is allocated."""
    make(file)
    size = file.stat().st_size
    assert size < 2**19
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=REFUSAL):
            read(file)
        assert tracemalloc.get_traced_memory()[1] < 2**21 + 4 * size
    finally:
        tracemalloc.stop()


def test_other_readers_of_npz_can_read_it(file):
    with np.load(file) as opened:
        np.testing.assert_array_equal(opened["/numbers"], ARRAYS["numbers"])


def test_an_oracle_reads_only_what_it_knows(tmp_path):
    oracle = CountRewards(states=2, actions=2, horizon=2)
    np.savez_compressed(tmp_path / "oracle.npz", **oracle.state(), junk=np.zeros(2**23))
    tracemalloc.start()
    try:
        with np.load(tmp_path / "oracle.npz") as state:
            oracle.load_state(state)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


@dataclasses.dataclass
class Two:
    first: int
    second: object = None


class Marked:
    def __init__(self, mark):
        self.fingerprint = mark


DIFFERENT = [
    *(None, "", "1", b"1", 1, 1.0, True, -0.0, 0.0, (), [], {}, frozenset()),
    *((1, 2), [1, 2], (2, 1), ((1,), 2), (1, (2,)), ("ab", "c"), ("a", "bc")),
    *({"a": 1}, {"a": 1.0}, {"b": 1}, {"a": None}, {1, 2}),
    *(np.zeros(2), np.zeros(3), np.zeros((2, 1)), np.zeros(2, dtype=int), np.zeros(2, dtype=bool), -np.zeros(2)),
    *(np.array([None, 1]), np.array("1"), Two(1), Two(1, 2), Two(2), Marked("a"), Marked("b")),
]


def test_fingerprints_tell_values_apart():
    assert len({fingerprint(value) for value in DIFFERENT}) == len(DIFFERENT)
    assert len({fingerprint(a, b) for a in DIFFERENT for b in DIFFERENT}) == len(DIFFERENT) ** 2
    assert not any(fingerprint(value).endswith("?") for value in DIFFERENT)


def test_equal_values_have_one_fingerprint():
    table = np.arange(6.0).reshape(2, 3)
    for one, other in [
        (np.int64(1), 1),
        (np.float64(0.1), 0.1),
        (np.bool_(True), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (table, np.asfortranarray(table)),
        (table, np.ascontiguousarray(table[:, ::-1])[:, ::-1]),
        (Two(1, [2]), Two(1, [2])),
        (Marked("a"), Marked("a")),
    ]:
        assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    "value", [len, lambda x: x, object(), [1, {"a": len}], Two(1, len), Marked("a?"), np.array([len])]
)
def test_a_fingerprint_says_if_it_cannot_tell(value):
    assert fingerprint(value).endswith("?")


def test_a_saved_state_says_which_settings_it_cannot_tell(tmp_path):
    state = {"settings": np.array("Kind, rate 2"), "part/settings": np.array(f"Part, features {fingerprint(len)}")}
    with pytest.warns(UserWarning, match=r"file: features [0-9a-f]{16}\? cannot be checked when"):
        write_state(tmp_path / "file", state, kind="thing", version=2)
    assert bits(read(tmp_path / "file")) == bits(state)


def test_a_link_stays_and_the_file_behind_it_is_written(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link, second = tmp_path / "elsewhere" / "real", tmp_path / "link", tmp_path / "second"
    link.symlink_to(Path("elsewhere") / "real")
    second.symlink_to(link)
    for path in (link, second):  # at first it points to nothing
        write(path)
        assert path.is_symlink()
        assert not real.is_symlink()
        assert bits(read(real)) == bits(ARRAYS)
        real.unlink()
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["elsewhere", "link", "second"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664])
def test_the_mode_of_a_file_is_kept(mode, file):
    file.chmod(mode)
    before = file.stat()
    write(file, {"other": np.ones(2)})
    after = file.stat()
    assert after.st_mode == before.st_mode
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def test_a_private_file_is_never_readable_by_others_while_it_is_written(file):
    file.chmod(0o600)
    with whole_file(file) as temporary:
        temporary.write_bytes(b"secret")
        assert temporary.stat().st_mode & 0o077 == 0


def odd_targets(folder):
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "to a pipe").symlink_to(folder / "pipe")
    with contextlib.suppress(PermissionError):  # as root: a null device that nobody else needs
        os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    return sorted(folder.iterdir())


def test_what_is_not_a_file_is_refused_and_stays(tmp_path):
    """As root, /dev/null became a file."""
    targets = odd_targets(tmp_path)
    before = [target.lstat().st_mode for target in targets], sorted(tmp_path.iterdir())
    for target in targets:
        with pytest.raises(OSError, match="not a regular file"):
            write(target)
    assert ([target.lstat().st_mode for target in targets], sorted(tmp_path.iterdir())) == before
