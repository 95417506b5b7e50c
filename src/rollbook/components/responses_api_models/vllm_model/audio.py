"""Audio named in a request's metadata, put before the text of the latest user message.

Rules:
* At most one of the three keys is given; the key is taken out of the metadata, and empty metadata with it.
* A file is read from under `audio_root` alone.

Source: servers.md §5.4, point 7.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEYS = ("audio_data", "audio_path", "audio_paths")
MIME_TYPES = {
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    ".ogg": "audio/ogg",
    ".opus": "audio/opus",
}


def with_audio(asked: Mapping[str, Any], audio_root: str | None) -> dict[str, object]:
    """The chat request with its audio in the messages. Reads files: not for the event loop."""
    metadata = asked.get("metadata") or {}
    given = [key for key in KEYS if metadata.get(key)]
    if not given:
        return dict(asked)
    if len(given) > 1:
        msg = f"metadata names audio more than once: {', '.join(given)}; give one of them"
        raise ValueError(msg)
    urls = _urls(given[0], metadata[given[0]], audio_root)
    kept = {key: value for key, value in metadata.items() if key != given[0]}
    body = {key: value for key, value in asked.items() if key != "metadata"}
    body["messages"] = _inserted(asked["messages"], urls)
    return {**body, "metadata": kept} if kept else body


def _urls(key: str, value: str, root: str | None) -> list[str]:
    if key == "audio_data":
        return [value]
    paths = json.loads(value) if key == "audio_paths" else [value]
    return [data_uri(path, root) for path in paths]


def data_uri(name: str, root: str | None) -> str:
    """The file as a data URI.

    Raises:
        ValueError: there is no root, the file lies outside of it, or its ending is not known.

    """
    if root is None:
        msg = f"the request names an audio file, {name}; set audio_root to the folder that holds it"
        raise ValueError(msg)
    base = Path(root).resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base):
        msg = f"the audio file {name} lies outside of audio_root"
        raise ValueError(msg)
    if path.suffix.lower() not in MIME_TYPES:
        msg = f"the audio file {name} is none of {', '.join(MIME_TYPES)}"
        raise ValueError(msg)
    encoded = base64.b64encode(path.read_bytes()).decode()
    return f"data:{MIME_TYPES[path.suffix.lower()]};base64,{encoded}"


def _inserted(messages: list[Mapping[str, Any]], urls: list[str]) -> list[Mapping[str, Any]]:
    last = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=None)
    if last is None:
        msg = "the request names audio, and has no user message to put it into"
        raise ValueError(msg)
    content = messages[last].get("content") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks: list[object] = [{"type": "audio_url", "audio_url": {"url": url}} for url in urls]
    return [*messages[:last], {**messages[last], "content": [*blocks, *parts]}, *messages[last + 1 :]]
