"""Files → source rows: datasets, prompt templates and skills, read and checked before anything is planned.

Rules:
* Nothing here knows repeats or servers.
* A row keeps the file and the physical line that it came from, for every message about it.
"""
