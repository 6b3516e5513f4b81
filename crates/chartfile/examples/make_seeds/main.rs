//! Writes the seeds of the fuzz targets, `fuzz/seeds/` of this crate. The output is reproducible byte for byte.

mod seeds;

use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for (path, content) in seeds::files()? {
        let path = root.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, content)?;
    }
    Ok(())
}
