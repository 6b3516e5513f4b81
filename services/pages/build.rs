//! Embeds the files of `assets`: each with a name that contains a hash of its bytes, plain and as gzip.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The digits of the hash in a name: 48 bits tell the versions of one file apart.
const NAME_DIGITS: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("assets");
    let output = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut paths =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    let mut source = String::from("&[\n");
    for path in &paths {
        println!("cargo::rerun-if-changed={}", path.display());
        source.push_str(&asset(path, &output)?);
    }
    source.push(']');
    fs::write(output.join("assets.rs"), source)?;
    Ok(())
}

/// The expression of an [`Asset`](src/assets.rs), whose gzip is written to a file.
fn asset(path: &Path, output: &Path) -> Result<String, Box<dyn Error>> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or("an asset has no readable name")?;
    let (stem, extension) = name.rsplit_once('.').ok_or("an asset has no extension")?;
    let media_type = match extension {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        other => return Err(format!("{name}: assets of type {other} are not served").into()),
    };
    let bytes = fs::read(path)?;
    let gzip = output.join(format!("{name}.gz"));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes)?;
    fs::write(&gzip, encoder.finish()?)?;
    let digest = blake3::hash(&bytes).to_hex();
    let path_in_url = format!("/assets/{stem}.{}.{extension}", &digest[..NAME_DIGITS]);
    let (plain, gzip) =
        (path.to_str().ok_or("an unreadable path")?, gzip.to_str().ok_or("an unreadable path")?);
    Ok(format!(
        "    Asset {{ name: {name:?}, path: {path_in_url:?}, media_type: {media_type:?}, \
         plain: include_bytes!({plain:?}), gzip: include_bytes!({gzip:?}) }},\n"
    ))
}
