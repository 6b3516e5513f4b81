//! Embeds the files of `assets`, and the modules of `clients/npm` that they import: each with a name that
//! contains a hash of its bytes, plain and as gzip.
//!
//! A module imports another one by its relative path, `from "./preview_notes.js"`. The embedded module has the
//! name with the hash there, so that a module and what it imports are of one version, and its own hash changes
//! with theirs.
//!
//! Modules are embedded without the comments and the indentation that their lines begin with, which are half of
//! what a reader of formats has.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The digits of the hash in a name: 48 bits tell the versions of one file apart.
const NAME_DIGITS: usize = 12;

/// What is before the path of an imported module.
const IMPORT: &str = " from \"";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("assets");
    let output = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut assets = Assets { output, embedded: BTreeMap::new() };
    for entry in fs::read_dir(folder)? {
        assets.embed(&entry?.path().canonicalize()?, &mut Vec::new())?;
    }
    let expressions: Vec<&str> = assets.embedded.values().map(|asset| asset.expression.as_str()).collect();
    fs::write(assets.output.join("assets.rs"), format!("&[\n{}]", expressions.concat()))?;
    Ok(())
}

/// The assets that are embedded, by the names of their files.
struct Assets {
    output: PathBuf,
    embedded: BTreeMap<String, Embedded>,
}

struct Embedded {
    path: PathBuf,
    hashed_name: String,
    /// The expression of an [`Asset`](src/assets.rs).
    expression: String,
}

impl Assets {
    /// Embeds a file and the modules that it imports, and returns its name with the hash. `importing` are the
    /// modules that lead to it.
    fn embed(&mut self, path: &Path, importing: &mut Vec<PathBuf>) -> Result<String, Box<dyn Error>> {
        let name = path.file_name().and_then(OsStr::to_str).ok_or("an asset has no readable name")?;
        if let Some(asset) = self.embedded.get(name) {
            let is_same = asset.path == path;
            return is_same.then(|| asset.hashed_name.clone()).ok_or_else(|| format!("two {name}").into());
        }
        if importing.iter().any(|one| one == path) {
            return Err(format!("{name} imports itself by way of {importing:?}").into());
        }
        println!("cargo::rerun-if-changed={}", path.display());
        importing.push(path.to_owned());
        let mut text = self.with_hashed_imports(path, importing)?;
        importing.pop();
        if path.extension().is_some_and(|extension| extension == "js") {
            text = compact(&text)
                .map_err(|line| format!("{name}: a text of several lines begins with {line}"))?;
        }
        let asset = self.write(path, name, &text)?;
        let hashed_name = asset.hashed_name.clone();
        self.embedded.insert(name.to_owned(), asset);
        Ok(hashed_name)
    }

    /// The text of a module, whose imports have the names with the hashes.
    fn with_hashed_imports(
        &mut self,
        path: &Path,
        importing: &mut Vec<PathBuf>,
    ) -> Result<String, Box<dyn Error>> {
        let text = fs::read_to_string(path)?;
        let mut parts = text.split(IMPORT);
        let mut rewritten = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (imported, rest) = part.split_once('"').ok_or("an import does not end")?;
            let imported = path.with_file_name(imported).canonicalize()?;
            rewritten.extend([IMPORT, "./", &self.embed(&imported, importing)?, "\"", rest]);
        }
        Ok(rewritten)
    }

    fn write(&self, path: &Path, name: &str, text: &str) -> Result<Embedded, Box<dyn Error>> {
        let (stem, extension) = name.rsplit_once('.').ok_or("an asset has no extension")?;
        let media_type = match extension {
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            other => return Err(format!("{name}: assets of type {other} are not served").into()),
        };
        fs::write(self.output.join(name), text)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes())?;
        fs::write(self.output.join(format!("{name}.gz")), encoder.finish()?)?;
        let digest = blake3::hash(text.as_bytes()).to_hex();
        let hashed_name = format!("{stem}.{}.{extension}", &digest[..NAME_DIGITS]);
        let bytes_of = |name: &str| format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"))");
        let (plain, gzip) = (bytes_of(name), bytes_of(&format!("{name}.gz")));
        let expression = format!(
            "    Asset {{ name: {name:?}, path: \"/assets/{hashed_name}\", media_type: {media_type:?}, \
             plain: {plain}, gzip: {gzip} }},\n"
        );
        Ok(Embedded { path: path.to_owned(), hashed_name, expression })
    }
}

/// A module without lines of comments and without indentation. Fails with a line that a text of several lines
/// begins or ends with: what is removed could belong to it.
fn compact(module: &str) -> Result<String, &str> {
    let mut compact = String::with_capacity(module.len());
    let mut is_comment = false;
    for line in module.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        is_comment |= line.starts_with("/**");
        if !is_comment && !line.starts_with("//") {
            if line.matches('`').count() % 2 == 1 {
                return Err(line);
            }
            compact.extend([line, "\n"]);
        }
        is_comment &= !line.ends_with("*/");
    }
    Ok(compact)
}
