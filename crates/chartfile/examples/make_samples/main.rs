//! Writes the sample library, `samples/` in the workspace root. The output is reproducible byte for byte.

mod library;

use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    for game in ["alpha", "beta"] {
        if root.join(game).exists() {
            fs::remove_dir_all(root.join(game))?;
        }
    }
    for (path, content) in library::files() {
        let path = root.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, content)?;
    }
    Ok(())
}
