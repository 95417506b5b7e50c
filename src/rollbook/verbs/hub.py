"""The Hugging Face hub as this product speaks to it, through the `huggingface_hub` package.

Rules:
* The package is an extra: it is imported when it is needed, and named with what to type where it is missing.
* Whatever the hub answers or fails to answer is one error that names the data set; no token is in it.
* What is fetched is of one commit, and is what the hub says of it, byte for byte; a file appears whole or not at all.

Source: servers.md §8.9.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final

import msgspec

from rollbook.config.datasets import HuggingFaceSource
from rollbook.config.tree import did_you_mean
from rollbook.errors import HubError
from rollbook.ledger.whole_file import whole_file
from rollbook.verbs.hub_files import RemoteFile, commit_of, part_name, refuse_strange
from rollbook.verbs.hub_splits import files_of_split
from rollbook.verbs.output_file import output_file

_DATASET: Final = "dataset"
_PARTS: Final = "rollbook_parts"
_AT_ONCE: Final = 1 << 20
_CURES: Final = {
    HTTPStatus.UNAUTHORIZED: "the hub asks who you are: set hf_token in env.yaml, or HF_TOKEN, to a token that may",
    HTTPStatus.FORBIDDEN: "the token may not do this, or the data set's terms have to be accepted on its page first",
    HTTPStatus.NOT_FOUND: "there is none, or it is private and the token (hf_token, HF_TOKEN) may not see it",
    HTTPStatus.TOO_MANY_REQUESTS: "the hub takes no more requests for a while; wait, or set hf_token",
}


class Fetched(msgspec.Struct, frozen=True):
    """What was fetched: of which commit, from which files, to where."""

    commit: str
    files: tuple[str, ...]
    output: Path


class Published(msgspec.Struct, frozen=True):
    """Where rows were published: their data set and name there, and the page that shows the change."""

    repo_id: str
    name: str
    url: str


class Publication(msgspec.Struct, frozen=True):
    """How rows are to be published: as which file of which data set, on which branch, and with which words."""

    repo_id: str
    name: str
    revision: str | None = None
    private: bool = False
    create_pr: bool = False
    message: str | None = None
    description: str | None = None
    collection: str | None = None


class Hub:
    """The hub as somebody with `token` sees it; None shows the token of the environment or of the hub's own login.

    `endpoint` is where it is: HF_ENDPOINT, else the public one.
    """

    def __init__(self, token: str | None = None, endpoint: str | None = None) -> None:
        self._package = _package()
        self._token = token or None
        self._endpoint = endpoint or os.environ.get("HF_ENDPOINT") or None
        self._api = self._package.HfApi(endpoint=self._endpoint, token=self._token)

    def fetch_artifact(
        self, repo_id: str, name: str, output: Path, revision: str | None = None, *, overwrite: bool = False
    ) -> Fetched:
        """Write one file of a data set to `output`; `overwrite` replaces an earlier file.

        Raises:
            HubError: the hub did not give it, or gave something else than it says; there is no file then.
            OutputExistsError: a file is there already; the hub is not asked.

        """
        place = output_file(output, replaces=overwrite)
        commit, files = self._files(repo_id, revision)
        if name not in files:
            shown = did_you_mean(name, files) or f" It has: {', '.join(sorted(files)[:10]) or 'none'}."
            raise HubError(f"{_named(repo_id, revision)} has no file `{name}`.{shown}")
        return self._fetched(repo_id, commit, [files[name]], output, place)

    def fetch_split(
        self, repo_id: str, split: str, output: Path, revision: str | None = None, *, overwrite: bool = False
    ) -> Fetched:
        """Write all rows of a split of a data set to `output`, in the order of the files that hold them.

        Raises:
            HubError: the data set has no such split in JSONL, or the hub did not give it; there is no file then.
            OutputExistsError: as above.

        """
        place = output_file(output, replaces=overwrite)
        commit, files = self._files(repo_id, revision)
        names = files_of_split(files, split, _named(repo_id, revision))
        return self._fetched(repo_id, commit, [files[name] for name in names], output, place)

    def fetch_all(
        self, repo_id: str, folder: Path, revision: str | None = None, *, overwrite: bool = False
    ) -> list[Fetched]:
        """Write every file of rows of a data set into `folder`, under its own name.

        Raises:
            HubError: the data set has no JSONL, two files of one name, or the hub did not give one of them.
            OutputExistsError: one of them is there already; nothing is fetched.

        """
        commit, files = self._files(repo_id, revision)
        rows = [file for name, file in sorted(files.items()) if name.endswith(".jsonl")]
        outputs = {folder / Path(file.name).name: file for file in rows}
        if not rows or len(outputs) < len(rows):
            what = "files of one name in several folders" if rows else "no .jsonl file"
            raise HubError(f"{_named(repo_id, revision)} has {what}; name one with --artifact. {_listed(files)}")
        places = {output: output_file(output, replaces=overwrite) for output in outputs}
        return [self._fetched(repo_id, commit, [file], output, places[output]) for output, file in outputs.items()]

    def fetch_source(self, source: HuggingFaceSource, kind: str, output: Path) -> None:
        """Write what a data set's `source` names to `output`: the file that it says, else the split of its type.

        Raises:
            HubError: as the two above.

        """
        if source.artifact_fpath is not None:
            self.fetch_artifact(source.repo_id, source.artifact_fpath, output)
        else:
            self.fetch_split(source.repo_id, kind, output)

    def publish(self, rows: Path, publication: Publication) -> Published:
        """Publish a file of rows, as a commit or as a proposed one.

        Raises:
            HubError: the hub did not take it.

        """
        repo_id, name = publication.repo_id, publication.name
        with self._said(repo_id):
            if not publication.create_pr:
                self._api.create_repo(repo_id, repo_type=_DATASET, private=publication.private, exist_ok=True)
            commit = self._api.upload_file(
                path_or_fileobj=rows,
                path_in_repo=name,
                repo_id=repo_id,
                repo_type=_DATASET,
                revision=publication.revision,
                create_pr=publication.create_pr,
                commit_message=publication.message or f"Upload {name}",
                commit_description=publication.description,
            )
            if publication.collection is not None:
                self._api.add_collection_item(publication.collection, repo_id, _DATASET, exists_ok=True)
        return Published(repo_id, name, str(commit.pr_url or commit.commit_url))

    def _files(self, repo_id: str, revision: str | None) -> tuple[str, dict[str, RemoteFile]]:
        """Return the commit that `revision` names and the files it has."""
        with self._said(_named(repo_id, revision)):
            info = self._api.dataset_info(repo_id, revision=revision, files_metadata=True)
        files = (
            RemoteFile(one.rfilename, one.size, one.blob_id, one.lfs.sha256 if one.lfs else None)
            for one in info.siblings or ()
        )
        return commit_of(info.sha, _named(repo_id, revision)), {file.name: file for file in files}

    def _fetched(self, repo_id: str, commit: str, files: list[RemoteFile], output: Path, place: Path) -> Fetched:
        for file in files:
            refuse_strange(file, repo_id)
        with whole_file(place) as written:
            for file in files:
                kept = self._downloaded(repo_id, commit, file)
                _copy_checked(kept, file, written, f"{repo_id}: {file.name}")
                kept.unlink(missing_ok=True)
        return Fetched(commit, tuple(file.name for file in files), output)

    def _downloaded(self, repo_id: str, commit: str, file: RemoteFile) -> Path:
        """Return the file as it lies in the hub's own cache, whole; what is there of it already is not asked for."""
        from huggingface_hub.file_download import http_get  # noqa: PLC0415  see `_package`

        package, what = self._package, f"{repo_id}: {file.name}"
        url = package.hf_hub_url(repo_id, file.name, repo_type=_DATASET, revision=commit, endpoint=self._endpoint)
        headers = package.utils.build_hf_headers(token=self._token)
        kept = Path(package.constants.HF_HUB_CACHE) / _PARTS / part_name(repo_id, commit, file)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with _held(kept, what) as part, self._said(what):
            there = part.seek(0, os.SEEK_END)
            if file.size is not None and there > file.size:
                there = part.truncate(part.seek(0))
            http_get(url, part, resume_size=there, headers=headers, expected_size=file.size)
        return kept

    @contextmanager
    def _said(self, what: str) -> Iterator[None]:
        """Turn whatever the package raises into one error about `what`."""
        try:
            yield
        except (self._package.errors.HTTPError, OSError, ValueError) as error:
            raise HubError(f"Hugging Face hub, {what}: {self._without_token(_reason(error))}") from None

    def _without_token(self, text: str) -> str:
        shown = [self._token, self._package.get_token()]
        for token in filter(None, shown):
            text = text.replace(token, "****")
        return text


def _package() -> ModuleType:
    try:
        import huggingface_hub  # noqa: PLC0415  an extra, and slow to import
        import huggingface_hub.constants  # noqa: PLC0415  the same
        import huggingface_hub.errors  # noqa: PLC0415  the same
        from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415  the same
    except ImportError as error:
        raise HubError(
            f"the Hugging Face hub needs a package that is not here ({error.name}); pip install 'rollbook[hub]'"
        ) from None
    disable_progress_bars()
    return huggingface_hub


def _named(repo_id: str, revision: str | None) -> str:
    return repo_id if revision is None else f"{repo_id} at {revision}"


def _listed(files: Iterable[str]) -> str:
    return f"It has: {', '.join(sorted(files)[:10]) or 'none'}."


def _reason(error: Exception) -> str:
    """Say in a line why the hub did not do what it was asked."""
    response = getattr(error, "response", None)
    cause = error.__cause__
    if response is None and cause is not None and getattr(cause, "response", None) is not None:
        return _reason(cause) if isinstance(cause, Exception) else str(cause)
    said = " ".join(str(error).split())[:300] or type(error).__name__
    if response is None:
        return f"{said}. Asked again, a download goes on where it stopped"
    cure = _CURES.get(response.status_code)
    return f"HTTP {response.status_code}: {cure}" if cure is not None else f"HTTP {response.status_code}: {said}"


@contextmanager
def _held(path: Path, what: str) -> Iterator[BinaryIO]:
    """Give a file to write to, which nobody else writes to meanwhile; what was written stays, whatever happens.

    Raises:
        HubError: somebody else does.

    """
    path.touch()
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HubError(f"{what} is being fetched by another process; wait for it, or end it") from None
        yield file


def _copy_checked(kept: Path, file: RemoteFile, written: BinaryIO, what: str) -> None:
    """Append a file that was fetched, unless it is not what the hub says that it is."""
    size = kept.stat().st_size
    sha256 = hashlib.sha256()
    blob = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    last = b"\n"
    with kept.open("rb") as content:
        while part := content.read(_AT_ONCE):
            sha256.update(part)
            blob.update(part)
            written.write(part)
            last = part[-1:]
    if last != b"\n":
        written.write(b"\n")
    wanted, found = (file.sha256, sha256.hexdigest()) if file.sha256 else (file.blob, blob.hexdigest())
    if (file.size is not None and size != file.size) or (wanted is not None and wanted != found):
        kept.unlink(missing_ok=True)
        raise HubError(
            f"{what} arrived as {size} bytes with the digest {found[:12]}, and the hub says {file.size} bytes and "
            f"{(wanted or '?')[:12]}; what arrived was thrown away, try again"
        )
