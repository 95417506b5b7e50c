"""A model server that runs a small model on this machine: a GGUF file behind llama.cpp's own server.

Rules:
* The model is loaded when this server starts or, where it is served without a start of its own, on the first call.
* A program that is missing is named with what to install; nothing is installed or fetched.
* What is asked and answered is converted exactly as `vllm_model` does it.

Source: ours; the conversion is that of servers.md §5.2 and servers.md §5.4.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from pydantic import Field, PrivateAttr

from responses_api_models.local_llama_model.process import (
    LlamaCommand,
    LlamaProcess,
    find_binary,
    model_file,
    server_arguments,
)
from responses_api_models.vllm_model.app import VLLMModel
from responses_api_models.vllm_model.model_config import VLLMModelConfig
from rollbook import NeMoGymAsyncOpenAI


class LocalLlamaModelConfig(VLLMModelConfig):
    """A GGUF file and how to serve it; sizes in tokens per slot, times in seconds. Keys of `vllm_model` hold too."""

    model_path: str
    llama_server_path: str | None = None
    startup_timeout_seconds: float = Field(default=120.0, gt=0)
    context_size: int = Field(default=4096, ge=1)
    parallel_slots: int = Field(default=4, ge=1)
    threads: int | None = Field(default=None, ge=1)
    llama_server_args: list[str] = Field(default_factory=list)

    base_url: str | list[str] = "http://127.0.0.1/started-by-this-server"
    api_key: str = Field(default="local", repr=False)
    model: str = "local"
    return_token_id_information: bool = False
    uses_reasoning_parser: bool = True


class LocalLlamaModel(VLLMModel):
    """A `vllm_model` whose endpoint this server starts and stops."""

    config: LocalLlamaModelConfig

    _process: LlamaProcess | None = PrivateAttr(default=None)
    _client: NeMoGymAsyncOpenAI | None = PrivateAttr(default=None)

    def setup_webserver(self) -> FastAPI:
        """The application, which loads the model when it starts and unloads it when it stops."""
        app = super().setup_webserver()
        app.router.lifespan_context = self._lifespan
        return app

    @asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        try:
            await self.process.base_url()
            yield
        finally:
            await self.stop()

    @property
    def process(self) -> LlamaProcess:
        """The child process, not necessarily started.

        Raises:
            MissingPackageError: there is no llama-server.
            ConfigError: there is no model file.

        """
        if self._process is None:
            config = self.config
            arguments = server_arguments(
                config.context_size, config.parallel_slots, config.threads, config.llama_server_args
            )
            command = LlamaCommand(find_binary(config.llama_server_path), model_file(config.model_path), arguments)
            self._process = LlamaProcess(command, config.startup_timeout_seconds)
        return self._process

    async def _client_of(self, request: Request) -> NeMoGymAsyncOpenAI:
        del request
        base_url = await self.process.base_url()
        if self._client is None or self._client.base_url != base_url:
            attempts = self.config.max_http_attempts
            self._client = NeMoGymAsyncOpenAI(
                base_url=base_url, api_key=self.config.api_key, max_http_attempts=attempts
            )
        return self._client

    async def stop(self) -> None:
        """Unload the model, if it is loaded."""
        if self._process is not None:
            await asyncio.to_thread(self._process.stop)


if __name__ == "__main__":
    LocalLlamaModel.run_webserver()
