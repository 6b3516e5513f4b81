//! Writing the tags of a simfile as text again, after a repair.

use rox::formats::sm::msd::Tag;

/// The text from which the decoder's tokenizer reads exactly these tags.
pub(super) fn text_of(tags: &[Tag]) -> String {
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

/// A backslash keeps the next character from being read as the end of a parameter, a tag or a comment's start.
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
        fn tags_survive_being_written_and_read(text in r"([#:;\\/ \n]|[aN1,=]|//|#A:|é){0,60}") {
            let tags = tokenize(&text);
            prop_assert_eq!(tokenize(&text_of(&tags)), tags);
        }
    }
}
