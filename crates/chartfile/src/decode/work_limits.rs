//! Limits on the time and memory that decoding one file can take, checked before the decoder runs.
//!
//! The decoder is linear in its input, apart from a few quadratic cases for which a hostile file of a few MiB
//! could take hours. Each function names its cases. The limits are at least twenty times what any known real
//! file needs.

use rox::formats::sm::msd::{Tag, tokenize};
use rox::formats::sm::types::{SmNote, SmNoteType};

use crate::Refusal;

/// The maximum number of charts of a simfile. Real ones have up to about 30.
const MAX_CHARTS: usize = 300;

/// The maximum number of notes of all charts of a simfile together, of which the decoder holds several copies.
const MAX_SIMFILE_NOTES: usize = 2_000_000;

/// The maximum number of tags and parameters of a simfile, each of which the tokenizer stores as a string. Real
/// ones have a few thousand.
const MAX_SIMFILE_PARAMETERS: usize = 500_000;

/// The maximum number of steps of a quadratic case: about a second.
const MAX_STEPS: usize = 100_000_000;

/// The maximum number of nodes of a YAML file, each of which the parser stores as an event of about 100 bytes.
/// A chart of 100,000 notes has about a million.
const MAX_YAML_NODES: usize = 3_000_000;

/// The maximum nesting depth of flow collections in a YAML file. Charts have one level.
const MAX_YAML_DEPTH: usize = 100;

/// The maximum number of bytes to which the aliases of a YAML file may expand, in the worst case.
const MAX_YAML_REPEATED: usize = 4 * 1024 * 1024;

/// Tokenizes a simfile into its tags, with a limit for the memory that tags and parameters take.
pub(super) fn tokenize_simfile(text: &str) -> Result<Vec<Tag>, Refusal> {
    if text.bytes().filter(|byte| matches!(byte, b'#' | b':')).count() > MAX_SIMFILE_PARAMETERS {
        return Err(Refusal::LimitExceeded { what: "tags" });
    }
    Ok(tokenize(text))
}

/// Checks a simfile: the decoder copies the timing of the song for each chart, and searches the list of fake
/// regions for each row of notes.
pub(super) fn check_simfile(tags: &[Tag]) -> Result<(), Refusal> {
    let named = |name: &'static str| tags.iter().filter(move |tag| tag.name == name);
    let charts = named("NOTES").count().max(named("NOTEDATA").count());
    if charts > MAX_CHARTS {
        return Err(Refusal::LimitExceeded { what: "charts" });
    }
    let most_entries = |name| named(name).map(|tag| count_byte(tag, b'=')).max().unwrap_or(0);
    let fakes = most_entries("FAKES");
    let timing = fakes + ["BPMS", "STOPS", "DELAYS", "WARPS"].map(most_entries).iter().sum::<usize>();
    // Sorting n entries takes up to n * log2(n) steps, with a logarithm of about 20.
    if timing.saturating_mul(charts + 1).saturating_mul(20) > MAX_STEPS {
        return Err(Refusal::LimitExceeded { what: "timing changes" });
    }
    let measures = || named("NOTES").chain(named("NOTES2"));
    let rows: usize = measures().map(|tag| count_byte(tag, b'\n') + 1).sum();
    if rows.saturating_mul(fakes) > MAX_STEPS {
        return Err(Refusal::LimitExceeded { what: "fake regions" });
    }
    if measures().map(note_count).sum::<usize>() > MAX_SIMFILE_NOTES {
        return Err(Refusal::LimitExceeded { what: "notes" });
    }
    Ok(())
}

fn count_byte(tag: &Tag, byte: u8) -> usize {
    tag.params.iter().flat_map(|part| part.bytes()).filter(|&each| each == byte).count()
}

fn note_count(tag: &Tag) -> usize {
    let measures = tag.params.iter().flat_map(|part| part.bytes());
    measures.filter(|byte| matches!(byte, b'1'..=b'4' | b'L' | b'l' | b'M' | b'm')).count()
}

/// Checks a chart of a simfile: for the tail of each long note, the decoder searches the heads without a tail.
pub(super) fn check_open_holds(notes: &[SmNote]) -> Result<(), Refusal> {
    let (mut open, mut steps) = (0_usize, 0_usize);
    for note in notes {
        match note.note_type {
            SmNoteType::HoldHead | SmNoteType::RollHead => open += 1,
            SmNoteType::Tail => {
                steps = steps.saturating_add(open);
                open = open.saturating_sub(1);
            }
            _ => {}
        }
    }
    if steps > MAX_STEPS { Err(Refusal::LimitExceeded { what: "open long notes" }) } else { Ok(()) }
}

/// Checks a YAML file: each node takes memory, each token takes time for each level of nested flow collections,
/// and each alias repeats the node that it refers to.
pub(super) fn check_yaml(text: &str) -> Result<(), Refusal> {
    let (mut nodes, mut depth, mut deepest) = (0_usize, 0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
                nodes += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' | b',' | b':' => nodes += 1,
            _ => {}
        }
    }
    if nodes > MAX_YAML_NODES {
        return Err(Refusal::LimitExceeded { what: "YAML nodes" });
    }
    if deepest > MAX_YAML_DEPTH {
        return Err(Refusal::LimitExceeded { what: "YAML nesting" });
    }
    let aliases = count_marks(text, b'*');
    if count_marks(text, b'&') > 0 && aliases.saturating_mul(text.len()) > MAX_YAML_REPEATED {
        return Err(Refusal::LimitExceeded { what: "YAML aliases" });
    }
    Ok(())
}

/// Counts `mark` where YAML may read an anchor or an alias: at the start of a word. Plain text that looks like
/// one is counted, too, which only a chart of several MiB with stars in its names would notice.
fn count_marks(text: &str, mark: u8) -> usize {
    let starts_word = |pair: &&[u8]| {
        pair[1] == mark
            && (pair[0].is_ascii_whitespace() || matches!(pair[0], b'[' | b'{' | b',' | b':' | b'-'))
    };
    text.as_bytes().windows(2).filter(starts_word).count()
}
