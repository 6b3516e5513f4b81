//! Builds again when a migration is added: `sqlx::migrate!` only watches the files that it has read.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
