import sys
from pathlib import Path
from textwrap import dedent

import pytest
from omegaconf import OmegaConf

from rollbook.config.instances import server_instances
from rollbook.errors import MissingPackageError, ServingError
from rollbook.servers.client import ServerClient
from rollbook.servers.serving.loading import build_component, class_run_as_script
from rollbook.servers.serving.requirement_lines import requirement_lines
from unit.servers_core.stand_ins import APP, HEAD, configuration, write_component

MAIN = "if __name__ == '__main__':"


def load(root, name, source=APP):
    write_component(root, name, source)
    (instance,) = server_instances(configuration({name: {}}))
    return build_component(instance, lambda served: served)


@pytest.mark.parametrize(
    ("ending", "name"),
    [
        (f"{MAIN}\n    B.run_webserver()", "B"),
        (f"{MAIN}\n    A.run_webserver()\nelif is_entrypoint(__file__):\n    app = A.run_webserver()", "A"),
        ("B.run_webserver()", None),
        ("", None),
    ],
)
def test_the_class_is_the_one_that_the_file_runs_as_a_script(ending, name):
    assert class_run_as_script(f"class A: ...\nclass B: ...\n{ending}") == name


def test_an_entry_point_is_loaded_once_under_the_name_of_its_folders(root):
    first = load(root, "colours_a")
    assert first.__module__ == "resources_servers.colours_a.app"
    assert sys.modules[first.__module__].Colours is first
    assert load(root, "colours_a") is first


def test_the_only_server_of_a_file_needs_no_main_block(root):
    assert load(root, "colours_b", APP.partition("if __name__")[0]).__name__ == "Colours"


def test_a_file_that_serves_nobody_says_how_it_is_to_end(root):
    with pytest.raises(ServingError, match=r"nobody/app\.py does not say which server .*none.*run_webserver"):
        load(root, "nobody", "x = 1\n")


def test_modules_beside_two_entry_points_may_have_the_same_name(root):
    source = APP.replace('"teal"', "NAME").replace("from fastapi", "from shared_name import NAME\n    from fastapi")
    for name in ("left", "right"):
        (write_component(root, name) / "shared_name.py").write_text(f"NAME = {name!r}\n")
    assert load(root, "left", source).config_class().model_fields["favourite"].default == "left"
    assert load(root, "right", source).config_class().model_fields["favourite"].default == "right"
    assert "shared_name" not in sys.modules


def test_a_component_imports_its_siblings_by_their_dotted_names(root):
    write_component(root, "base_colours")
    sub = """
        from resources_servers.base_colours.app import Colours

        class Shades(Colours):
            pass

        if __name__ == "__main__":
            Shades.run_webserver()
    """
    assert [kind.__name__ for kind in load(root, "shades", sub).__mro__[:2]] == ["Shades", "Colours"]


@pytest.mark.parametrize(
    ("requirements", "line"),
    [
        (
            "# why\n-e ../../\nsurely-missing>=1,<2  # pinned\nrollbook[math]\n",
            r"pip install 'surely-missing>=1,<2' 'rollbook\[math\]'",
        ),
        (
            "other-one\n",
            r"pip install other-one \(and surely_missing itself, .* where none of these brings it\); or add it to .*",
        ),
        (
            None,
            r"pip install surely_missing; or add it to .*requirements\.txt, and --isolate makes an environment with it",
        ),
    ],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(root, requirements, line):
    name = f"needy_{len(requirements or '')}"
    folder = write_component(root, name)
    if requirements:
        (folder / "requirements.txt").write_text(requirements)
    found = f"resources_servers/{name} needs the package 'surely_missing', which is not installed; run: {line}$"
    with pytest.raises(MissingPackageError, match=found):
        load(root, name, "import surely_missing.sub\n")
    assert f"resources_servers.{name}.app" not in sys.modules


def test_a_component_may_name_its_missing_package_itself(root):
    own = "from rollbook.errors import MissingPackageError\nraise MissingPackageError('run: pip install it')\n"
    with pytest.raises(MissingPackageError, match=r"^run: pip install it$"):
        load(root, "wordy", own)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import nemo_gym.wonders", r"nemo_gym\.wonders: it is not among the names .*docs/compat\.md"),
        ("from nemo_gym.judge import Wonder", r"nemo_gym\.judge\.Wonder: it is not among the names"),
        (
            "from nemo_gym.judge import _secret",
            r"nemo_gym\.judge\._secret: private names are left out; docs/compat\.md",
        ),
    ],
)
def test_a_name_of_the_field_that_is_not_there_is_named_with_file_and_line(root, line, told):
    pytest.importorskip("nemo_gym")
    with pytest.raises(ServingError, match=rf"wonders/app\.py:2 imports {told}") as caught:
        load(root, "wonders", f"\n{line}\n")
    assert not isinstance(caught.value, MissingPackageError)


READS = APP.replace("favourite: str", "favourite: str = open('colour.txt').read()  #").replace(
    "app = FastAPI()", "app = FastAPI(title=open('colour.txt').read())"
)


def built(root, name, source):
    (write_component(root, name, source) / "colour.txt").write_text("moss")
    (instance,) = server_instances(configuration({name: {}}))
    config = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": name}
    client = ServerClient(HEAD, OmegaConf.create({}))
    return build_component(
        instance, lambda served: served(config=served.config_class()(**config), server_client=client).setup_webserver()
    )


def test_a_component_is_loaded_and_built_in_its_own_folder(root, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    here = Path.cwd()
    assert built(root, "at_home", READS).title == "moss"
    assert Path.cwd() == here
    assert str(root / "resources_servers" / "at_home") not in sys.path


@pytest.mark.parametrize("ending", ["1 / 0", "raise SystemExit", "raise KeyboardInterrupt"])
def test_a_component_that_fails_leaves_the_working_directory_as_it_was(root, ending):
    here = Path.cwd()
    with pytest.raises((ServingError, KeyboardInterrupt)):
        load(root, f"leaver_{len(ending)}", f"import os\nos.chdir('/')\n{ending}\n")
    assert Path.cwd() == here


def test_a_component_that_ships_is_built_where_the_run_was_started(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (instance,) = server_instances(configuration({"mcqa": {}}))
    assert build_component(instance, lambda _: Path.cwd()) == tmp_path


@pytest.mark.parametrize(("name", "told"), [("colour.txt", True), ("/no/such/colour.txt", False)])
def test_a_relative_path_that_is_not_found_is_answered_with_servers_in_processes(root, name, told):
    with pytest.raises(ServingError, match=r"cannot be built .*FileNotFoundError: .*colour\.txt'") as caught:
        load(root, f"pathless_{told}", f"open({name!r})\n")
    assert ("--serve processes" in str(caught.value)) is told


def test_a_sibling_that_no_root_holds_is_no_missing_package(root):
    with pytest.raises(ServingError, match=r"lonely/app\.py imports 'resources_servers.no_such_sibling'"):
        load(root, "lonely", "import resources_servers.no_such_sibling.app\n")


def test_a_file_that_raises_while_it_is_imported_is_named(root):
    with pytest.raises(ServingError, match=r"'broken' cannot be built \(.*broken/app\.py:2\): ZeroDivisionError"):
        load(root, "broken", "\n1 / 0\n")


def test_an_entry_point_that_no_root_holds_is_named(root):
    (instance,) = server_instances(configuration({"absent": {}}))
    with pytest.raises(ServingError, match=r"'absent' has no entry point .*/absent/app\.py.*--search-dir"):
        build_component(instance, lambda served: served)


def test_requirement_lines_leave_out_options_and_comments(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text(
        dedent("""\
        -r other.txt

        one # two
        three; python_version > "3"
    """)
    )
    assert requirement_lines(path) == ("one", 'three; python_version > "3"')
