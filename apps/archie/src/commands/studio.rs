//! `archie studio`: the web page of the server, in a browser.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use archie_agent::{AgentFactory, Exit, Terminal};

use crate::cli::args::StudioArgs;
use crate::cli::settings::Settings;
use crate::commands::serve;
use crate::terminal::{Console, print_error};

/// Opens the page of the server that listens at the address, or starts one there and opens its page.
pub(super) fn run(
    args: &StudioArgs,
    settings: &Settings,
    makers: &[AgentFactory],
    terminal: &Console,
) -> anyhow::Result<Exit> {
    let open = |address: SocketAddr| {
        if !args.no_browser {
            open_browser(&page_at(address));
        }
    };
    let address = args.serve.listen;
    if serves_studio(address) {
        terminal.line(&format!("Studio at {}", page_at(address)));
        open(address);
        return Ok(Exit::Done);
    }
    serve::run(&args.serve, settings, makers, terminal, &open)
}

fn page_at(address: SocketAddr) -> String {
    format!("http://{address}/studio/")
}

/// Returns whether a server with this page listens at an address already.
fn serves_studio(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut socket = TcpStream::connect_timeout(&address, ANSWER_TIME)?;
        socket.set_read_timeout(Some(ANSWER_TIME))?;
        write!(
            socket,
            "GET /studio/ HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        socket.take(ANSWER_BYTES).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains("<title>Superstep Studio</title>"))
}

/// Opens an address with the program that the system has for it. Without one, a person opens it: it was printed.
fn open_browser(address: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let opened = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        print_error(&format!(
            "cannot open a browser with `{program}`: {error}; open {address} yourself"
        ));
    }
}

const ANSWER_TIME: Duration = Duration::from_millis(500);
const ANSWER_BYTES: u64 = 16 * 1024;
