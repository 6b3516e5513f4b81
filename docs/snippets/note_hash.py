"""Computes note hashes or variants: python3 note_hash.py vectors.json   (/docs/note-hash/vectors.json)"""

import json
import struct
import sys

# BLAKE3 without its key and derivation modes: https://github.com/BLAKE3-team/BLAKE3-specs. The package `blake3`
# is faster.
IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
COLUMNS_AND_DIAGONALS = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                         (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
MASK = 0xFFFFFFFF


def compress(chaining, words, counter, length, flags):
    v = chaining + IV[:4] + [counter & MASK, counter >> 32, length, flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(COLUMNS_AND_DIAGONALS):
            for word, turn, last in ((words[2 * i], 16, 12), (words[2 * i + 1], 8, 7)):
                v[a] = (v[a] + v[b] + word) & MASK
                v[d] = rotate(v[d] ^ v[a], turn)
                v[c] = (v[c] + v[d]) & MASK
                v[b] = rotate(v[b] ^ v[c], last)
        words = [words[i] for i in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]


def rotate(word, bits):
    return word >> bits | word << (32 - bits) & MASK


def blake3(data, chunk=0, root=ROOT):
    if len(data) <= 1024:
        chaining, end = IV, max(len(data) - 1, 0) // 64
        for i in range(end + 1):
            block = data[64 * i:64 * i + 64]
            flags = (CHUNK_START if i == 0 else 0) | (CHUNK_END | root if i == end else 0)
            words = list(struct.unpack("<16I", block.ljust(64, b"\0")))
            chaining = compress(chaining, words, chunk, len(block), flags)
        return chaining
    left = 1024
    while 2 * left < len(data):
        left *= 2
    children = blake3(data[:left], chunk, 0) + blake3(data[left:], chunk + left // 1024, 0)
    return compress(IV, children, 0, 64, PARENT | root)


def digest(data):
    return struct.pack("<8I", *blake3(data)).hex()


def canonical(notes):
    """The ordered (start, column, kind, end) in milliseconds of (start, column, end) in microseconds.

    The end of a tap is None, and becomes 0.
    """
    first = min(start for start, _, _ in notes)

    def milliseconds(time):
        return (time - first + 500) // 1000

    ordered = []
    for start, column, end in notes:
        start, end = milliseconds(start), milliseconds(start if end is None else end)
        is_long = end > start  # a long note whose end is not after its start is a tap
        ordered.append((start, column, int(is_long), end if is_long else 0))
    return sorted(ordered)


def note_hash(keys, notes):
    """The note hash of canonical notes."""
    data = bytes([keys])
    for start, column, is_long, end in notes:
        data += struct.pack("<IBB", start, column, is_long) + (struct.pack("<I", end) if is_long else b"")
    return digest(data)


def variant(keys, notes):
    """The variant of canonical notes, of which start and column count; None for too few or too similar rows."""
    rows, previous = bytearray(), None
    for start, column, *_ in notes:
        if previous is not None and start - previous <= 3:
            rows[-1] |= 1 << column
        else:
            rows.append(1 << column)
        previous = start
    windows = {bytes(rows[i:i + 4]) for i in range(len(rows) - 3)}
    if len(rows) < 32 or len(windows) < 16:
        return None
    return digest(bytes([1, keys]) + rows)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    for vector in document["vectors"]:
        keys, notes = vector["keys"], vector["notes"]
        if "variantVersion" in document:  # notes are [start, column] in milliseconds
            print(variant(keys, notes) or "none", vector["name"])
        else:
            notes = [(note["startUs"], note["column"], note.get("endUs")) for note in notes]
            print(note_hash(keys, canonical(notes)), vector["name"])
