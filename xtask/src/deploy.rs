//! `cargo xtask deploy`: what is in `deploy/`, checked by the programs that will read it.
//!
//! promtool runs the unit tests of the alert rules; kubectl renders the manifests, which are then compared with the schemas of
//! the oldest and the newest Kubernetes that we name. That names of metrics, pages, options and probes exist is a tidy rule.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::programs::install_requirements;
use harness::workspace::{output_of, root};
use services::require_program;

pub(crate) fn run() -> anyhow::Result<()> {
    check_rules()?;
    let folder = tempfile::tempdir()?;
    let kubectl = require_program("kubectl", "kubernetes-client")?;
    let python = python()?;
    for variant in VARIANTS {
        let mut render = Command::new(&kubectl);
        render.arg("kustomize");
        render.arg(root().join("deploy/kubernetes").join(variant));
        let manifest = output_of(&mut render)?;
        let path = folder.path().join(format!("{variant}.yaml"));
        fs::write(&path, &manifest)?;
        for version in KUBERNETES {
            validate(&python, version, &path)?;
        }
        // A check that accepts everything is none.
        let misspelt = manifest.replace("readOnlyRootFilesystem", "readOnlyRootFileSystem");
        fs::write(&path, misspelt)?;
        if validate(&python, KUBERNETES[0], &path).is_ok() {
            bail!("kubernetes-validate accepts a misspelt field in `{variant}`");
        }
    }
    eprintln!(
        "alert rules and {} sets of manifests are valid",
        VARIANTS.len()
    );
    Ok(())
}

fn check_rules() -> anyhow::Result<()> {
    let promtool = require_program("promtool", "prometheus")?;
    let folder = root().join("deploy/prometheus");
    for args in [
        &["check", "rules", "alerts.yml"][..],
        &["test", "rules", "alerts.test.yml"],
        &["check", "config", "--syntax-only", "prometheus.yml"],
    ] {
        output_of(Command::new(&promtool).args(args).current_dir(&folder))?;
    }
    Ok(())
}

fn validate(python: &Path, version: &str, manifest: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(python);
    command.args(["-m", "kubernetes_validate", "--strict", "--quiet", "-k"]);
    let output = command.arg(version).arg(manifest).output()?;
    if output.status.success() {
        return Ok(());
    }
    bail!(
        "Kubernetes {version} refuses a manifest:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Returns the Python whose packages know the schemas of Kubernetes and of CycloneDX.
pub(crate) fn python() -> anyhow::Result<std::path::PathBuf> {
    let python = install_requirements("schemas", VERSION, include_str!("deploy/requirements.txt"));
    python.context("the validators of schemas cannot be installed")
}

/// Of the list of requirements.
const VERSION: &str = "1";
const VARIANTS: [&str; 2] = ["server", "cluster"];
const KUBERNETES: [&str; 2] = ["1.37.0", "1.29.1"];
