import pytest
from pydantic import ValidationError

from rollbook import DirectHTTPToolAccess, MCPStreamableHTTPConnection


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("http://resources:8000", "http://resources:8000/"),
        ("http://resources:8000/", "http://resources:8000/"),
        ("http://resources:8000/ng-rollout/3-0", "http://resources:8000/ng-rollout/3-0"),
    ],
)
def test_an_address_of_tools_always_has_a_path(given, read):
    access = DirectHTTPToolAccess(name="tools", required=True, base_url=given)
    assert (access.base_url, access.model_dump(mode="json")["base_url"]) == (read, read)
    assert MCPStreamableHTTPConnection(url=given).url == read


@pytest.mark.parametrize("text", ["resources", "file:///tmp", ""])
def test_what_is_no_address_of_http_is_refused(text):
    with pytest.raises(ValidationError):
        DirectHTTPToolAccess(name="tools", required=True, base_url=text)
