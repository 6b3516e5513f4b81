//! Recognises chart files by their names.

/// The chart file formats that the index reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChartFormat {
    /// `.osu`: one chart of the first game.
    Osu,
    /// `.sm`: the charts of one song of the second game.
    Sm,
    /// `.ssc`: the charts of one song of the second game, each of which may have its own timing.
    Ssc,
    /// `.qua`: one chart, as YAML.
    Qua,
}

impl ChartFormat {
    /// The format of the file at `path`, by its extension (case-insensitive). `None` for all other files, and
    /// for files that operating systems create: dotfiles, `AppleDouble` companions (`._steps.sm`), and
    /// everything below a `__MACOSX` folder.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        if is_system_file(path) {
            return None;
        }
        match last_component(path).rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "osu" => Some(Self::Osu),
            "sm" => Some(Self::Sm),
            "ssc" => Some(Self::Ssc),
            "qua" => Some(Self::Qua),
            _ => None,
        }
    }
}

/// Whether an operating system, rather than an author, created the file at `path`.
pub(crate) fn is_system_file(path: &str) -> bool {
    last_component(path).starts_with('.') || path.split(['/', '\\']).any(|part| part == "__MACOSX")
}

fn last_component(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_files_are_recognised_by_extension() {
        for (path, expected) in [
            ("a.osu", Some(ChartFormat::Osu)),
            ("pack/song/STEPS.SM", Some(ChartFormat::Sm)),
            ("pack/song/steps.Ssc", Some(ChartFormat::Ssc)),
            ("a.b.qua", Some(ChartFormat::Qua)),
            ("pack\\song\\steps.sm", Some(ChartFormat::Sm)),
            ("pack.v2/steps", None),
            ("audio.mp3", None),
            ("osu", None),
            (".osu", None),
            ("song/.hidden.osu", None),
            ("song/._steps.sm", None),
            ("__MACOSX/song/steps.sm", None),
            ("pack/__MACOSX/steps.sm", None),
            ("steps.sm.old", None),
            ("steps.sm/", None),
            ("", None),
        ] {
            assert_eq!(ChartFormat::from_path(path), expected, "{path:?}");
        }
    }
}
