"""Components of their own: each has a suite that runs in its own folder."""

collect_ignore = ["field_components"]
