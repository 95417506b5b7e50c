"""`gym env schema`: what a resources server says of its tasks' fields, as a JSON Schema.

Rules:
* The schema goes to standard output as it is; a server without one is an error.

Source: servers.md §10.2, §8.2.
"""

import click

from rollbook.cli.terminal import say_json
from rollbook.cli.verb import VerbCommand


@click.command("schema", cls=VerbCommand, reports=True, short_help="Print the JSON Schema of task fields.")
@click.option("--resources-server", metavar="NAME", help="The resources server whose fields are wanted.")
@click.option("--search-dir", metavar="DIR", multiple=True, help="Look for the server here first (repeatable).")
def command(resources_server: str | None, search_dir: tuple[str, ...]) -> None:
    """Print the JSON Schema of the fields that a resources server reads from its rows.

    Exit code: 0, or 1 when the server says nothing of its fields.
    """
    from rollbook.config.catalog import Shelf, named_folder  # noqa: PLC0415  paid for by this verb alone
    from rollbook.config.roots import add_search_dirs, put_roots_on_import_path  # noqa: PLC0415  as above
    from rollbook.errors import TaskDataSchemaError  # noqa: PLC0415  as above
    from rollbook.inputs.task_data import TASK_DATA_FILE, load_task_data_schema  # noqa: PLC0415  as above

    if resources_server is None:
        raise click.UsageError("name the server: --resources-server NAME.")
    add_search_dirs(search_dir)
    folder = named_folder(Shelf.RESOURCES_SERVER, resources_server)
    put_roots_on_import_path()
    schema = load_task_data_schema(folder)
    if schema is None:
        raise TaskDataSchemaError(f"{folder} has no {TASK_DATA_FILE}; declare there a pydantic model named TaskData")
    say_json(schema.json_schema())
