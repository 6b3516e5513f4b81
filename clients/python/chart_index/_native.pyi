from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, Unpack, final

from .files import LocalChart, RefusedFile
from .types import BatchLookupItem, ChartLookup, ChartPreview, ChartReference
from .types import Chartset, ChartsetDetail, SearchFilters

__all__ = ["ChartIndex", "Chartsets", "HashFilter", "HashedFolder", "hash_file", "hash_folder"]

_Include = Literal["variants", "rating", "patterns", "chartsets", "links"]

class _Cache(Protocol):
    def get(self, url: str, /) -> tuple[str, bytes] | None: ...
    def __setitem__(self, url: str, response: tuple[str, bytes], /) -> None: ...

@final
class ChartIndex:
    """The index at a base address such as https://charts.example.

    The User-Agent has a way to reach you: my-client/1.0 (me@example.org). Requests that are refused with 429,
    502, 503 or 504 are repeated up to max_retries times, for max_wait seconds in total, after the pause that
    the index asks for, or after one that doubles. on_pause is called with the status and the seconds of each
    pause.

    Responses are cached in memory, or in a mapping such as shelve.open("cache"), and requested again with their
    ETag.
    """

    def __new__(
        cls,
        base: str,
        user_agent: str,
        *,
        cache: _Cache | None = None,
        max_retries: int = 10,
        max_wait: float = 600.0,
        on_pause: Callable[[int, float], object] | None = None,
    ) -> ChartIndex: ...
    def get(self, path: str) -> Any:
        """The JSON at a path such as /api/changes, for endpoints that have no method of their own."""
    def get_bytes(self, path: str) -> bytes:
        """The body at a path. Redirects are followed."""
    def lookup(self, hash: str, *, include: Sequence[_Include] | None = None) -> ChartLookup:
        """Looks up a chart by its note hash. An unknown chart is no error."""
    def lookup_many(
        self, charts: Iterable[str | ChartReference], *, include: Sequence[_Include] | None = None
    ) -> list[BatchLookupItem]:
        """Looks up any number of charts, and returns an item for each, in their order.

        A chart is a note hash, or a dictionary with its md5 or alphaBeatmapId, or with hash and variant.
        """
    def search(self, **filters: Unpack[SearchFilters]) -> Chartsets:
        """The chartsets that match, in the order of sort. They are read page by page."""
    def chartset(
        self, id: str, *, include: Sequence[_Include | Literal["updated"]] | None = None
    ) -> ChartsetDetail:
        """A chartset with its charts."""
    def rox(self, hash: str) -> bytes:
        """The ROX file of a chart."""
    def preview(self, hash: str) -> ChartPreview:
        """The notes and the timing of a chart."""
    def hash_filter(self) -> HashFilter | None:
        """The newest hash filter; None if the index has none."""

@final
class Chartsets(Iterator[Chartset]):
    """The chartsets of a search."""

    def __iter__(self) -> Chartsets: ...
    def __next__(self) -> Chartset: ...

@final
class HashFilter:
    """The charts that an index may know: `hash in hash_filter` is wrong for one in 256 unknown charts."""

    def __new__(cls, content: bytes, /) -> HashFilter: ...
    @property
    def sequence(self) -> int:
        """The sequence of the change feed at which it has every known chart."""
    def __len__(self) -> int: ...
    def __contains__(self, hash: str, /) -> bool: ...

@final
class HashedFolder(Iterator[LocalChart | RefusedFile]):
    """The charts of a folder."""

    def __iter__(self) -> HashedFolder: ...
    def __next__(self) -> LocalChart | RefusedFile: ...

def hash_file(name: str, content: bytes, /) -> list[LocalChart | RefusedFile]:
    """Hashes the charts of a chart file or an archive with this name."""

def hash_folder(path: str | PathLike[str], /) -> HashedFolder:
    """Hashes the chart files and archives at or below a path, in the order of their names, one by one."""
