import pytest

from rollbook.errors import ConfigError
from rollbook.servers.serving.requirement_lines import without_credentials
from rollbook.servers.serving.requirements import missing_package, needs_of


@pytest.mark.parametrize(
    "line",
    [
        "-e nemo-gym[dev] @ ../../",
        "-e nemo-gym[dev,sandbox] @ ../..",
        "-e ../../",
        "-e ../..[dev]",
        "--editable ../../../",
        "nemo_gym",
        "Nemo.Gym==0.7.0",
        "nemo-gym[dev]>=0.5  # the field's own",
        "nemo-gym @ git+https://example.test/gym.git@main",
        "rollbook-nemo-gym",
    ],
)
def test_however_the_field_is_asked_for_it_is_no_package_of_the_components(component, line):
    needs = needs_of(component(requirements=f"{line}\ntiktoken\n"))
    assert (needs.field_names, needs.packages) == (True, ("tiktoken",))
    assert needs.for_tests == ("[dev" in line)


def test_lines_are_read_as_installers_read_them(component):
    folder = component(
        requirements=(
            "# why\n-r more.txt\n-c bounds.txt\n--find-links https://example.test/simple\n"
            'one\\\n>=1\n\ntwo[x,y] ; python_version > "3"  # for all\nhttps://example.test/three.whl#sha256=ab\n'
            "-e ./four[z]\nrollbook[math]\nfive\n"
        ),
        more="six\n-e ../../\n",
        overrides="five==5\n",
    )
    needs = needs_of(folder)
    assert needs.packages == (
        "six",
        "one >=1",
        'two[x,y] ; python_version > "3"',
        "https://example.test/three.whl#sha256=ab",
        f"-e {folder / 'four'}[z]",
        "five",
    )
    assert needs.options == (f"-c {folder / 'bounds.txt'}", "--find-links https://example.test/simple")
    assert (needs.overrides, needs.extras, needs.field_names) == (("five==5",), {"math"}, True)
    assert needs.component == "resources_servers/tool"


def test_a_project_file_takes_places_and_overrides_from_uv(component):
    folder = component(
        pyproject="""
[project]
name = "tool"
dependencies = ["nemo-gym[dev]", "far[x]", "near", "plain>=1"]
[tool.uv]
override-dependencies = ["plain==2"]
[tool.uv.sources]
nemo-gym = { path = "../..", editable = true }
far = { git = "https://example.test/far.git", rev = "abc" }
near = { path = "../near" }
"""
    )
    needs = needs_of(folder)
    assert needs.packages == (
        "far[x] @ git+https://example.test/far.git@abc",
        f"near @ {(folder.parent / 'near').as_uri()}",
        "plain>=1",
    )
    assert (needs.overrides, needs.field_names, needs.for_tests) == (("plain==2",), True, True)


def test_places_of_uv_keep_when_a_package_is_asked_for_and_when_they_count(component):
    folder = component(
        pyproject="""
[project]
name = "tool"
dependencies = [
    "far[x]>=1; python_version < '3.9'",
    "near ; sys_platform == 'linux' or sys_platform == 'win32'",
    "either>=2",
    "both; os_name == 'posix'",
    "inner",
]
[tool.uv.sources]
far = { git = "https://example.test/far.git", tag = "v1", subdirectory = "py" }
near = { path = "near", marker = "python_version >= '3.11'" }
either = [
    { url = "https://example.test/a.whl", marker = "sys_platform == 'linux'" },
    { index = "own", marker = "sys_platform != 'linux'" },
]
both = [{ index = "own" }]
inner = { workspace = true }
"""
    )
    near = (folder / "near").as_uri()
    platforms = "sys_platform == 'linux' or sys_platform == 'win32'"
    assert needs_of(folder).packages == (
        "far[x] @ git+https://example.test/far.git@v1#subdirectory=py ; python_version < '3.9'",
        f"near ; {platforms}",
        f"near @ {near} ; ({platforms}) and (python_version >= '3.11')",
        "either>=2",
        "either @ https://example.test/a.whl ; sys_platform == 'linux'",
        "both; os_name == 'posix'",
        "inner",
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("pkg @ git+https://user:s3cret@example.test/p.git@main", "pkg @ git+https://****@example.test/p.git@main"),
        ("git+https://s3cret@example.test/p.git@main", "git+https://****@example.test/p.git@main"),
        ("p @ https://u:s3@cret@example.test/p.whl#a@b", "p @ https://****@example.test/p.whl#a@b"),
        ("p @ https://example.test/p@1.whl", "p @ https://example.test/p@1.whl"),
    ],
)
def test_a_line_is_shown_without_what_lets_its_owner_in(component, line, shown):
    folder = component(requirements=f"{line}\n")
    assert without_credentials(line) == shown
    said = str(missing_package("pkg", folder))
    assert "s3" not in said
    assert shown in said


def test_packages_that_a_build_computes_are_not_guessed(component):
    needs = needs_of(component(pyproject='[project]\nname = "tool"\ndynamic = ["dependencies"]\n'))
    assert needs.packages == ()
    assert "requirements.txt" in needs.unknown


def test_a_component_without_either_file_asks_for_nothing(component):
    needs = needs_of(component())
    assert (needs.packages, needs.field_names, needs.unknown) == ((), False, "")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"requirements": "", "pyproject": ""}, r"has .*requirements\.txt and .*pyproject\.toml; keep one"),
        ({"pyproject": "[project"}, r"pyproject\.toml cannot be read"),
    ],
)
def test_files_that_contradict_or_cannot_be_read_are_named(component, files, words):
    with pytest.raises(ConfigError, match=words):
        needs_of(component(**files))
