//! Reads an image as a container engine does: by its index, every blob checked, with the `tar` of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value as Json;

use super::sha256;
use harness::workspace::output_of;

/// An unpacked image.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) config: Json,
    /// The folder with its files.
    pub(super) root: PathBuf,
}

/// Unpacks the image into a new folder. Its files belong to the caller, whatever the layers say: only root may give them away.
pub(super) fn unpack_image(tar: &Path, folder: &Path) -> anyhow::Result<Image> {
    let layout = folder.join("layout");
    extract(tar, &layout)?;
    let index = read_json(&layout.join("index.json"))?;
    let manifest = blob(&layout, &index["manifests"][0])?;
    let manifest: Json = serde_json::from_slice(&manifest)?;
    let config = blob(&layout, &manifest["config"])?;
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    let layers = manifest["layers"].as_array();
    for layer in layers.context("the manifest has no layers")? {
        blob(&layout, layer)?;
        extract(&layout.join(path_of(layer)?), &root)?;
    }
    Ok(Image {
        config: serde_json::from_slice(&config)?,
        root,
    })
}

/// Unpacks a tar, compressed or not.
pub(super) fn extract(tar: &Path, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = Command::new("tar");
    command.arg("--no-same-owner").arg("-xpf").arg(tar);
    output_of(command.arg("-C").arg(folder))?;
    Ok(())
}

fn blob(layout: &Path, descriptor: &Json) -> anyhow::Result<Vec<u8>> {
    let path = path_of(descriptor)?;
    let blob = fs::read(layout.join(&path)).with_context(|| format!("the image has no {path}"))?;
    ensure!(
        path.ends_with(&sha256(&blob)),
        "{path} has another digest than its name"
    );
    ensure!(
        descriptor["size"] == blob.len(),
        "{path} has {} bytes, not {}",
        blob.len(),
        descriptor["size"]
    );
    Ok(blob)
}

fn path_of(descriptor: &Json) -> anyhow::Result<String> {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let digest = digest.strip_prefix("sha256:");
    let digest = digest.with_context(|| format!("{descriptor} has no SHA-256 digest"))?;
    Ok(format!("blobs/sha256/{digest}"))
}

fn read_json(path: &Path) -> anyhow::Result<Json> {
    let text =
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}
