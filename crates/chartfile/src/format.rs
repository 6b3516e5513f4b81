//! Which files are charts, by their names.

/// The chart file formats that the index reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChartFormat {
    /// `.osu`: one chart of the first game.
    Osu,
    /// `.sm`: the charts of one song of the second game.
    Sm,
    /// `.ssc`: the charts of one song of the second game, with timing of their own.
    Ssc,
    /// `.qua`: one chart, as YAML.
    Qua,
}

impl ChartFormat {
    /// The format of the file at `path`, by its extension in any case. `None` for every other file and for
    /// what is no file of the chart's author: dotfiles, `AppleDouble` companions (`._steps.sm`), and
    /// everything in a `__MACOSX` folder.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        if is_junk(path) {
            return None;
        }
        match file_name(path).rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "osu" => Some(Self::Osu),
            "sm" => Some(Self::Sm),
            "ssc" => Some(Self::Ssc),
            "qua" => Some(Self::Qua),
            _ => None,
        }
    }

    /// A file name with this format's extension, for the parts of the decoder that go by it.
    pub(crate) const fn example_name(self) -> &'static str {
        match self {
            Self::Osu => "chart.osu",
            Self::Sm => "chart.sm",
            Self::Ssc => "chart.ssc",
            Self::Qua => "chart.qua",
        }
    }
}

/// Whether the file at `path` was left by an operating system rather than made by an author.
pub(crate) fn is_junk(path: &str) -> bool {
    file_name(path).starts_with('.') || path.split(['/', '\\']).any(|part| part == "__MACOSX")
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_files_are_known_by_their_extension_and_junk_is_not() {
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
