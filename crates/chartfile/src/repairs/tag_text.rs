//! Serialises the tags of a simfile after a repair.

use rox::formats::sm::msd::Tag;

/// The text that the decoder tokenizes into exactly these tags.
pub(super) fn to_text(tags: &[Tag]) -> String {
    let mut text = String::new();
    for tag in tags {
        text.push('#');
        push_escaped(&mut text, &tag.name);
        for parameter in &tag.params {
            text.push(':');
            push_escaped(&mut text, parameter);
        }
        text.push_str(";\n");
    }
    text
}

/// Escapes what would end a parameter or a tag, or start a comment.
fn push_escaped(text: &mut String, part: &str) {
    for character in part.chars() {
        if matches!(character, '\\' | ':' | ';' | '#' | '/') {
            text.push('\\');
        }
        text.push(character);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rox::formats::sm::msd::tokenize;

    use super::*;

    proptest! {
        #[test]
        fn serialised_tags_tokenize_to_themselves(text in r"([#:;\\/ \n]|[aN1,=]|//|#A:|é){0,60}") {
            let tags = tokenize(&text);
            prop_assert_eq!(tokenize(&to_text(&tags)), tags);
        }
    }
}
