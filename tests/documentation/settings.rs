//! docs/operations/configure.md lists every setting of both programs with its default.

use std::collections::BTreeMap;
use std::process::Command;

use super::read;

/// The tables, and the commands whose settings each lists.
const TABLES: &[(&str, &[&[&str]])] = &[
    ("## Settings of chart-index\n", &[&["chart-index", "serve"], &["chart-index", "check"]]),
    (
        "## Settings of chart-indexer\n",
        &[
            &["chart-indexer", "ingest"],
            &["chart-indexer", "follow"],
            &["chart-indexer", "mirror"],
            &["chart-indexer", "export"],
            &["chart-indexer", "remove"],
        ],
    ),
];

#[test]
fn settings_and_defaults_match_help() {
    let page = read("docs/operations/configure.md");
    for (heading, commands) in TABLES {
        let section = page.split_once(heading).unwrap_or_else(|| panic!("{heading} is missing")).1;
        let section = section.split("\n## ").next().unwrap_or_default();
        let actual: BTreeMap<_, _> = commands.iter().flat_map(|command| settings(command)).collect();
        assert!(actual.len() > 5, "{actual:?}");
        assert_eq!(documented(section), actual, "{heading}");
    }
}

/// The variables of a table with their defaults, by its first two columns.
fn documented(section: &str) -> BTreeMap<String, String> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_owned());
        (cells.next().expect("a variable"), cells.next().expect("a default"))
    })
    .collect()
}

/// The variables of a command with their defaults, by its `--help`; without a default the text is empty.
fn settings(command: &[&str]) -> BTreeMap<String, String> {
    // This test is target/<profile>/deps/…, the programs are target/<profile>/….
    let test = std::env::current_exe().expect("the path of the test");
    let program = test.ancestors().nth(2).expect("the folder of the programs").join(command[0]);
    let output = Command::new(program).args(&command[1..]).arg("--help").env_clear().output();
    let help = String::from_utf8(output.expect("the program is built").stdout).expect("UTF-8");
    let between = |text: &str, open: &str, close: char| {
        text.split_once(open)
            .and_then(|(_, rest)| Some(rest.split_once(close)?.0.trim_end_matches('=').to_owned()))
    };
    let entries = help.split("\n      --").skip(1);
    entries
        .filter_map(|entry| {
            let default = between(entry, "[default: ", ']').unwrap_or_default();
            Some((between(entry, "[env: ", ']')?, default.trim_matches('"').to_owned()))
        })
        .collect()
}
