"""`python -m rollbook.cli`: the command line without its script.

Rules:
* It does what `gym` does, and nothing else.
"""

from rollbook.cli.entry import main

if __name__ == "__main__":
    main()
