"""What a line names may change where it lies; then it makes another environment."""

import pytest

from rollbook.servers.serving.requirement_sources import sources_digest
from rollbook.servers.serving.requirements import needs_of
from rollbook.servers.serving.virtual_environment import Contents


def write(path, text="one"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def digest(folder, own=()):
    needs = needs_of(folder)
    return Contents(tuple(own), needs.packages, needs.options, needs.overrides, "py", "3.11").digest


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("-c bounds.txt", "bounds.txt"),
        ("--constraint=bounds.txt", "bounds.txt"),
        ("-c above.txt", "bounds.txt"),
        ("-r more.txt", "bounds.txt"),
        ("-r more.txt", "more.txt"),
        ("./lib", "lib/pyproject.toml"),
        ("./lib[math]", "lib/setup.py"),
        ("./lib", "lib/lib/inner/part.py"),
        ("lib @ ./lib", "lib/pyproject.toml"),
        ("lib @ file:./lib ; python_version > '3'", "lib/pyproject.toml"),
        ("./packed", "packed/src/packed/table.csv"),
        ("./lib-1.tar.gz", "lib-1.tar.gz"),
        ("-e ./lib", "lib/pyproject.toml"),
    ],
)
def test_what_a_line_names_is_part_of_an_environments_name(component, line, file):
    folder = component(
        requirements=f"{line}\n", bounds="one", above="-c bounds.txt  # all of it\n", more="-c bounds.txt\n"
    )
    for name in ("lib/pyproject.toml", "lib/lib/inner/part.py", "lib/setup.py", "lib-1.tar.gz"):
        write(folder / name)
    write(folder / "packed" / "src" / "packed" / "table.csv")
    before = digest(folder)
    assert digest(folder) == before
    write(folder / file, (folder / file).read_text() + "\ntwo")
    assert digest(folder) != before


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("./lib", "lib/build/lib.py"),
        ("./lib", "lib/lib.egg-info/PKG-INFO"),
        ("./lib", "lib/.git/HEAD"),
        ("./lib", "lib/__pycache__/lib.pyc"),
        ("./lib", "lib/environment/bin/python"),
        ("./lib", "elsewhere/part.py"),
        ("./packed", "packed/results/r.jsonl"),
        ("-e ./lib", "lib/lib/part.py"),
    ],
)
def test_what_a_folder_gathers_and_what_is_read_where_it_lies_is_not(component, line, file):
    folder = component(requirements=f"{line}\n")
    for name in ("lib/pyproject.toml", "packed/src/part.py", "lib/environment/pyvenv.cfg"):
        write(folder / name)
    before = digest(folder)
    write(folder / file, "two")
    assert digest(folder) == before


@pytest.mark.parametrize("line", ["rollbook[math] @ file://{}", "-e {}[math]", "-e {}"])
def test_rollbook_from_a_folder_is_known_by_what_is_there(component, tmp_path, line):
    ours = tmp_path / "our own"
    write(ours / "pyproject.toml")
    lines = [line.format(str(ours).replace(" ", "%20") if "://" in line else ours)]
    before = digest(component(), lines)
    write(ours / "pyproject.toml", "two")
    assert digest(tmp_path, lines) != before


def test_a_large_file_is_known_by_its_size_and_time(tmp_path):
    with (tmp_path / "large.py").open("wb") as file:
        file.truncate(2 << 20)
    before = sources_digest([str(tmp_path)])
    with (tmp_path / "large.py").open("ab") as file:
        file.write(b"more")
    assert sources_digest([str(tmp_path)]) != before


def test_files_that_include_each_other_or_are_not_there_are_read_once(tmp_path):
    write(tmp_path / "a.txt", "-c b.txt\n")
    write(tmp_path / "b.txt", "-r a.txt\n-c nowhere.txt\n")
    before = sources_digest([f"-c {tmp_path / 'a.txt'}"])
    write(tmp_path / "nowhere.txt", "")
    assert sources_digest([f"-c {tmp_path / 'a.txt'}"]) != before


def test_what_lies_elsewhere_is_not_looked_at():
    lines = [
        "rollbook==1",
        "p @ git+https://example.test/p.git",
        "https://example.test/p.whl",
        "-f https://example.test",
    ]
    assert sources_digest(lines) == sources_digest([])
