//! The step types of the second game.

use chart_index_domain::InvalidKeyCount;

use crate::Refusal;
use crate::metadata::excerpt;

/// The step types and their columns (itgmania 5d4f9dcb, GameManager.cpp, `g_StepsTypeInfos`), but for the
/// lights of a cabinet, which no one plays.
const STEP_TYPES: [(&str, u8); 37] = [
    ("dance-single", 4),
    ("dance-double", 8),
    ("dance-couple", 8),
    ("dance-solo", 6),
    ("dance-threepanel", 3),
    ("dance-routine", 8),
    ("pump-single", 5),
    ("pump-halfdouble", 6),
    ("pump-double", 10),
    ("pump-couple", 10),
    ("pump-routine", 10),
    ("kb7-single", 7),
    ("ez2-single", 5),
    ("ez2-double", 10),
    ("ez2-real", 7),
    ("para-single", 5),
    ("ds3ddx-single", 8),
    ("bm-single5", 6),
    ("bm-versus5", 6),
    ("bm-double5", 12),
    ("bm-single7", 8),
    ("bm-versus7", 8),
    ("bm-double7", 16),
    ("maniax-single", 4),
    ("maniax-double", 8),
    ("techno-single4", 4),
    ("techno-single5", 5),
    ("techno-single8", 8),
    ("techno-double4", 8),
    ("techno-double5", 10),
    ("techno-double8", 16),
    ("pnm-five", 5),
    ("pnm-nine", 9),
    ("kickbox-human", 4),
    ("kickbox-quadarm", 4),
    ("kickbox-insect", 6),
    ("kickbox-arachnid", 8),
];

/// The number of columns of a step type. `.sm` files may have old names (NotesLoaderSM.cpp, `LoadFromTokens`).
///
/// # Errors
/// The game has no such step type, or charts with its columns are not indexed.
pub(super) fn columns(step_type: &str, is_sm: bool) -> Result<u8, Refusal> {
    let current = match step_type {
        "ez2-single-hard" if is_sm => "ez2-single",
        "para" if is_sm => "para-single",
        other => other,
    };
    match STEP_TYPES.iter().find(|(name, _)| current.eq_ignore_ascii_case(name)) {
        Some((_, columns @ 4..=7)) => Ok(*columns),
        Some((_, columns)) => Err(InvalidKeyCount(*columns).into()),
        None => Err(Refusal::undecodable(&format!("unknown step type {:?}", excerpt(step_type)))),
    }
}
