"""`gym dataset …`: files of rows made, checked, fetched and published.

Rules:
* No verb of this group starts a server.

Source: servers.md §10.2.
"""

from typing import Final

from rollbook.cli.verb import Verb, VerbGroup

command: Final = VerbGroup(
    "dataset",
    {
        "render": Verb("rollbook.cli.dataset_render", "Fill a prompt template in from each row."),
        "collate": Verb("rollbook.cli.dataset_collate", "Check, measure and join the data sets of a configuration."),
        "download": Verb("rollbook.cli.dataset_download", "Fetch a data set from the Hugging Face hub."),
        "upload": Verb("rollbook.cli.dataset_upload", "Publish rows on the Hugging Face hub."),
        "rm": Verb("rollbook.cli.dataset_gitlab", "Not here: removes a data set from a GitLab registry.", "remove"),
        "migrate": Verb("rollbook.cli.dataset_gitlab", "Not here: moves one from GitLab to the hub.", "migrate"),
    },
    summary="Make, check, fetch and publish data sets: render, collate, download, upload.",
)
