"""What is counted while a run goes on, and the one method by which it leaves.

Rules:
* Telemetry is a guest of the run: it never raises into it, never delays it, and keeps nothing that grows with it.
* Numbers are folded from events; the files of the run stay the truth.

Source: collection.md §3.9, §6.6.
"""
