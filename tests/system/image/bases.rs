//! The base images of the Dockerfile, made of Debian packages.

use chart_index_system_tests::Base;

/// In place of the Rust image: a shell, and as `cargo` a script that takes programs which are built already.
pub(crate) const WITHOUT_COMPILER: Base = Base {
    name: "without-compiler",
    packages: "coreutils,dash,findutils",
    is_system: false,
    commands: r#"
cat >usr/bin/cargo <<'END'
#!/bin/sh -e
echo "cargo $* (debug $CARGO_PROFILE_RELEASE_DEBUG, strip $CARGO_PROFILE_RELEASE_STRIP)"
mkdir -p target/release
cp /programs-of-the-test/* target/release
END
chmod 755 usr/bin/cargo"#,
};

/// In place of the Rust image: a C compiler. The Rust toolchain and the registry of Cargo are mounted.
pub(crate) const WITH_COMPILER: Base = Base {
    name: "with-compiler",
    packages: "coreutils,dash,findutils,gcc,libc6-dev,zlib1g",
    is_system: false,
    // A link that the installation of gcc makes.
    commands: "ln -s gcc usr/bin/cc",
};

/// In place of distroless cc: glibc, `libgcc_s` and certificate authorities, but no program.
pub(crate) const RUNTIME: Base = Base {
    name: "runtime",
    packages: "ca-certificates,libc6,libgcc-s1",
    is_system: false,
    commands: "
cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
rm -r etc/hostname etc/resolv.conf usr/bin usr/lib/ssl usr/sbin usr/share
mkdir proc sys",
};
