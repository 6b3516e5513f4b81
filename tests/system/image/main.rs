//! The container image: built by the `Dockerfile` with Debian's buildah, on base images of Debian packages, and
//! run in its root filesystem by chroot. There is no container engine.
//!
//! The tests need root and Debian: `scripts/test` runs them where it finds both.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test ends where its set-up fails, and prints the output of the build and the size of the image"
)]

mod bases;
mod buildah;
mod container;
mod contents;
mod context;
mod defaults;
mod running;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::Command;

use chart_index_system_tests::{run, strip_programs};
use chart_index_tests::workspace_root;
use serde_json::{Value, json};

use buildah::Buildah;
use container::Image;

/// Maximum size of both programs of a release. 28 MB were measured.
const MAX_PROGRAM_BYTES: u64 = 36_000_000;

#[tokio::test]
#[ignore = "needs root and Debian: make test-system"]
async fn image_of_built_programs_runs() {
    let buildah = Buildah::start();
    let programs = buildah.folder().join("programs");
    strip_programs(&programs);
    buildah.import("build", &bases::WITHOUT_COMPILER, &[]);
    let volume = format!("{}:/programs-of-the-test:ro", programs.display());
    let (image, log) = build(&buildah, &[&volume]);
    let command = "cargo build --release --locked -p chart-index-server -p chart-index-indexer";
    assert!(log.contains(&format!("{command} (debug none, strip symbols)")), "{log}");
    contents::check(&image);
    running::check(&image).await;
}

#[tokio::test]
#[ignore = "needs root and Debian, takes 15 minutes: make test-full"]
async fn long_image_of_release_build_runs() {
    let buildah = Buildah::start();
    let (toolchain, registry) = (toolchain(), cargo_home().join("registry"));
    let jobs = std::env::var("CARGO_BUILD_JOBS").unwrap_or_else(|_| "2".to_owned());
    let jobs = format!("CARGO_BUILD_JOBS={jobs}");
    let settings =
        ["PATH=/toolchain/bin:/usr/bin:/bin", "CARGO_HOME=/cargo", "CARGO_NET_OFFLINE=true", &jobs];
    buildah.import("build", &bases::WITH_COMPILER, &settings);
    let volumes = [
        format!("{}:/toolchain:ro", toolchain.display()),
        format!("{}:/cargo/registry:ro", registry.display()),
    ];
    let (image, _) = build(&buildah, &volumes.each_ref().map(String::as_str));
    contents::check(&image);
    contents::check_paths(&image, &[&workspace_root(), &cargo_home(), &toolchain, buildah.folder()]);
    let bytes = contents::program_bytes(&image);
    assert!(bytes <= MAX_PROGRAM_BYTES, "the programs have {bytes} bytes");
    running::check(&image).await;
}

/// Builds the image by `scripts/image`, on the base image `build`, with these volumes of the host, and checks
/// its configuration. Returns the output of the build as well.
fn build(buildah: &Buildah, volumes: &[&str]) -> (Image, String) {
    buildah.import("runtime", &bases::RUNTIME, &[]);
    let revision = revision();
    let log = buildah.build_image(volumes);
    let image = Image {
        root: buildah.mount("image"),
        base: buildah.mount("runtime"),
        configuration: buildah.configuration("image"),
    };
    let programs = contents::program_bytes(&image) / 1_000_000;
    println!("the image has {} MB, its programs have {programs} MB", buildah.megabytes("image"));
    check_configuration(&image.configuration, &revision);
    (image, log)
}

/// The parts of the configuration that operators rely on: `docs/operations/install.md`, "Image".
fn check_configuration(actual: &Value, revision: &str) {
    for (part, expected) in [
        ("User", json!("65532:65532")),
        ("Entrypoint", json!(["/usr/local/bin/chart-index"])),
        ("Cmd", json!(["serve"])),
        ("WorkingDir", json!("/")),
        ("ExposedPorts", json!({"8080/tcp": {}, "9090/tcp": {}})),
    ] {
        assert_eq!(actual[part], expected, "{part}");
    }
    let variables = actual["Env"].as_array().expect("an array");
    for variable in ["LISTEN=0.0.0.0:8080", "ADMIN_LISTEN=0.0.0.0:9090"] {
        assert!(variables.contains(&json!(variable)), "{variables:?}");
    }
    let health = &actual["Healthcheck"];
    assert_eq!(health["Test"], json!(["CMD", "/usr/local/bin/chart-index", "healthcheck", "readyz"]));
    let seconds = |part: &str| health[part].as_u64().map(|nanoseconds| nanoseconds / 1_000_000_000);
    assert_eq!(["Interval", "Timeout", "StartPeriod"].map(seconds), [Some(10), Some(5), Some(30)]);
    for (label, expected) in [
        ("title", "chart-index".to_owned()),
        ("licenses", "MIT".to_owned()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("revision", revision.to_owned()),
        ("base.name", "localhost/runtime".to_owned()),
    ] {
        assert_eq!(actual["Labels"][format!("org.opencontainers.image.{label}")], json!(expected), "{label}");
    }
}

/// The commit of the checkout, with `-dirty` if tracked files differ from it; `unknown` outside of a clone.
fn revision() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(workspace_root()).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
    let suffix = if changes.is_empty() { "" } else { "-dirty" };
    format!("{}{suffix}", commit.trim())
}

/// The folder of the Rust toolchain that built this test.
fn toolchain() -> PathBuf {
    PathBuf::from(run(Command::new("rustc").args(["--print", "sysroot"])).trim())
}

/// The folder of Cargo's registry.
fn cargo_home() -> PathBuf {
    let home = || Path::new(&std::env::var_os("HOME").expect("HOME")).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}
