"""A right response to the first example row of every environment that judges a response by itself."""

import json

from unit.shelf.calling import example_rows, message, tool_call

JUDGED_EQUAL = "[[A=B]]"


def right_items(name):
    """Return the items of a response that earns what the environment pays at most."""
    row = example_rows(name)[0]
    if name in CALLS:
        return [tool_call(call["name"], f"call_{n}", **call["arguments"]) for n, call in enumerate(CALLS[name](row))]
    return [message(TEXTS[name](row))]


def _expected(row):
    return row["expected_answer"]


CALLS = {
    "example_multi_step": lambda row: row["expected_answers"],
    "example_single_tool_call": lambda _: [{"name": "get_weather", "arguments": {"city": "Oslo"}}],
    "example_tool_call_multireward": lambda row: [row["expected_call"]],
    "office": lambda row: row["expected_calls"],
    "xlam_fc": lambda row: row["expected_answers"],
}
TEXTS = {
    "calendar": _expected,
    "code_gen": _expected,
    "equivalence_llm_judge": _expected,
    "gpqa_diamond": lambda row: f"Answer: {row['expected_answer']}",
    "hotpotqa_qa": lambda row: json.dumps({"answer": row["expected_answer"]}),
    "instruction_following": _expected,
    "math_with_code": lambda row: f"\\boxed{{{row['expected_result']}}}",
    "math_with_judge": lambda row: f"\\boxed{{{row['expected_answer']}}}",
    "mcqa": lambda row: f"\\boxed{{{row['expected_answer']}}}",
    "reasoning_gym": lambda row: f"<answer>{row['answer']}</answer>",
    "string_match": lambda row: f"Final answer: {row['expected_answer']}",
    "structured_outputs": _expected,
}
