"""Which agents and models a verifier admits.

Rules:
* A resources server without a list admits everyone; a bare name is a list of one.
* `allow_unsupported_pairing: true`, or the environment variable of that name, admits everyone everywhere.

Source: servers.md §1.5 step 8, §1.6; collection.md §2.8.
"""

import os
from collections.abc import Iterator

from rollbook.config.names import (
    AGENTS,
    ALLOW_UNSUPPORTED_PAIRING_ENV_VAR_NAME,
    ALLOW_UNSUPPORTED_PAIRING_KEY,
    DUMMY_MODEL,
    MODELS,
    POLICY_MODEL,
    RESOURCES_SERVERS,
)
from rollbook.config.tree import Tree, block_of, blocks, ref_name
from rollbook.errors import UnsupportedModelPairingError

BYPASS = f"++{ALLOW_UNSUPPORTED_PAIRING_KEY}=true or {ALLOW_UNSUPPORTED_PAIRING_ENV_VAR_NAME}=1 admits it anyway"


def pairing_is_free(tree: Tree) -> bool:
    """Tell whether lists of admitted agents and models are to be ignored."""
    variable = os.environ.get(ALLOW_UNSUPPORTED_PAIRING_ENV_VAR_NAME, "")
    return tree.get(ALLOW_UNSUPPORTED_PAIRING_KEY) is True or variable.lower() not in {"", "0", "false"}


def names_in(value: object) -> tuple[str, ...]:
    """Return a list of names, one bare name, or nothing, as a tuple."""
    if isinstance(value, str):
        return (value,)
    return tuple(str(name) for name in value) if isinstance(value, list) else ()


def unsupported_agent(tree: Tree, agent: str, verifier: str) -> str | None:
    """Return why `verifier` does not admit the agent instance, or None when it does."""
    admitted, found = _admitted(tree, verifier, "allowed_agents"), block_of(tree, agent)
    if pairing_is_free(tree) or not admitted or found is None or found[1] in admitted:
        return None
    return f"agent `{agent}` is a {found[1]}; `{verifier}` admits {', '.join(admitted)} (allowed_agents). {BYPASS}"


def check_models(tree: Tree) -> None:
    """Refuse a policy model that a verifier does not admit.

    Raises:
        UnsupportedModelPairingError: names the model, its type, the verifier and its list.

    """
    if pairing_is_free(tree):
        return
    for verifier, _, block in blocks(tree, RESOURCES_SERVERS):
        admitted = names_in(block.get("allowed_model_types"))
        for model in _models_of(tree, verifier) if admitted else ():
            found = block_of(tree, model)
            if found is not None and found[1] not in (*admitted, DUMMY_MODEL):
                raise UnsupportedModelPairingError(
                    f"model `{model}` is a {found[1]}; `{verifier}` admits {', '.join(admitted)} "
                    f"(allowed_model_types). {BYPASS}"
                )


def _admitted(tree: Tree, verifier: str, key: str) -> tuple[str, ...]:
    found = block_of(tree, verifier)
    return names_in(found[2].get(key)) if found is not None else ()


def _models_of(tree: Tree, verifier: str) -> Iterator[str]:
    """Yield the models of the agents that `verifier` judges; the conventional policy model where there is none."""
    agents = [
        b for _, _, b in blocks(tree, AGENTS) if ref_name(b.get("resources_server"), RESOURCES_SERVERS) == verifier
    ]
    models = {ref_name(block.get("model_server"), MODELS) for block in agents}
    yield from sorted(model for model in models if model is not None) or [POLICY_MODEL]
