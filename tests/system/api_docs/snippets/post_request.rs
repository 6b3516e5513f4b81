//! A request as `/docs` shows it, as a program of this workspace.
#![expect(clippy::print_stdout, reason = "an example for programs of others")]

// Cargo.toml: `ureq = "3"`
fn main() -> Result<(), ureq::Error> {
    let mut response = ureq::post("https://charts.example/api/charts/lookup")
        .header("User-Agent", "my-client/1.0 (me@example.org)")
        .content_type("application/json")
        .send(r#"{"hashes":[]}"#)?;
    println!("{} {}", response.status(), response.body_mut().read_to_string()?);
    Ok(())
}
