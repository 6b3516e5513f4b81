//! Reads lists in the JSON of a [`ChartsetRecord`](crate::ChartsetRecord), which another instance wrote, with
//! bounded memory: a list ends at its limit.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::limits::MAX_CHARTS;
use crate::{FileAliases, MAX_CHART_TAGS};

/// # Errors
/// There are more charts than a chartset may have.
pub(crate) fn deserialize_charts<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let (charts, more) = deserializer.deserialize_seq(First { limit: MAX_CHARTS, element: PhantomData })?;
    if more { Err(de::Error::custom(format!("more than {MAX_CHARTS} charts"))) } else { Ok(charts) }
}

/// Further tags are dropped, as those of a chart file.
pub(crate) fn deserialize_tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let (tags, _) = deserializer.deserialize_seq(First { limit: MAX_CHART_TAGS, element: PhantomData })?;
    Ok(tags)
}

/// Further values are dropped.
pub(crate) fn deserialize_aliases<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let first = First { limit: FileAliases::MAX_VALUES, element: PhantomData };
    Ok(deserializer.deserialize_seq(first)?.0)
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
