//! Varnish with the configuration of docs/operations/cdn.md.

use std::net::SocketAddr;
use std::path::Path;

use chart_index_tests::workspace_root;

/// The configuration for this origin, with the network of what purges, such as `"10.0.0.1"` or `"10.0.0.0"/8`.
pub fn configuration(host: &str, port: u16, purgers: &str) -> String {
    let page = std::fs::read_to_string(workspace_root().join("docs/operations/cdn.md")).expect("a page");
    let example =
        page.split("```vcl\n").nth(1).and_then(|rest| rest.split_once("```")).expect("an example").0;
    let replaced = [
        ("    .host = \"127.0.0.1\";", format!("    .host = \"{host}\";")),
        ("    .port = \"8080\";", format!("    .port = \"{port}\";")),
        ("\n    \"127.0.0.1\";", format!("\n    {purgers};")),
    ];
    replaced.iter().fold(example.to_owned(), |configuration, (original, replacement)| {
        assert_eq!(configuration.matches(original).count(), 1, "{original}: {configuration}");
        configuration.replace(original, replacement)
    })
}

/// The command that runs Varnish with this configuration in the foreground. It has its files in the folder.
pub fn command(configuration: &str, address: SocketAddr, folder: &Path) -> Vec<String> {
    let file = folder.join("cdn.vcl");
    std::fs::write(&file, configuration).expect("a file");
    let [file, files] = [file, folder.join("varnish")].map(|path| path.display().to_string());
    let (program, address) = (program("varnishd"), address.to_string());
    // Idle connections of clients stay open for longer than clients reuse them.
    let parameters = ["-p", "timeout_idle=100", "-p", "nuke_limit=1000"];
    let words = [&*program, "-F", "-j", "none", "-s", "malloc,1g", "-a", &address, "-f", &file, "-n", &files];
    words.into_iter().chain(parameters).map(str::to_owned).collect()
}

/// A program of Varnish: on the PATH, or where Debian has servers, which is on the PATH of root only.
pub fn program(name: &str) -> String {
    let debian = format!("/usr/sbin/{name}");
    if Path::new(&debian).is_file() { debian } else { name.to_owned() }
}
