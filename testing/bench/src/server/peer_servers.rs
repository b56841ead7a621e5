//! The servers of others, installed into the user's cache and started next to ours.
//!
//! LangGraph's own server runs threads in memory (`langgraph dev`); the one that stores them in a database needs a licence. Aegra
//! stores everything in PostgreSQL. Both run the graph of `bench/langgraph-server`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::json;
use tokio::runtime::Runtime;

use super::connection::Connection;
use super::server_process::{ServerProcess, SpawnedServer, free_address};
use crate::lab::Lab;
use crate::peers::{install_environment, sources};
use crate::side::{AEGRA, AGENT_SERVER};
use harness::workspace::{cache, output_of};

/// The virtual environments of the servers.
#[derive(Debug)]
pub(super) struct PeerServers {
    agent_server: PathBuf,
    /// `None` if nobody named a Python that is new enough for it.
    aegra: Option<PathBuf>,
}

impl PeerServers {
    /// Installs what is missing. Aegra needs a Python that many machines do not have, so it takes part if one is named.
    pub(super) fn install(python_for_aegra: Option<&str>) -> anyhow::Result<Self> {
        let folder = cache()?.join("peers");
        fs::create_dir_all(&folder)?;
        let agent_server = folder.join("langgraph-server");
        let wanted = sources("langgraph-server").join("requirements.txt");
        install_environment("python3", &agent_server, &wanted).context(AGENT_SERVER.label)?;
        let aegra = python_for_aegra.map(|python| {
            let environment = folder.join("aegra");
            ensure_new_enough(python)?;
            let wanted = sources("aegra").join("requirements.txt");
            install_environment(python, &environment, &wanted)?;
            anyhow::Ok(environment)
        });
        if aegra.is_none() {
            eprintln!(
                "Aegra does not take part: name a Python 3.12 or newer with `--aegra PYTHON`"
            );
        }
        Ok(Self {
            agent_server,
            aegra: aegra.transpose().context(AEGRA.label)?,
        })
    }

    /// Starts the server that is compared with ours over this kind of store, if there is one.
    pub(super) fn start(
        &self,
        lab: &Lab,
        tokio: &Runtime,
        store: &str,
    ) -> anyhow::Result<Option<ServerProcess>> {
        let started = match (store, &self.aegra) {
            ("sqlite", _) => self.start_agent_server(lab, tokio).map(Some),
            (_, Some(environment)) => start_aegra(environment, lab, tokio).map(Some),
            (_, None) => Ok(None),
        };
        started.with_context(|| format!("the server next to ours over {store}"))
    }

    fn start_agent_server(&self, lab: &Lab, tokio: &Runtime) -> anyhow::Result<ServerProcess> {
        let process = self.spawn_agent_server(lab, tokio)?;
        let version = version(tokio, &process)?;
        Ok(ServerProcess::peer(AGENT_SERVER, process, version, None))
    }

    /// Starts LangGraph's server as its documentation says, apart from logging, which is switched off for every side.
    pub(super) fn spawn_agent_server(
        &self,
        lab: &Lab,
        tokio: &Runtime,
    ) -> anyhow::Result<SpawnedServer> {
        let (folder, address) = (project(lab, "langgraph.json")?, free_address());
        let mut command = Command::new(self.agent_server.join("bin/langgraph"));
        command.args(["dev", "--no-browser", "--no-reload"]);
        command.args(["--server-log-level", "error", "--host", "127.0.0.1"]);
        command.arg("--port").arg(address.port().to_string());
        command.current_dir(&folder);
        command.env("LANGGRAPH_CLI_NO_ANALYTICS", "1");
        command.env("LANGSMITH_TRACING", "false");
        SpawnedServer::start(tokio, command, address, INFO, &folder).context(AGENT_SERVER.label)
    }
}

fn start_aegra(environment: &Path, lab: &Lab, tokio: &Runtime) -> anyhow::Result<ServerProcess> {
    let (folder, address) = (project(lab, "aegra.json")?, free_address());
    let database = lab.database()?;
    let mut command = Command::new(environment.join("bin/python"));
    command.args(["-m", "uvicorn", "aegra_api.main:app"]);
    command.args(["--host", "127.0.0.1", "--log-level", "error"]);
    command.arg("--port").arg(address.port().to_string());
    command.current_dir(&folder);
    command.env("DATABASE_URL", database.url());
    command.env("AEGRA_CONFIG", "aegra.json");
    command.env("LOG_LEVEL", "ERROR");
    let process = SpawnedServer::start(tokio, command, address, INFO, &folder);
    let process = process.context(AEGRA.label)?;
    let version = version(tokio, &process)?;
    Ok(ServerProcess::peer(AEGRA, process, version, Some(database)))
}

/// Makes a folder with the graph and a file that names it, because the servers write next to them.
fn project(lab: &Lab, settings: &str) -> anyhow::Result<PathBuf> {
    let folder = lab.fresh_folder()?;
    fs::copy(
        sources("langgraph-server").join("graphs.py"),
        folder.join("graphs.py"),
    )?;
    let graphs = json!({ "dependencies": ["."], "graphs": { "chain": "./graphs.py:chain" } });
    fs::write(folder.join(settings), graphs.to_string())?;
    Ok(folder)
}

fn version(tokio: &Runtime, process: &SpawnedServer) -> anyhow::Result<String> {
    let info = tokio.block_on(async {
        let mut connection = Connection::open(process.address).await?;
        connection.json("GET", INFO, "").await
    })?;
    let version = info["version"].as_str();
    Ok(version
        .context("a server tells its version at /info")?
        .to_owned())
}

fn ensure_new_enough(python: &str) -> anyhow::Result<()> {
    let asked = "import sys; print(sys.version_info >= (3, 12))";
    let answer = output_of(Command::new(python).args(["-c", asked]))?;
    ensure!(
        answer.trim() == "True",
        "`{python}` is older than Python 3.12"
    );
    Ok(())
}

/// Where all of them say which version they are.
const INFO: &str = "/info";
