// Computes note hashes: NoteHash vectors.json   (/docs/note-hash/vectors.json; Mono, on which tests run it; .NET 6 has the same classes)
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.Serialization;
using System.Runtime.Serialization.Json;

[DataContract] class Note {
    [DataMember(Name = "startUs")] public long StartUs;
    [DataMember(Name = "column")] public byte Column;
    [DataMember(Name = "endUs")] public long? EndUs; // a tap has none
}
[DataContract] class Vector {
    [DataMember(Name = "name")] public string Name;
    [DataMember(Name = "keys")] public byte Keys;
    [DataMember(Name = "notes")] public List<Note> Notes;
}
[DataContract] class Vectors { [DataMember(Name = "vectors")] public List<Vector> All; }

/// BLAKE3 without its key and derivation modes: https://github.com/BLAKE3-team/BLAKE3-specs. The package `Blake3` is faster.
static class Blake3 {
    static readonly uint[] Iv = {
        0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19 };
    static readonly int[] Permutation = { 2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8 };
    static readonly int[][] ColumnsAndDiagonals = {
        new[] { 0, 4, 8, 12 }, new[] { 1, 5, 9, 13 }, new[] { 2, 6, 10, 14 }, new[] { 3, 7, 11, 15 },
        new[] { 0, 5, 10, 15 }, new[] { 1, 6, 11, 12 }, new[] { 2, 7, 8, 13 }, new[] { 3, 4, 9, 14 } };
    const uint ChunkStart = 1, ChunkEnd = 2, Parent = 4, Root = 8;

    static uint Rotate(uint word, int bits) { return word >> bits | word << (32 - bits); }

    static uint[] Compress(uint[] chaining, uint[] words, uint counter, uint length, uint flags) {
        var v = chaining.Concat(Iv.Take(4)).Concat(new[] { counter, 0u, length, flags }).ToArray();
        for (var round = 0; round < 7; round++) {
            for (var i = 0; i < 8; i++) {
                int a = ColumnsAndDiagonals[i][0], b = ColumnsAndDiagonals[i][1];
                int c = ColumnsAndDiagonals[i][2], d = ColumnsAndDiagonals[i][3];
                for (var half = 0; half < 2; half++) {
                    v[a] = unchecked(v[a] + v[b] + words[2 * i + half]);
                    v[d] = Rotate(v[d] ^ v[a], half == 0 ? 16 : 8);
                    v[c] = unchecked(v[c] + v[d]);
                    v[b] = Rotate(v[b] ^ v[c], half == 0 ? 12 : 7);
                }
            }
            words = Permutation.Select(i => words[i]).ToArray();
        }
        return Enumerable.Range(0, 8).Select(i => v[i] ^ v[i + 8]).ToArray();
    }

    static uint[] Tree(byte[] data, uint chunk, uint root) {
        if (data.Length > 1024) {
            var left = 1024;
            while (2 * left < data.Length) left *= 2;
            var one = Tree(data.Take(left).ToArray(), chunk, 0);
            var other = Tree(data.Skip(left).ToArray(), chunk + (uint)left / 1024, 0);
            return Compress(Iv, one.Concat(other).ToArray(), 0, 64, Parent | root);
        }
        var chaining = Iv;
        var end = Math.Max(data.Length - 1, 0) / 64;
        for (var i = 0; i <= end; i++) {
            var block = new byte[64];
            var length = Math.Min(64, data.Length - 64 * i);
            Array.Copy(data, 64 * i, block, 0, length);
            var words = Enumerable.Range(0, 16).Select(word => BitConverter.ToUInt32(block, 4 * word)).ToArray();
            var flags = (i == 0 ? ChunkStart : 0) | (i == end ? ChunkEnd | root : 0);
            chaining = Compress(chaining, words, chunk, (uint)length, flags);
        }
        return chaining;
    }

    public static string Hash(byte[] data) {
        var digest = Tree(data, 0, Root).SelectMany(BitConverter.GetBytes); // on a little-endian machine
        return string.Concat(digest.Select(value => value.ToString("x2")));
    }
}

static class NoteHash {
    static string Of(byte keys, List<Note> notes) {
        var first = notes.Min(note => note.StartUs);
        Func<long, long> milliseconds = time => (time - first + 500) / 1000;
        var times = notes.Select(note => new {
            Start = milliseconds(note.StartUs), note.Column, End = milliseconds(note.EndUs ?? note.StartUs),
        });
        var canonical = times.Select(note => new {
            Start = checked((uint)note.Start),
            note.Column,
            // A long note whose end is not after its start is a tap.
            IsLong = (byte)(note.End > note.Start ? 1 : 0),
            End = note.End > note.Start ? checked((uint)note.End) : 0,
        });
        var data = new List<byte> { keys };
        foreach (var note in canonical.OrderBy(n => n.Start).ThenBy(n => n.Column).ThenBy(n => n.IsLong).ThenBy(n => n.End)) {
            data.AddRange(BitConverter.GetBytes(note.Start));
            data.Add(note.Column);
            data.Add(note.IsLong);
            if (note.IsLong == 1) data.AddRange(BitConverter.GetBytes(note.End));
        }
        return Blake3.Hash(data.ToArray());
    }

    static void Main(string[] arguments) {
        var serializer = new DataContractJsonSerializer(typeof(Vectors));
        using (var file = File.OpenRead(arguments[0])) {
            foreach (var vector in ((Vectors)serializer.ReadObject(file)).All) {
                Console.WriteLine(Of(vector.Keys, vector.Notes) + " " + vector.Name);
            }
        }
    }
}
