//! buildah, with storage of its own that is deleted with the value.

use std::path::{Path, PathBuf};
use std::process::Command;

use chart_index_system_tests::{Base, run};
use chart_index_tests::workspace_root;
use serde_json::Value;
use tempfile::TempDir;

/// A storage of images and containers.
pub(crate) struct Buildah {
    folder: TempDir,
}

impl Buildah {
    /// Creates an empty storage. Its driver copies every layer, and needs no support of the filesystem.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().display();
        let storage =
            format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{path}/graph\"\nrunroot = \"{path}/run\"\n");
        std::fs::write(folder.path().join("storage.conf"), storage).expect("a file");
        std::fs::create_dir(folder.path().join("temporary")).expect("a folder");
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes an image of a base, with these environment variables.
    pub(crate) fn import(&self, name: &str, base: &Base, variables: &[&str]) {
        let container = self.buildah(&["from", "scratch"]);
        let archive = base.archive();
        self.buildah(&["add", &container, &archive.to_string_lossy(), "/"]);
        for variable in variables {
            self.buildah(&["config", "--env", variable, &container]);
        }
        self.buildah(&["commit", "--rm", &container, &format!("localhost/{name}")]);
    }

    /// Builds the image `image` by `scripts/image` on the images `build` and `runtime`, with these volumes of
    /// the host. Returns the output.
    pub(crate) fn build_image(&self, volumes: &[&str]) -> String {
        let mut command = self.command(&workspace_root().join("scripts/image"));
        command.arg("build").args(volumes.iter().flat_map(|volume| ["--volume", volume]));
        command.envs([("ENGINE", "buildah"), ("IMAGE", "localhost/image")]);
        let log =
            run(command.envs([("BASE_BUILD", "localhost/build"), ("BASE_RUNTIME", "localhost/runtime")]));
        eprintln!("{log}");
        log
    }

    /// Builds an image of another Dockerfile and build context.
    pub(crate) fn build_context(&self, name: &str, dockerfile: &Path, context: &Path) {
        let mut command = self.command(Path::new("buildah"));
        command.args(["build", "--tag", &format!("localhost/{name}"), "--file"]);
        run(command.arg(dockerfile).arg(context));
    }

    /// The folder with the files of an image.
    pub(crate) fn mount(&self, name: &str) -> PathBuf {
        let container = self.buildah(&["from", &format!("localhost/{name}")]);
        PathBuf::from(self.buildah(&["mount", &container]))
    }

    /// The configuration of an image, in the form of Docker.
    pub(crate) fn configuration(&self, name: &str) -> Value {
        self.inspect(name)["Docker"]["config"].take()
    }

    /// The size of the layers of an image, in millions of bytes.
    pub(crate) fn megabytes(&self, name: &str) -> u64 {
        let image = self.inspect(name);
        let manifest = image["Manifest"].as_str().expect("a manifest");
        let manifest: Value = serde_json::from_str(manifest).expect("JSON");
        let layers = manifest["layers"].as_array().expect("layers");
        layers.iter().filter_map(|layer| layer["size"].as_u64()).sum::<u64>() / 1_000_000
    }

    fn inspect(&self, name: &str) -> Value {
        let output = self.buildah(&["inspect", "--type", "image", &format!("localhost/{name}")]);
        serde_json::from_str(&output).expect("JSON")
    }

    fn buildah(&self, arguments: &[&str]) -> String {
        run(self.command(Path::new("buildah")).args(arguments)).trim().to_owned()
    }

    /// A command that uses this storage, in a mount namespace of its own: no mount outlives it, so that
    /// deleting the storage deletes nothing that is mounted in it.
    fn command(&self, program: &Path) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--"])
            .arg(program)
            .env("CONTAINERS_STORAGE_CONF", folder.join("storage.conf"))
            .env("BUILDAH_ISOLATION", "chroot")
            .env("TMPDIR", folder.join("temporary"));
        command
    }
}
