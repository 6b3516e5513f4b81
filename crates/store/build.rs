//! Rebuilds when a migration is added: `sqlx::migrate!` only watches existing files.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
