"""Every error that Rollbook raises, drawn as a tree.

    RollbookError
    ├── ConfigError                              a configuration that cannot be run
    │   ├── ConfigPathNotFoundError              (also FileNotFoundError)
    │   ├── MalformedConfigPathsError, ConfigMissingValuesError, ConfigInterpolationError, …
    │   ├── SandboxConfigError                   a block about sandboxes that names no one provider
    │   ├── ScaffoldConflictError                files to be made that are there with other contents
    │   ├── TaskDataSchemaError                  a server's `task_data.py` that declares no schema of task fields
    │   ├── VerifierFixtureError                 a verifier that does not do what its cases say
    │   └── InputError                           a dataset row that cannot be planned; names file and line
    ├── RunError                                 a run that cannot start or cannot end well
    │   ├── NoRunError                           no run where one was named
    │   ├── OutputExistsError                    the output is there already, and nothing said to replace it
    │   ├── NothingProducedError                 every dispatched rollout ended without a result
    │   ├── RunStoppedError                      a run that was told to stop before it had sent anything
    │   ├── UnroutedRunError                     a `/run` failed and failures are not routed to the sidecar
    │   ├── ResumeRefusedError                   a resume by settings or a plan that are not those of the run
    │   ├── IncompleteEvaluationError            a strict run that did not complete
    │   └── LedgerError                          a file that could not be written or read
    │       ├── DamagedRunError                  files of a run that contradict each other or lost bytes
    │       └── ShardTakenOverError              a shard that somebody else opened since
    ├── ServingError                             servers that did not start, died, or cannot be found
    │   ├── ServerDiedError, PortTakenError, EndpointNotReadyError
    │   ├── HeadServerUnreachableError           (also ValueError) no head server answers
    │   ├── PermanentEndpointError               a model endpoint refused for good
    │   └── MissingPackageError                  an environment's own package is not installed
    ├── ShadowedPackageError                     (also ImportError) two installed packages of one import name
    ├── SandboxError                             a sandbox that cannot be had or used
    │   ├── SandboxCreateError                   none was made, or it cannot be reached
    │   │   └── SandboxCreateVerificationError   one was made and is not what was asked for
    │   ├── SandboxPathError                     (also ValueError) a path that leads out of the sandbox
    │   └── SandboxPtyError                      a terminal that cannot be opened, or is gone
    ├── JudgeError                               a judge model could not be asked
    ├── HubError                                 a data set that the Hugging Face hub did not give or take
    └── SendFailed                               (in `records.exchange`) one exchange that brought no whole reply

Beside the tree, by contract of the field: `InnerServerError` (an aiohttp error that carries the inner reply),
`HandledEpisodeError` and `AgentSessionSetupError` (what an environment or an agent raises to say how it failed).

Rules:
* A message says what was found, where (file and line, or dotted path), and what to type next.
* Errors of the configuration are also `ValueError` (or `FileNotFoundError`), as callers of the field's API expect.
* The command line turns every `RollbookError` into one `Error:` line; a traceback is a defect of ours.
"""


class RollbookError(Exception):
    """The root of the tree. `exit_code` is what the command line ends with."""

    exit_code = 1


class ConfigError(RollbookError):
    """A configuration that cannot be run as it stands."""


class ConfigPathNotFoundError(ConfigError, FileNotFoundError):
    """A configuration, dataset or prompt file that no search root holds."""

    def __str__(self) -> str:
        """Say the message; `FileNotFoundError` would show an errno tuple."""
        return str(self.args[0]) if self.args else ""


class MalformedConfigPathsError(ConfigError, ValueError):
    """`config_paths` is something other than a list of strings."""


class NoServerInstancesError(ConfigError, ValueError):
    """A configuration that declares no server."""


class ConfigMissingValuesError(ConfigError, ValueError):
    """Mandatory values (`???`) that nothing filled in; all of them in one message."""


class ConfigInterpolationError(ConfigError, ValueError):
    """An interpolation that points at nothing."""


class ServerRefNotFoundError(ConfigError, ValueError):
    """A server reference that names no instance."""


class InheritPathNotFoundError(ConfigError, ValueError):
    """A move or copy operator whose source does not exist."""


class AlmostServerError(ConfigError, ValueError):
    """A block that looks like a server instance and does not validate."""


class AgentWithoutEnvironmentServerError(ConfigError, ValueError):
    """An agent that no environment server fronts."""


class AmbiguousEnvironmentServerError(ConfigError, ValueError):
    """An agent that several environment servers front, where one is needed."""


class AmbiguousAgentRenameError(ConfigError, ValueError):
    """Several blocks that claim the same agent by a move operator."""


class AgentCompositionError(ConfigError, ValueError):
    """A standalone agent that cannot be bound: none, several, or nothing to bind to."""


class UnsupportedAgentPairingError(ConfigError, ValueError):
    """A verifier that does not admit the agent type."""


class UnsupportedModelPairingError(ConfigError, ValueError):
    """A verifier that does not admit the policy model's type."""


class UnsupportedAgentOverrideError(ConfigError, ValueError):
    """An override of a standalone agent that cannot be applied to what it was composed into."""


class SandboxConfigError(ConfigError, ValueError):
    """A block about sandboxes that names no provider, several, or one that nobody registered."""


class ScaffoldConflictError(ConfigError, ValueError):
    """Files that a scaffold would write are there with other contents; they are named, and nothing was written."""


class TaskDataSchemaError(ConfigError, ValueError):
    """A `task_data.py` that cannot be imported, or whose `TaskData` is no schema of fields."""


class VerifierFixtureError(ConfigError, ValueError):
    """Cases that cannot be read, or a verifier that does not do what they say."""


class InputError(ConfigError, ValueError):
    """A dataset that cannot be planned; names the file and the physical lines."""


class RunError(RollbookError, RuntimeError):
    """A run that cannot start, or cannot end well; `result` is what it came to all the same, if anything."""

    result: object | None = None


class NoRunError(RunError):
    """Nothing where a run was named, or a file that is of no run."""

    exit_code = 2


class OutputExistsError(RunError):
    """The output path holds an earlier run, and neither `--resume` nor `--overwrite` was given."""


class NothingProducedError(RunError):
    """Every dispatched rollout ended without a result."""


class RunStoppedError(RunError):
    """A run that was told to stop before it had sent anything."""


class UnroutedRunError(RunError):
    """A `/run` failed in a run that does not route failures to the sidecar."""


class IncompleteEvaluationError(RunError):
    """A run that was to be complete, or to stay within limits of what may be missing, and did not.

    `retryable`: whether a resume would run anything; `made_progress`: whether this invocation saved an outcome that
    is no interruption. Both are for whoever starts runs anew.
    """

    exit_code = 4

    def __init__(self, message: str, *, retryable: bool = False, made_progress: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.made_progress = made_progress


class EarlyStopError(IncompleteEvaluationError):
    """A run that ended because more attempts were of no use; `resumable`: whether a resume may help as things are."""

    def __init__(self, why: str, *, resumable: bool, made_progress: bool = False) -> None:
        super().__init__(why, retryable=resumable, made_progress=made_progress)
        self.resumable = resumable


class ResumeRefusedError(RunError):
    """A resume that would mix answers, or rewards, of two settings; names every key that differs."""


class LedgerError(RunError):
    """A ledger file that could not be written or read."""


class DamagedRunError(LedgerError):
    """Files of a run that cannot all be right: a line that is no record, lost bytes, records of another run."""

    exit_code = 5


class ShardTakenOverError(LedgerError):
    """A shard that another call opened after the one that writes it; names the shard."""


class ServingError(RollbookError, RuntimeError):
    """Servers that did not start, died, or cannot be found."""


class ServerDiedError(ServingError):
    """A server process that ended on its own."""


class PortTakenError(ServingError):
    """A port that another program holds."""


class EndpointNotReadyError(ServingError):
    """A model endpoint that did not answer in time."""


class HeadServerUnreachableError(ServingError, ValueError):
    """The head server of a deployment does not answer."""


class PermanentEndpointError(ServingError):
    """A model endpoint that refused for good: a key that is not valid, or a budget that is spent."""


class MissingPackageError(ServingError):
    """A component whose own packages are not installed; names the `pip install` line."""


class ShadowedPackageError(RollbookError, ImportError):
    """An installed distribution that another one of the same import name would hide."""


class HubError(RollbookError):
    """A data set that could not be fetched from the Hugging Face hub, or published there; no half file is left."""


class JudgeError(RollbookError):
    """A judge model that could not be asked, or whose answer was no response."""


class SandboxError(RollbookError, RuntimeError):
    """A sandbox that cannot be had or used."""


class SandboxCreateError(SandboxError):
    """A sandbox that was not made, or cannot be reached."""


class SandboxCreateVerificationError(SandboxCreateError):
    """A sandbox that was made and is not what was asked for."""


class SandboxPathError(SandboxError, ValueError):
    """A path that leads out of the sandbox, or that is no file."""


class SandboxPtyError(SandboxError):
    """A terminal of a sandbox that cannot be opened, or is gone."""
