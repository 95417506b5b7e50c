"""The configuration room: YAML files and overrides → one resolved configuration, and typed settings per command.

Rules:
* Nothing here starts a server or sends a request; the only socket is the one that asks whether a port is free.
* Importing this package costs nothing: OmegaConf, pydantic and Hydra are imported by the modules that need them.
* A message names the file and the dotted path where they are known, and never holds a secret.

Source: servers.md §1.
"""
