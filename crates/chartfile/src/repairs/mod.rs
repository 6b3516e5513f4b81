//! Repairs: what the games play and the decoder rejects or misreads.
//!
//! `tests/chartfile/repairs.rs` has one test input for each row, under the name in the first column, and
//! compares it with a file that needs no repair. A file that needs none is decoded unchanged, so a repair never
//! changes the note hash of a chart that has one without it, `end time of zero` aside. "Required" means that
//! without the repair the chart is refused and has no hash.
//!
//! | Name | Format | In the file | Read as | Why | Note hash |
//! |---|---|---|---|---|---|
//! | byte order mark | all | `U+FEFF` before the first line | the text after it | editors write it | unaffected |
//! | empty title | `.osu` | `Title:A`, `TitleUnicode:` | title `A` | the game shows `A` | unaffected: metadata |
//! | unpublished id | `.osu`, `.qua` | `BeatmapSetID:-1`, `MapId: 0` | no id | the games write it before an upload | unaffected: metadata |
//! | note outside the playfield | `.osu` | x of 512, or below 0 | outermost column | so does the game | required |
//! | comma-separated tags | `.qua` | `Tags: slow jam, cj` | `slow jam` and `cj` | the game's editor writes both forms | unaffected: metadata |
//! | numeric signature | `.qua` | `Signature: 4` | `Signature: Quadruple` | the game accepts both | required |
//! | five or six keys | `.qua` | `Mode: Keys5` | 5 keys | the game has 1 to 10 | required |
//! | end time of zero | `.qua` | `EndTime: 0` | a tap | the game writes it for a tap | a tap, not a long note |
//! | note attributes | `.sm`, `.ssc` | `{1\|h\|0\|0}`, and `S`, `V`, `H` beside such cells | `1` | only displayed differently ([`stepf2_notes`]) | required |
//! | fake note | `.sm`, `.ssc` | `{1\|n\|1\|0}` | `F` | the game does not judge it ([`stepf2_notes`]) | required |
//! | keysound | `.sm`, `.ssc` | `1[23]` | `1` | it is only played ([`rows`]) | required |
//! | row too wide or too narrow | `.sm`, `.ssc` | `10001` or `100` with 4 columns | `1000` | so does the game ([`rows`]) | required |
//! | negative stop | `.sm` | `#STOPS:3=-1` | `#WARPS:3=2` at 120 BPM | old way to write a warp ([`negative_timing`]) | required |
//! | negative BPM | `.sm` | `#BPMS:0=120,2=-120,3=120` | `#WARPS:2=2` | old way to write a warp ([`negative_timing`]) | required |
//! | stop before the first beat | `.sm` | `#STOPS:-1=-0.25` | `#OFFSET` plus 0.25 | so does the game ([`negative_timing`]) | required |
//! | negative delay | `.sm`, `.ssc` | `#DELAYS:1=-1` | no delay | the game ignores it ([`negative_timing`]) | required |
//! | negative timing | `.ssc` | `#BPMS:0=120,2=-60`, `#STOPS:1=-1` | `#BPMS:0=120`, no stop | the game ignores it ([`negative_timing`]) | required |
//! | late first BPM | `.osu`, `.qua` | first BPM after the first note | first BPM before it | the games extend it backwards | required |
//! | notes out of order | `.qua` | a later note first | notes by time | the games sort them | required |
//! | timing points out of order | `.osu` | a later point first | points by time | the games sort them | required |
//! | long note without length | `.osu`, `.qua` | end not after the start | a tap | the games play it as one | required |

mod chart;
mod osu;
mod qua;

pub(crate) use chart::repair_chart;
pub(crate) use osu::{clamp_columns, fill_empty_names};
pub(crate) use qua::{RepairedText, remove_empty_end_times, repair_text as repair_qua_text};
