//! An image as the Open Container Initiative defines it, in the layout that tools load from a tar: nothing but the program, root
//! certificates, and the account that runs it.
//!
//! `deploy/kubernetes` relies on the place of the program, the account and its home. There is no shell and no Python in it.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use super::contents::Contents;
use super::release::Release;
use super::sha256;
use super::tree::{Tree, gzip};

/// Returns the image: a tar with `oci-layout`, `index.json` and the blobs.
pub(super) fn image(release: &Release, contents: &Contents) -> anyhow::Result<Vec<u8>> {
    let tar = root(contents).to_tar("", release.date)?;
    let layer = gzip(&tar)?;
    let config = config(release, &sha256(&tar)).to_string();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor("application/vnd.oci.image.config.v1+json", config.as_bytes()),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)],
    });
    let manifest = manifest.to_string();
    let mut entry = descriptor(MANIFEST, manifest.as_bytes());
    entry["platform"] = json!({ "architecture": release.platform.oci, "os": "linux" });
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version,
        // What `docker load` and containerd call the image.
        "io.containerd.image.name": format!("docker.io/library/archie:{}", release.version),
    });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] });
    let mut layout = Tree::default();
    layout.file("oci-layout", 0o644, r#"{"imageLayoutVersion":"1.0.0"}"#);
    layout.file("index.json", 0o644, index.to_string());
    for blob in [layer, config.into_bytes(), manifest.into_bytes()] {
        layout.file(&format!("blobs/sha256/{}", sha256(&blob)), 0o644, blob);
    }
    layout.to_tar("", release.date)
}

/// The files of the container.
fn root(contents: &Contents) -> Tree {
    let mut root = Tree::default();
    root.file("usr/bin/archie", 0o755, contents.program.clone());
    root.file(
        "etc/passwd",
        0o644,
        format!("root:x:0:0::/:\narchie:x:{USER}:{USER}::/{HOME}:\n"),
    );
    root.file("etc/group", 0o644, format!("root:x:0:\narchie:x:{USER}:\n"));
    root.file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates());
    root.folder(HOME, 0o700, USER);
    root.folder("tmp", 0o1777, 0);
    for (name, text) in &contents.licences {
        root.file(&format!("{DOC}/{name}"), 0o644, text.as_str());
    }
    for (name, text) in &contents.third_party {
        root.file(&format!("{DOC}/licenses/{name}"), 0o644, text.as_str());
    }
    root
}

fn config(release: &Release, layer: &str) -> Json {
    let date = release.timestamp();
    json!({
        "created": date,
        "architecture": release.platform.oci,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": [
                "PATH=/usr/bin",
                format!("HOME=/{HOME}"),
                format!("ARCHIE_HOME=/{HOME}"),
            ],
            "Entrypoint": ["/usr/bin/archie"],
            "WorkingDir": format!("/{HOME}"),
            "Labels": {
                "org.opencontainers.image.title": "archie",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
        "history": [{ "created": date, "created_by": "cargo xtask dist" }],
    })
}

fn descriptor(kind: &str, blob: &[u8]) -> Json {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", sha256(blob)), "size": blob.len() })
}

/// Mozilla's root certificates as a file of PEM blocks: from a crate of the lock file, so they do not depend on the machine.
fn certificates() -> String {
    let mut pem = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let text = STANDARD.encode(certificate);
        for line in text.as_bytes().chunks(64) {
            let line = String::from_utf8_lossy(line);
            // Writing into a string cannot fail.
            let _ = writeln!(pem, "{line}");
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An account without any rights, as the manifests for Kubernetes name it.
const USER: u32 = 65532;
const HOME: &str = "var/lib/archie";
const DOC: &str = "usr/share/doc/archie";

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use harness::workspace::output_of;

    use super::*;
    use crate::dist::unpack::{Image, unpack_image};
    use crate::dist::{contents, release};

    /// Unpacks an image with `tar`, checking every digest on the way.
    fn unpacked(folder: &Path) -> Image {
        let path = folder.join("image.tar");
        let image = image(&release::example(), &contents::example()).unwrap();
        std::fs::write(&path, image).unwrap();
        unpack_image(&path, &folder.join("image")).unwrap()
    }

    #[test]
    fn each_blob_has_the_digest_and_the_size_that_its_descriptor_says() {
        let folder = tempfile::tempdir().unwrap();
        let image = unpacked(folder.path());
        assert_eq!(image.config["config"]["User"], "65532:65532");
        assert_eq!(image.config["architecture"], "amd64");
        let root = image.root;
        assert_eq!(
            std::fs::read(root.join("usr/bin/archie")).unwrap(),
            b"program"
        );
        assert!(
            root.join("usr/share/doc/archie/licenses/crates.txt")
                .is_file()
        );
    }

    #[test]
    fn an_image_with_a_changed_blob_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.tar");
        let mut image = image(&release::example(), &contents::example()).unwrap();
        let text = b"cargo xtask dist";
        let place = image.windows(text.len()).position(|window| window == text);
        image[place.unwrap()] = b'C';
        std::fs::write(&path, image).unwrap();
        let refused = unpack_image(&path, &folder.path().join("image")).unwrap_err();
        assert!(refused.to_string().contains("digest"), "{refused}");
    }

    #[test]
    fn the_home_belongs_to_the_account_and_everybody_may_write_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.tar");
        let tar = root(&contents::example()).to_tar("", 0).unwrap();
        std::fs::write(&path, tar).unwrap();
        let mut list = Command::new("tar");
        let listing = output_of(list.args(["--numeric-owner", "-tvf"]).arg(path)).unwrap();
        for (start, end) in [
            ("drwx------ 65532/65532", " var/lib/archie/"),
            ("drwxrwxrwt 0/0", " tmp/"),
            ("-rwxr-xr-x 0/0", " usr/bin/archie"),
        ] {
            let is_listed = |line: &str| line.starts_with(start) && line.ends_with(end);
            assert!(listing.lines().any(is_listed), "{end} in:\n{listing}");
        }
    }

    #[test]
    fn certificates_are_blocks_of_pem() {
        let pem = certificates();
        let blocks = pem.matches("-----BEGIN CERTIFICATE-----\n").count();
        assert!(blocks > 50, "{blocks} certificates");
        assert!(pem.lines().all(|line| line.len() <= 64));
        assert!(pem.lines().nth(1).unwrap().starts_with("MII"));
    }

    /// The manifests and the image have to agree on these.
    #[test]
    fn the_manifests_for_kubernetes_use_the_account_and_the_home_of_the_image() {
        let path = harness::workspace::root().join("deploy/kubernetes/server/server.yaml");
        let manifest = std::fs::read_to_string(path).unwrap();
        assert!(manifest.contains(&format!("runAsUser: {USER}\n")));
        assert!(manifest.contains(&format!("name: ARCHIE_HOME, value: /{HOME} ")));
    }
}
