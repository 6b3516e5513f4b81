"""What hashing finds in local files."""

from typing import NotRequired, TypedDict, final


@final
class LocalChart(TypedDict):
    """A chart of a file."""

    file: str
    """The path of the file. In an archive, that of the archive and that in it."""
    hash: str
    """The note hash, which identifies the chart."""
    noteHashVersion: int
    variant: NotRequired[str]
    """What the chart has in common with its conversions, unless it has too few rows."""
    variantVersion: NotRequired[int]
    keys: int
    title: str
    artist: str
    creator: str
    difficulty: str


@final
class RefusedFile(TypedDict):
    """A file or chart without a note hash."""

    file: str
    """The path of the file. In an archive, that of the archive and that in it."""
    chart: NotRequired[str]
    """The chart, if other charts of the file have a hash."""
    kind: str
    """Why, without details, such as no_notes."""
    reason: str
    """Why, with details."""
