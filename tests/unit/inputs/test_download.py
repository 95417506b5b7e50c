"""A file from a server that is whole, broken, another by now, too long, or not there."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rollbook.errors import InputError
from rollbook.inputs.download import DownloadError, download
from rollbook.inputs.published_file import FILES_VARIABLE, PublishedFile

CONTENT = bytes(range(256)) * 40


class Library:
    """A file behind an address: `breaks` says after how many bytes each reply ends, `tag` which edition it is."""

    def __init__(self):
        self.content, self.tag, self.breaks, self.asked, self.says_length = CONTENT, '"one"', [], [], True

    def answer(self, handler):
        asked = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append(asked.get("range"))
        start = 0
        if "range" in asked and asked.get("if-range") == self.tag:
            start = int(asked["range"].removeprefix("bytes=").rstrip("-"))
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        if self.says_length:
            handler.send_header("Content-Length", str(len(self.content) - start))
        if self.tag:
            handler.send_header("ETag", self.tag)
        handler.end_headers()
        handler.wfile.write(self.content[start:][: self.breaks.pop(0) if self.breaks else None])


@pytest.fixture
def library():
    held = Library()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/gone.jsonl":
                self.send_error(404)
            else:
                held.answer(self)

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    held.address = f"http://127.0.0.1:{server.server_port}/test.jsonl"
    yield held
    server.shutdown()
    thread.join()
    server.server_close()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_came_is_in_its_place_and_recorded_and_not_fetched_again(library, tmp_path):
    place = tmp_path / "published" / "test.jsonl"
    assert download(library.address, place, 1 << 20).read_bytes() == CONTENT
    assert download(library.address, place, 1 << 20) == place
    record = json.loads((place.parent / "test.jsonl.json").read_text())
    assert record == {"address": library.address, "bytes": 10240, "sha256": hashlib.sha256(CONTENT).hexdigest()}
    assert (names_in(place.parent), library.asked) == (["test.jsonl", "test.jsonl.json"], [None])


def test_a_connection_that_breaks_is_gone_on_with_where_it_broke(library, tmp_path):
    library.breaks = [5000, 100]
    assert download(library.address, tmp_path / "f", 1 << 20).read_bytes() == CONTENT
    assert library.asked == [None, "bytes=5000-", "bytes=5100-"]


def test_what_came_is_kept_for_the_next_call_and_the_place_stays_empty(library, tmp_path):
    library.breaks = [5000, 0]
    with pytest.raises(DownloadError, match=r"after 5000 of 10240 bytes; what came is kept"):
        download(library.address, tmp_path / "f", 1 << 20)
    assert not (tmp_path / "f").exists()
    assert download(library.address, tmp_path / "f", 1 << 20).read_bytes() == CONTENT


@pytest.mark.parametrize("tag", ['"two"', "", 'W/"one"'])
def test_a_part_of_another_edition_or_of_one_that_cannot_be_told_is_thrown_away(library, tmp_path, tag):
    library.breaks = [5000, 0]
    with pytest.raises(DownloadError):
        download(library.address, tmp_path / "f", 1 << 20)
    library.content, library.tag = CONTENT[::-1], tag
    assert download(library.address, tmp_path / "f", 1 << 20).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("says_length", [True, False])
def test_a_file_that_is_too_long_is_refused_whether_or_not_it_says_so(library, tmp_path, says_length):
    library.says_length = says_length
    with pytest.raises(DownloadError, match=r"10240 bytes long, and 10000|longer than the 10000 bytes"):
        download(library.address, tmp_path / "f", 10_000)
    assert not (tmp_path / "f").exists()


def test_who_cannot_fetch_a_file_is_told_which_file_to_put_where(library, tmp_path):
    gone = PublishedFile("birds", library.address.replace("test", "gone"), 1 << 20)
    with pytest.raises(InputError) as caught:
        gone.found(None, tmp_path / "birds.jsonl")
    said = str(caught.value)
    assert "birds: gone.jsonl is not here and cannot be fetched: HTTP 404 Not Found" in said
    assert f"Fetch {gone.address} where there is a network, and put it at {tmp_path}/published/gone.jsonl" in said
    assert "+prepare_script_args.source=FILE" in said


def test_a_file_is_looked_for_where_it_is_named_then_where_the_variable_says_then_where_it_was_put(
    library, tmp_path, monkeypatch
):
    birds = PublishedFile("birds", library.address, 1 << 20, ("birds.csv",))
    places = [tmp_path / name for name in ("named/birds.csv", "held/birds/test.jsonl", "out/published/test.jsonl")]
    for place in places:
        place.parent.mkdir(parents=True)
        place.write_text(place.name)
    output = tmp_path / "out" / "birds.jsonl"
    monkeypatch.setenv(FILES_VARIABLE, str(tmp_path / "held"))
    assert birds.found(places[0].parent, output) == birds.found(places[0], output) == places[0]
    assert birds.found(None, output) == places[1]
    monkeypatch.delenv(FILES_VARIABLE)
    assert birds.found(None, output) == places[2]
    assert library.asked == []


@pytest.mark.parametrize(("name", "said"), [("empty", "holds no test.jsonl or birds.csv"), ("gone", "there is no ")])
def test_a_file_that_is_not_where_it_is_named_is_not_fetched_in_its_place(library, tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=said):
        PublishedFile("birds", library.address, 1, ("birds.csv",)).found(tmp_path / name, tmp_path / "b.jsonl")
    assert library.asked == []


@pytest.mark.parametrize("source", [5, True, 1.5, ["a"]])
def test_a_source_that_is_no_path_is_told(tmp_path, source):
    with pytest.raises(InputError, match=r"sums: source is .*, which is no path; write \./"):
        PublishedFile("sums", "https://a.invalid/a.jsonl", 9).found(source, tmp_path / "rows.jsonl")


def test_a_variable_that_names_no_folder_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(FILES_VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(InputError, match=f"{FILES_VARIABLE} names {tmp_path}/gone, which is no folder"):
        PublishedFile("birds", "http://127.0.0.1:9/test.jsonl", 1).found(None, tmp_path / "b.jsonl")
