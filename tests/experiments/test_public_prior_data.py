import gzip
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from experiments.data import movielens
from experiments.data.avazu import COLUMNS, load_clicks, subcategories
from experiments.data.generate import generate_avazu, generate_movielens
from experiments.data.groups import UserGroup
from experiments.data.movielens import load_movielens
from tests.experiments.comparing import refusal

pytest.importorskip("polars", reason="polars is not installed (extra data)")

HEADER = ",".join(COLUMNS)
ROW = (
    "12345678901234567890,0,14102100,1005,0,aaaa0001,aaaa0002,aaaa0003,aaaa0004,aaaa0005,aaaa0006,"
    "aaaa0007,aaaa0008,aaaa0009,1,2,15001,320,50,1701,0,35,-1,79"
)
"""Of the form of train.csv; the values are invented."""


def row(user: str, site: str, click: int = 1, **attributes: int) -> str:
    words = dict(zip(COLUMNS, ROW.split(","), strict=True))
    words |= {"device_id": user, "site_id": site, "click": str(click)}
    words |= {name: str(value) for name, value in attributes.items()}
    return ",".join(words.values())


def write(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(
        tmp_path / "train.csv",
        ROW,
        *[row("0000000a", "0000ffff", C18=1)] * 3,
        *[row("0000000a", "00000002", C18=1)] * 2,
        *[row("0000000b", "0000ffff", C18=1)] * 4,
        *[row("0000000c", "00000003", C18=1)] * 1,
        row("0000000c", "0000ffff", 0, C18=1),
        *[row("0000000a", "00000003", C18=2)] * 5,
    )


def test_clicks_are_counted_by_subcategory_user_and_site(small: Path) -> None:
    clicks = load_clicks(small)
    assert (clicks.rows, clicks.frame.height) == (17, 15)
    two = {"minimum_clicks": 2, "minimum_users": 1}
    first, second = subcategories(clicks, "C18", **two)
    assert (first.attribute, first.value, second.value) == ("C18", "1", "2")
    assert first.categories == ("0000ffff", "00000002")
    assert first.counts.tolist() == [[3, 2], [4, 0]]
    assert first.pmfs.tolist() == [[0.6, 0.4], [1.0, 0.0]]
    assert first.prior("total").tolist() == pytest.approx([7 / 9, 2 / 9])
    assert first.prior("average").tolist() == pytest.approx([0.8, 0.2])
    assert second.counts.tolist() == [[5]]
    (only,) = subcategories(clicks, "C18", minimum_clicks=2, minimum_users=2)
    assert only.value == "1"
    top = subcategories(clicks, "C18", sites=1, minimum_clicks=4, minimum_users=1)
    assert [(g.value, g.counts.tolist()) for g in top] == [("1", [[4]]), ("2", [[5]])]
    (both,) = subcategories(clicks, "C14", minimum_clicks=1, minimum_users=3)
    assert both.counts.tolist() == [[3, 5, 2], [4, 0, 0], [0, 1, 0]]
    assert both.categories == ("0000ffff", "00000003", "00000002")
    assert list(subcategories(clicks, "C14")) == []


def test_compression_does_not_change_the_clicks(small: Path) -> None:
    packed = small.with_suffix(".gz")
    packed.write_bytes(gzip.compress(small.read_bytes()))
    whole, found = load_clicks(small), load_clicks(packed)
    assert found.rows == whole.rows
    assert found.frame.equals(whole.frame)
    packed.write_bytes(packed.read_bytes()[:-9])
    assert str(packed) in refusal(load_clicks, packed)


def test_a_last_line_without_its_end_and_windows_line_ends_are_read(small: Path) -> None:
    text = small.read_text().rstrip("\n")
    whole = load_clicks(small).frame
    small.write_text(text)
    assert load_clicks(small).frame.equals(whole)
    small.write_bytes(text.replace("\n", "\r\n").encode())
    assert load_clicks(small).frame.equals(whole)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (row("0000000a", "0000ffff", 2), "24 values"),
        (row("0000000a", "0000ffff").rsplit(",", 1)[0], "24 values"),
        (row("0000000a", "0000ffff") + ",1", "24 values"),
        (row("0000000a", "0000ffff").replace(",320,", ",x,"), "24 values"),
        (row("0000000a", "0000ffff").replace(",79", ","), "24 values"),
        (row("xyz", "0000ffff"), "hexadecimal"),
        (row("0000000a", "123"), "hexadecimal"),
        (row("+000000a", "123"), "hexadecimal"),
    ],
)
def test_malformed_rows_are_refused(tmp_path: Path, bad: str, words: str) -> None:
    good = row("0000000a", "0000ffff")
    path = write(tmp_path / "train.csv", ROW, good, bad, good)
    message = refusal(load_clicks, path)
    assert str(path) in message
    assert words in message


def test_a_generated_avazu_file_agrees_with_a_plain_count(tmp_path: Path) -> None:
    path = generate_avazu(tmp_path / "train.csv", 30_000, 5, chunk=7_000)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert tuple(lines[0]) == COLUMNS
    assert len(lines) == 30_001
    assert len({line[0] for line in lines}) == 30_001
    place = {name: COLUMNS.index(name) for name in COLUMNS}
    counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for line in lines[1:]:
        if line[place["click"]] == "1":
            user, site = line[place["device_id"]], line[place["site_id"]]
            counts[line[place["C18"]]][user, site] += 1
    clicks = load_clicks(path)
    assert clicks.rows == 30_000
    assert clicks.frame.height == sum(sum(c.values()) for c in counts.values())
    assert abs(clicks.frame.height / 30_000 - 0.17) < 0.02
    found = {g.value: g for g in subcategories(clicks, "C18", sites=10, minimum_users=5)}
    assert len(found) >= 2
    for value, group in found.items():
        sites: Counter[str] = Counter()
        for (_, site), count in counts[value].items():
            sites[site] += count
        top = sorted(sites, key=lambda site: (-sites[site], site))[:10]
        users: dict[str, list[int]] = defaultdict(lambda: [0] * 10)
        for (user, site), count in counts[value].items():
            if site in top:
                users[user][top.index(site)] += count
        kept = np.array([users[user] for user in sorted(users) if sum(users[user]) >= 20])
        used = kept.sum(axis=0) > 0
        assert group.categories == tuple(np.array(top)[used])
        assert np.array_equal(group.counts, kept[:, used])
    assert set(found) == {v for v, c in counts.items() if v in found}


def test_what_cannot_be_generated_or_is_not_there_is_told(tmp_path: Path) -> None:
    assert "missing" in refusal(generate_avazu, tmp_path / "no" / "x.csv", 1, 1)
    assert "kaggle" in refusal(load_clicks, tmp_path / "absent")
    assert load_clicks(generate_avazu(tmp_path / "p.gz", 3000, 1)).rows == 3000


def ml_1m(folder: Path) -> Path:
    (folder / "users.dat").write_text("1::F::1::10::00001\n2::M::25::16::00002\n7::M::25::1::0\n")
    (folder / "movies.dat").write_bytes(
        "1::First (1990)::Animation|Children's|Comedy\n"
        "73::Été, L' (1991)::Drama|Musical\n"
        "9::Odd :: Title (1999)::Drama\n".encode("latin-1")
    )
    (folder / "ratings.dat").write_text(
        "1::1::5::900000001\n1::73::3::900000002\n2::1::4::900000003\n2::73::1::900000004\n"
        "2::9::2::900000005\n7::9::3::1\n"
    )
    return folder


def test_movielens_1m_sums_ratings_by_primary_genre_and_age(tmp_path: Path) -> None:
    young, middle = load_movielens(ml_1m(tmp_path))
    assert (young.attribute, young.value, middle.value) == ("age", "Under 18", "25-34")
    assert young.categories == ("Animation", "Drama")
    assert young.counts.tolist() == [[5, 3]]
    assert middle.counts.tolist() == [[4, 3], [0, 3]]
    assert middle.pmfs.tolist() == [[4 / 7, 3 / 7], [0, 1]]
    assert middle.prior("total").tolist() == [0.4, 0.6]
    assert middle.prior("average").tolist() == pytest.approx([2 / 7, 5 / 7])


def flags(*places: int) -> str:
    """The 19 flags of a film in u.item, of which the first is "unknown"."""
    return "|".join("1" if k in places else "0" for k in range(19))


def ml_100k(folder: Path) -> Path:
    """Two films and six users; titles in latin-1, one line end of Windows, no end to the last."""
    people = {1: 24, 2: 53, 3: 7, 4: 18, 5: 17, 6: 73}
    (folder / "u.user").write_text(
        "".join(f"{user}|{age}|M|technician|0000{user}\n" for user, age in people.items())
    )
    (folder / "u.item").write_bytes(
        f"3|Été, L' (1995)|01-Jan-1995||http://x|{flags(3, 5)}\n8|unknown||||{flags(0)}\r\n".encode(
            "latin-1"
        )
    )
    (folder / "u.data").write_text(
        "1\t3\t4\t900000001\n1\t8\t1\t900000001\n2\t3\t2\t1\n3\t3\t5\t1\n4\t8\t3\t1\n"
        "5\t3\t1\t1\n6\t3\t2\t1"
    )
    return folder


def test_movielens_100k_puts_years_into_the_age_groups(tmp_path: Path) -> None:
    groups = load_movielens(ml_100k(tmp_path))
    assert movielens.release_of(tmp_path) == "100k"
    assert [g.value for g in groups] == ["Under 18", "18-24", "50-55", "56+"]
    assert [g.users for g in groups] == [2, 2, 1, 1]
    assert groups[0].counts.tolist() == [[5], [1]]
    # Genres are in the order of the flags, "unknown" first.
    assert groups[1].categories == ("unknown", "Animation")
    assert groups[1].counts.tolist() == [[1, 4], [3, 0]]
    assert groups[2].counts.tolist() == [[2]]


def test_malformed_files_are_one_sentence(tmp_path: Path) -> None:
    for file, content, words in [
        ("u.data", "1\t3\t4\n", "line 1"),
        ("u.data", "1 3 4 900000001\n", "line 1"),
        ("u.data", "1\t3\t4\t1\n1\t8\t6\t1\n", "line 2"),
        ("u.data", "1\t3\t-4\t1\n", "line 1"),
        ("u.data", "7\t3\t4\t1\n", "user 7"),
        ("u.data", "1\t4\t4\t1\n", "movie 4"),
        ("u.data", "", "empty"),
        ("u.user", "1|24|M|technician\n", "line 1"),
        ("u.user", "1|24|M|technician|0\n1|24|M|technician|0\n", "line 2"),
        ("u.user", "1|young|M|technician|0\n", "line 1"),
        ("u.item", f"3|Movie|a||b|{flags()}\n", "line 1"),
        ("u.item", f"3|Movie|a||b|{flags(1)}|0\n", "line 1"),
        ("u.item", f"3|Movie|a||b|{flags(1).replace('1', '2')}\n", "line 1"),
        ("u.item", f"3|A|a||b|{flags(1)}\n3|B|a||b|{flags(2)}\n", "line 2"),
        ("u.item", f"x|Movie|a||b|{flags(1)}\n", "line 1"),
        ("ratings.dat", "1::1::5\n", "line 1"),
        ("ratings.dat", "1::1::5::0\n1::1::9::0\n", "line 2"),
        ("ratings.dat", "1::x::5::0\n", "line 1"),
        ("ratings.dat", "", "empty"),
        ("ratings.dat", "4::1::5::0\n", "user 4"),
        ("ratings.dat", "99999999999::1::5::0\n", "user 99999999999"),
        ("ratings.dat", "1::2::5::0\n", "movie 2"),
        ("users.dat", "1::F::1::10\n", "line 1"),
        ("users.dat", "1::F::2::10::0\n", "line 1"),
        ("users.dat", "1::F::1::10::0\n1::F::1::10::0\n", "line 2"),
        ("movies.dat", "1::First::Toys\n", "line 1"),
        ("movies.dat", "one::First::Drama\n", "line 1"),
        ("movies.dat", "1 First Drama\n", "line 1"),
        ("movies.dat", "1::First::Drama\n1::Second::Comedy\n", "line 2"),
    ]:
        make = ml_100k if file.startswith("u.") else ml_1m
        (make(tmp_path) / file).write_text(content)
        message = refusal(load_movielens, tmp_path)
        assert words in message
        assert file in message


def test_a_generated_movielens_folder_repeats_and_is_read(tmp_path: Path) -> None:
    folder, again = (generate_movielens(tmp_path / name, 60, 80, 3) for name in ("ml", "again"))
    for name in ("ratings.dat", "users.dat", "movies.dat"):
        assert (folder / name).read_bytes() == (again / name).read_bytes()
    groups = load_movielens(folder)
    assert sum(g.users for g in groups) == 60
    ratings = (line.split("::")[2] for line in (folder / "ratings.dat").read_text().splitlines())
    assert sum(int(g.counts.sum()) for g in groups) == sum(map(int, ratings))
    (tmp_path / "file").write_text("")
    assert "folder is" in refusal(generate_movielens, tmp_path / "file", 1, 18, 1)


def test_groups_are_read_only_and_drop_what_nobody_chose() -> None:
    group = UserGroup.of("a", "b", ("x", "y", "z"), np.array([[1, 0, 2], [0, 0, 0], [3, 0, 0]]))
    assert group.categories == ("x", "z")
    assert group.counts.tolist() == [[1, 2], [3, 0]]
    with pytest.raises(ValueError, match="read-only"):
        group.counts[0, 0] = 1
