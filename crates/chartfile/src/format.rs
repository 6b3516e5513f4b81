//! Recognises chart files by their names.

use std::collections::HashSet;

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

/// Removes every `.sm` file that is in one folder with an `.ssc` file: the game does not read it, not even if
/// the `.ssc` has no chart (itgmania 5d4f9dcb, `NotesLoader::LoadFromDir`). Paths have `/` between their
/// components.
pub fn skip_replaced_simfiles<T>(files: &mut Vec<T>, path: impl Fn(&T) -> &str) {
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let is_ssc = |path: &&str| ChartFormat::from_path(path) == Some(ChartFormat::Ssc);
    let replaced: HashSet<String> = files.iter().map(&path).filter(is_ssc).map(folder).collect();
    files.retain(|file| {
        let path = path(file);
        ChartFormat::from_path(path) != Some(ChartFormat::Sm) || !replaced.contains(&folder(path))
    });
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

    #[test]
    fn ssc_replaces_the_sm_files_of_its_folder() {
        let mut files = vec![
            "a.sm",
            "b.SSC",
            "c.osu",
            "d.SM",
            "e/a.sm",
            "e/f/b.ssc",
            "g/._b.ssc",
            "g/a.sm",
            "h/a.ssc",
            "h/b.ssc",
        ];
        skip_replaced_simfiles(&mut files, |path| path);
        assert_eq!(
            files,
            ["b.SSC", "c.osu", "e/a.sm", "e/f/b.ssc", "g/._b.ssc", "g/a.sm", "h/a.ssc", "h/b.ssc"]
        );
    }
}
