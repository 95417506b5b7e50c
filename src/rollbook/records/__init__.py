"""The values: what a plan owes, how an attempt ended, where a rollout stands.

Rules:
* Nothing here reads a file, awaits, or knows another room.
* Past the codec nobody asks a mapping which markers it carries: an ending is a type.
"""
