"""Episodes as they travel: identity, task, result, failure."""

from rollbook import (
    BaseEpisodeRequest as BaseEpisodeRequest,
    BaseEpisodeResponse as BaseEpisodeResponse,
    EpisodeFailure as EpisodeFailure,
    EpisodeId as EpisodeId,
    MaterializedTask as MaterializedTask,
    TaskId as TaskId,
)
