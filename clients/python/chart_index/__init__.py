"""Client of a chart index: hashes chart files, and looks them up.

The Rust crate ``chart-index-client`` does the work: the readers of chart files, the pauses, the batches and the
cache of responses are the same. Responses are dictionaries, which ``chart_index.types`` describes.
"""

from ._errors import ChartIndexError
from ._native import ChartIndex, Chartsets, HashedFolder, HashFilter, hash_file, hash_folder

__all__ = [
    "ChartIndex",
    "ChartIndexError",
    "Chartsets",
    "HashFilter",
    "HashedFolder",
    "hash_file",
    "hash_folder",
]
