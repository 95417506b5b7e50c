"""Mean rewards of kinds of rows: by format, by problem, by how the tools are laid out.

Rules:
* A facet that no row names makes no metric.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

PREFIXES: Final[Mapping[str, str]] = {
    "schema_type": "",
    "problem_type": "",
    "schema_repr": "repr_",
    "response_mode": "response_mode_",
    "tool_schema_mode": "tool_schema_mode_",
    "tool_choice": "tool_choice_",
    "parallel_tool_calls": "parallel_tool_calls_",
    "num_tools": "num_tools_",
    "has_distractors": "has_distractors_",
    "instruction_layout": "instruction_layout_",
    "instruction_detail_level": "instruction_detail_level_",
    "system_instruction_style": "system_instruction_style_",
    "tool_name_style": "tool_name_style_",
    "distractor_style": "distractor_style_",
    "tool_union_mode": "tool_union_mode_",
}


def facet_means(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return `mean/reward_<facet>` of results, by facet in the order of `PREFIXES`, then by value."""
    rewards: dict[str, dict[str, list[float]]] = {field: defaultdict(list) for field in PREFIXES}
    for result in results:
        for field, by_value in rewards.items():
            value = result.get(field)
            if value is not None:
                by_value[_name(value)].append(float(result["reward"]))
    return {
        f"mean/reward_{PREFIXES[field]}{value}": sum(found) / len(found)
        for field, by_value in rewards.items()
        for value, found in sorted(by_value.items())
    }


def _name(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
