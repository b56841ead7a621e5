//! The program on a machine without a network: everything starts and runs, and a recording of its system calls shows that it never
//! tries to reach another machine.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use serde_json::json;
use superstep_conformance::services;

use crate::kit::Workdir;
use crate::mail::triage_of;

#[test]
fn everything_runs_with_loopback_alone_and_nothing_calls_another_machine() {
    assert_eq!(run_recorded(&workdir()), BTreeSet::new());
}

/// Without this, a recording that sees nothing would pass.
#[test]
fn the_recording_shows_a_call_to_another_machine() {
    let workdir =
        workdir().with_environment("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:4318");
    assert_eq!(
        run_recorded(&workdir),
        BTreeSet::from(["192.0.2.1".to_owned()])
    );
}

fn workdir() -> Workdir {
    let replies = json!([triage_of("bob@example.com", "ignore")]);
    Workdir::scripted(&replies).with_environment("ARCHIE_PYTHON", &services::program("sandbox"))
}

/// Runs `demo`, then `serve` with a client, in a network namespace that has loopback alone, and returns the addresses of other
/// machines that either tried to reach.
fn run_recorded(workdir: &Workdir) -> BTreeSet<String> {
    let archie = workdir.command();
    let record = workdir.path("record");
    let mut run = Command::new("unshare");
    run.arg("--net");
    // Root needs no namespace of users to get one of networks, and in one it could not become the user of the sandbox.
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        run.args(["--map-current-user", "--keep-caps"]);
    }
    let run = run
        .args(["/usr/bin/python3", "-c", IN_THE_NAMESPACE])
        .arg(archie.get_program())
        .arg(&record)
        .current_dir(workdir.path(""))
        .env_clear()
        .envs(
            archie
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    let mut foreign = BTreeSet::new();
    for name in ["record.demo", "record.serve"] {
        let calls = fs::read_to_string(workdir.path(name)).unwrap();
        foreign.extend(calls.lines().filter_map(foreign_address));
    }
    foreign
}

/// Returns the address in a recorded call, unless it is one of this machine.
fn foreign_address(call: &str) -> Option<String> {
    let (_, after) = call
        .split_once("inet_addr(\"")
        .or_else(|| call.split_once("inet_pton(AF_INET6, \""))?;
    let (address, _) = after.split_once('"')?;
    let address: std::net::IpAddr = address.parse().unwrap();
    (!address.is_loopback()).then(|| address.to_string())
}

#[test]
fn addresses_are_read_from_a_recording() {
    let call = r#"7 connect(9, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.1")}, 16) = -1 ENETUNREACH"#;
    assert_eq!(foreign_address(call).as_deref(), Some("192.0.2.1"));
    let call = r#"7 sendto(9, "x", 1, 0, {sa_family=AF_INET6, sin6_port=htons(53), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28) = 1"#;
    assert_eq!(foreign_address(call).as_deref(), Some("2001:db8::1"));
    let call = r#"7 connect(9, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#;
    assert_eq!(foreign_address(call), None);
    let call = r#"7 connect(9, {sa_family=AF_UNIX, sun_path="/run/socket"}, 110) = -1 ENOENT"#;
    assert_eq!(foreign_address(call), None);
}

/// A namespace begins with loopback down; the first call does what `ip link set lo up` does, and is the last that needs capabilities.
/// `strace` writes down every call that can send anything to an address.
const IN_THE_NAMESPACE: &str = r#"
import fcntl, json, os, signal, socket, struct, subprocess, sys, time, urllib.request

fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh22x', b'lo', 0x41))
archie, record = sys.argv[1:]

def recorded(name, *args):
    calls = 'trace=connect,sendto,sendmsg,sendmmsg'
    return ['setpriv', '--inh-caps=-all', '--ambient-caps=-all', 'strace', '-f', '-qq', '--seccomp-bpf', '-e', calls, '-o', f'{record}.{name}', archie, *args]

subprocess.run(recorded('demo', 'demo', '--json'), check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

server = subprocess.Popen(recorded('serve', 'serve', '--listen', '127.0.0.1:2024'), stdout=subprocess.PIPE, text=True)
server.stdout.readline()

def call(method, path, body=None):
    body = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request('http://127.0.0.1:2024' + path, body, {'content-type': 'application/json'}, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read()

mail = {'id': 'q4', 'message_id': 'q4@x', 'from': 'Bob <bob@example.com>', 'to': 'alice@example.com',
        'account': 'alice@example.com', 'subject': 'Q4 report?', 'page_content': 'When is the report ready?'}
thread = json.loads(call('POST', '/threads', {'graph_id': 'email_assistant'}))['thread_id']
values = json.loads(call('POST', f'/threads/{thread}/runs/wait', {'assistant_id': 'email_assistant', 'input': {'email_input': mail}}))
assert values['classification_decision'] == 'ignore', values
for page in ['/ok', '/info', '/openapi.json', '/studio/', '/metrics', '/superstep/ready']:
    call('GET', page)

# The signal goes to the program, which `strace` started.
with open(f'/proc/{server.pid}/task/{server.pid}/children') as children:
    os.kill(int(children.read().split()[0]), signal.SIGTERM)
assert server.wait(timeout=60) == 0, server.returncode
"#;
