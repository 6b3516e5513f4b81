//! Reads lists in the JSON of a [`ChartsetRecord`](crate::ChartsetRecord), which another instance wrote, with
//! bounded memory: a list ends at its limit.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// # Errors
/// There are more elements.
pub(crate) fn deserialize_at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const LIMIT: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let (elements, more) = deserializer.deserialize_seq(First { limit: LIMIT, element: PhantomData })?;
    if more { Err(de::Error::custom(format!("more than {LIMIT} charts"))) } else { Ok(elements) }
}

/// Further elements are dropped.
pub(crate) fn deserialize_first<'de, D: Deserializer<'de>, T: Deserialize<'de>, const LIMIT: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(deserializer.deserialize_seq(First { limit: LIMIT, element: PhantomData })?.0)
}

/// The first elements of a list, and whether it has more.
struct First<T> {
    limit: usize,
    element: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = (Vec<T>, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while elements.len() < self.limit {
            match list.next_element()? {
                Some(element) => elements.push(element),
                None => return Ok((elements, false)),
            }
        }
        let mut more = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok((elements, more))
    }
}
