//! Limits on the time and memory that decoding one file can take, checked before the decoder runs.
//!
//! The decoder is linear in its input, apart from a few quadratic cases for which a hostile file of a few MiB
//! could take hours. Each function names its cases. The limits are at least twenty times what any known real
//! file needs.

use crate::Refusal;

/// The maximum number of nodes of a YAML file, each of which the parser stores as an event of about 100 bytes.
/// A chart of 100,000 notes has about a million.
const MAX_YAML_NODES: usize = 3_000_000;

/// The maximum nesting depth of flow collections in a YAML file. Charts have one level.
const MAX_YAML_DEPTH: usize = 100;

/// The maximum number of bytes to which the aliases of a YAML file may expand, in the worst case.
const MAX_YAML_REPEATED: usize = 4 * 1024 * 1024;

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
