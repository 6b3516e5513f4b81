// Computes note hashes: `note_hash vectors.json` (`/docs/note-hash/vectors.json`)
//
// Cargo.toml: `blake3 = "1"`, `serde_json = "1"`

use std::error::Error;

use serde_json::Value;

/// A note, with its times in microseconds. A tap has no end.
struct Note {
    start: i64,
    column: u8,
    end: Option<i64>,
}

/// The note hash; `None` for a chart without notes, or with a time that does not fit.
fn note_hash(keys: u8, notes: &[Note]) -> Option<String> {
    let first = notes.iter().map(|note| note.start).min()?;
    let milliseconds = |time: i64| (time - first + 500).div_euclid(1000);
    let mut canonical = Vec::new();
    for note in notes {
        let start = milliseconds(note.start);
        // A long note whose end is not after its start is a tap.
        let end = note.end.map(milliseconds).filter(|end| *end > start);
        let (start, end_ms) = (u32::try_from(start).ok()?, u32::try_from(end.unwrap_or(0)).ok()?);
        canonical.push((start, note.column, u8::from(end.is_some()), end_ms));
    }
    canonical.sort_unstable();
    let mut data = vec![keys];
    for (start, column, is_long, end) in canonical {
        data.extend(start.to_le_bytes());
        data.extend([column, is_long]);
        if is_long == 1 {
            data.extend(end.to_le_bytes());
        }
    }
    Some(blake3::hash(&data).to_hex().to_string())
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file with the vectors")?;
    let document: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    for vector in document["vectors"].as_array().into_iter().flatten() {
        let mut notes = Vec::new();
        for note in vector["notes"].as_array().into_iter().flatten() {
            let column = u8::try_from(note["column"].as_u64().ok_or("a column")?)?;
            let start = note["startUs"].as_i64().ok_or("a start")?;
            notes.push(Note { start, column, end: note["endUs"].as_i64() });
        }
        let keys = u8::try_from(vector["keys"].as_u64().ok_or("a key count")?)?;
        let hash = note_hash(keys, &notes).ok_or("the chart has no hash")?;
        println!("{hash} {}", vector["name"].as_str().unwrap_or_default());
    }
    Ok(())
}
