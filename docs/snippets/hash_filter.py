"""Tells which note hashes an index may know: python3 hash_filter.py filter.bin < hashes.txt

curl -L -o filter.bin "$BASE/api/charts/filter"
"""

import struct
import sys

HEADER = struct.Struct("<4sIQQQIII")
MASK = 0xFFFFFFFFFFFFFFFF


class HashFilter:
    def __init__(self, data):
        (magic, version, self.sequence, self.count, self.seed,
         self.segment_length, self.segment_count_length, length) = HEADER.unpack_from(data)
        self.fingerprints = data[HEADER.size:]
        if magic != b"CIHF" or version != 1 or len(self.fingerprints) != length:
            raise ValueError("no hash filter of version 1")

    def may_contain(self, note_hash):
        """False if the index did not know the hash at `sequence`."""
        mixed = int.from_bytes(bytes.fromhex(note_hash[:16]), "little") + self.seed & MASK
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed = (mixed ^ mixed >> 33) * factor & MASK
        mixed ^= mixed >> 33
        mask = self.segment_length - 1
        first = mixed * self.segment_count_length >> 64
        second = first + self.segment_length ^ (mixed >> 18 & mask)
        third = first + 2 * self.segment_length ^ (mixed & mask)
        found = self.fingerprints[first] ^ self.fingerprints[second] ^ self.fingerprints[third]
        return found == (mixed ^ mixed >> 32) & 0xFF


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        hash_filter = HashFilter(file.read())
    for line in sys.stdin:
        print(line.strip(), "maybe" if hash_filter.may_contain(line) else "unknown")
