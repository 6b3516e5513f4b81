//! Files of the repository, and the code in its documentation.

use chart_index_tests::workspace_root;

/// The text of a file of the repository.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of a language in a page, in their order.
pub fn code_blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let rests: Vec<&str> = page.split(start.as_str()).skip(1).collect();
    rests.into_iter().filter_map(|rest| Some(rest.split_once("```")?.0)).collect()
}

/// What a page has between backticks outside of blocks, each on one line.
pub fn inline_code(page: &str) -> Vec<String> {
    let texts = page.split("```").step_by(2);
    texts.flat_map(|text| text.split('`').skip(1).step_by(2)).map(on_one_line).collect()
}

/// The words of a code, with single spaces.
pub fn on_one_line(code: &str) -> String {
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `AS_OPERATOR` of docs/runbook.md, with a harmless command.
pub fn ping_as_operator() -> String {
    let runbook = read("docs/runbook.md");
    let (_, definition) = runbook.split_once("`AS_OPERATOR` is\n").expect("a definition");
    let command = code_blocks(definition, "sh")[0].trim_end();
    format!("{command} ping")
}
