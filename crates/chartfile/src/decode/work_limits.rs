//! Bounds on the work that one file can cause, checked before the decoder begins.
//!
//! The decoder is linear in its input but for a few corners, which a hostile file of a few MiB can turn into
//! hours. Each function names its corner. The limits are at least twenty times what any known real file needs.

use rox::formats::sm::msd::{Tag, tokenize};
use rox::formats::sm::types::{SmNote, SmNoteType};

use crate::Refusal;

/// The most charts of one simfile. Real ones have up to about 30.
const MAX_CHARTS: usize = 300;

/// The most notes of all charts of one simfile together, of which the decoder keeps several copies.
const MAX_SIMFILE_NOTES: usize = 2_000_000;

/// The most tags and parameters of one simfile, of which the tokenizer keeps each as a string. Real ones have
/// some thousands.
const MAX_SIMFILE_PARAMETERS: usize = 500_000;

/// The most steps of any one quadratic corner: about a second.
const MAX_STEPS: usize = 100_000_000;

/// The most nodes of a YAML file, of which the parser keeps each as an event of about a hundred bytes. A chart of
/// 100,000 notes has about a million.
const MAX_YAML_NODES: usize = 3_000_000;

/// The deepest nesting of flow collections in a YAML file. Charts have one level.
const MAX_YAML_DEPTH: usize = 100;

/// The most bytes that the aliases of a YAML file may repeat, at worst.
const MAX_YAML_REPEATED: usize = 4 * 1024 * 1024;

/// The tags of a simfile, each of which takes memory, as does each parameter.
pub(super) fn simfile_tags(text: &str) -> Result<Vec<Tag>, Refusal> {
    if text.bytes().filter(|byte| matches!(byte, b'#' | b':')).count() > MAX_SIMFILE_PARAMETERS {
        return Err(Refusal::TooMuchWork { what: "tags" });
    }
    Ok(tokenize(text))
}

/// Simfiles: each chart copies the timing of its song; each row of notes is looked up in the list of fake regions.
pub(super) fn check_simfile(tags: &[Tag]) -> Result<(), Refusal> {
    let of = |name: &'static str| tags.iter().filter(move |tag| tag.name == name);
    let charts = of("NOTES").count().max(of("NOTEDATA").count());
    if charts > MAX_CHARTS {
        return Err(Refusal::TooMuchWork { what: "charts" });
    }
    let most_entries = |name| of(name).map(|tag| count(tag, b'=')).max().unwrap_or(0);
    let fakes = most_entries("FAKES");
    let timing = fakes + ["BPMS", "STOPS", "DELAYS", "WARPS"].map(most_entries).iter().sum::<usize>();
    // 20 steps for sorting, which takes the logarithm.
    if timing.saturating_mul(charts + 1).saturating_mul(20) > MAX_STEPS {
        return Err(Refusal::TooMuchWork { what: "timing" });
    }
    let measures = || of("NOTES").chain(of("NOTES2"));
    let rows: usize = measures().map(|tag| count(tag, b'\n') + 1).sum();
    if rows.saturating_mul(fakes) > MAX_STEPS {
        return Err(Refusal::TooMuchWork { what: "fake regions" });
    }
    if measures().map(note_count).sum::<usize>() > MAX_SIMFILE_NOTES {
        return Err(Refusal::TooMuchWork { what: "notes" });
    }
    Ok(())
}

fn count(tag: &Tag, byte: u8) -> usize {
    tag.params.iter().flat_map(|part| part.bytes()).filter(|&each| each == byte).count()
}

fn note_count(tag: &Tag) -> usize {
    let measures = tag.params.iter().flat_map(|part| part.bytes());
    measures.filter(|byte| matches!(byte, b'1'..=b'4' | b'L' | b'l' | b'M' | b'm')).count()
}

/// Simfiles: the tail of each long note is looked up in the list of the heads that are still open.
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
    if steps > MAX_STEPS { Err(Refusal::TooMuchWork { what: "open long notes" }) } else { Ok(()) }
}

/// YAML: memory for each node, time for each level of flow collections at each token, and aliases, each of which
/// repeats what it stands for.
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
        return Err(Refusal::TooMuchWork { what: "yaml nodes" });
    }
    if deepest > MAX_YAML_DEPTH {
        return Err(Refusal::TooMuchWork { what: "nested yaml" });
    }
    let aliases = marks(text, b'*');
    if marks(text, b'&') > 0 && aliases.saturating_mul(text.len()) > MAX_YAML_REPEATED {
        return Err(Refusal::TooMuchWork { what: "yaml aliases" });
    }
    Ok(())
}

/// How often `mark` stands where YAML reads an anchor or an alias: at the start of a word. Text that only looks
/// like one is counted too, which takes a chart of several MiB with stars in its name to matter.
fn marks(text: &str, mark: u8) -> usize {
    let starts_word = |pair: &&[u8]| {
        pair[1] == mark
            && (pair[0].is_ascii_whitespace() || matches!(pair[0], b'[' | b'{' | b',' | b':' | b'-'))
    };
    text.as_bytes().windows(2).filter(starts_word).count()
}
