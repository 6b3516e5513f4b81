//! The messages that invalidate responses: a version byte, then the keys.

use crate::CacheKey;

const VERSION: u8 = 1;

/// The channel of the caches with this key prefix.
pub(crate) fn channel(key_prefix: &str) -> String {
    format!("{key_prefix}invalidate")
}

/// The message that invalidates these keys.
pub(crate) fn encode(keys: &[CacheKey]) -> Vec<u8> {
    let mut message = Vec::with_capacity(1 + keys.len() * CacheKey::MESSAGE_BYTES);
    message.push(VERSION);
    for key in keys {
        key.write_to_message(&mut message);
    }
    message
}

/// The keys in a message; `None` if its version or its format is unknown.
pub(crate) fn decode(message: &[u8]) -> Option<Vec<CacheKey>> {
    let (&VERSION, keys) = message.split_first()? else { return None };
    let (keys, rest) = keys.as_chunks();
    if rest.is_empty() { keys.iter().map(CacheKey::from_message).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;

    #[test]
    fn message_round_trips() {
        let keys = CacheKey::all_of_chart(NoteHash::from_bytes([5; 32]));
        assert_eq!(decode(&encode(&keys)), Some(keys.to_vec()));
        assert_eq!(decode(&encode(&[])), Some(vec![]));
    }

    #[test]
    fn unknown_message_is_not_decoded() {
        let mut message = encode(&CacheKey::all_of_chart(NoteHash::from_bytes([5; 32])));
        assert_eq!(decode(&message[..20]), None);
        message[0] += 1;
        assert_eq!(decode(&message), None);
        assert_eq!(decode(b""), None);
    }
}
