//! What is told about a service: whether it runs, whether it is well, and where it is. In words for people, in JSON for tests.

use serde_json::{Value as Json, json};

#[derive(Debug)]
pub(super) struct Status {
    /// All of it runs and does its work.
    pub(super) healthy: bool,
    /// What else there is to say.
    pub(super) remark: Option<String>,
    /// Its servers. None if it was never started.
    pub(super) members: Vec<Member>,
}

/// One server of a service.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) runs: bool,
    /// What each address is for, and the address.
    pub(super) urls: Vec<(&'static str, String)>,
}

impl Member {
    /// The only server of a service, which runs if it has an address.
    pub(super) fn with_url(name: &str, url: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            runs: url.is_some(),
            urls: url.map(|url| (URL, url)).into_iter().collect(),
        }
    }
}

impl Status {
    fn runs(&self) -> bool {
        self.members.iter().any(|member| member.runs)
    }

    /// The address, if there is one server with one address.
    pub(super) fn only_url(&self) -> Option<&str> {
        match self.members.as_slice() {
            [member] => member.urls.iter().find(|(what, _)| *what == URL),
            _ => None,
        }
        .map(|(_, url)| url.as_str())
    }

    /// One line, and one more for each server of several.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        if !self.runs() {
            return vec![format!(
                "{name}: does not run; `cargo xtask services up {name}` starts it"
            )];
        }
        let state = match self.healthy {
            true => "runs",
            false => "runs, but is not well",
        };
        let remark = self.remark.iter().map(|remark| format!(", {remark}"));
        let remark = remark.collect::<String>();
        match self.members.as_slice() {
            [member] => vec![format!("{name}: {state}{remark}, {}", addresses(member))],
            members => {
                let line = |member: &Member| match member.runs {
                    true => format!("  {}: {}", member.name, addresses(member)),
                    false => format!("  {}: does not run", member.name),
                };
                let first = format!("{name}: {state}{remark}");
                std::iter::once(first)
                    .chain(members.iter().map(line))
                    .collect()
            }
        }
    }

    pub(super) fn to_json(&self, name: &str) -> Json {
        let node = |member: &Member| {
            let mut node = json!({"name": member.name, "runs": member.runs});
            for (what, url) in &member.urls {
                node[*what] = json!(url);
            }
            node
        };
        json!({
            "name": name,
            "runs": self.runs(),
            "healthy": self.healthy,
            "nodes": self.members.iter().map(node).collect::<Vec<_>>(),
        })
    }
}

fn addresses(member: &Member) -> String {
    let address = |(what, url): &(&str, String)| match *what {
        URL => url.clone(),
        what => format!("{what} {url}"),
    };
    let addresses: Vec<String> = member.urls.iter().map(address).collect();
    addresses.join(", ")
}

#[expect(clippy::print_stdout, reason = "what was asked for is data")]
pub(super) fn print_lines(found: &[(&str, Status)]) {
    for line in found.iter().flat_map(|(name, status)| status.lines(name)) {
        println!("{line}");
    }
}

#[expect(clippy::print_stdout, reason = "what was asked for is data")]
pub(super) fn print_json(found: &[(&str, Status)]) {
    let services = found.iter().map(|(name, status)| status.to_json(name));
    println!("{:#}", json!({"services": services.collect::<Vec<_>>()}));
}

/// What the address of a service with only one is for.
const URL: &str = "url";

/// The addresses of what runs, as lines that a shell takes in. Several servers of one kind are one list.
#[expect(clippy::print_stdout, reason = "a shell reads it")]
pub(super) fn print_exports(name: &str, status: &Status) {
    let mut kinds: Vec<&str> = Vec::new();
    for (kind, _) in status.members.iter().flat_map(|member| &member.urls) {
        if !kinds.contains(kind) {
            kinds.push(kind);
        }
    }
    for kind in kinds {
        let of_kind = status.members.iter().flat_map(|member| &member.urls);
        let urls: Vec<&str> = of_kind
            .filter(|(of, _)| *of == kind)
            .map(|(_, url)| url.as_str())
            .collect();
        let variable = match name {
            // What `archie` itself looks at.
            super::SANDBOX => "ARCHIE_PYTHON".to_owned(),
            name => format!("{name}_{kind}").to_uppercase().replace('-', "_"),
        };
        println!("export {variable}={}", urls.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(second_runs: bool) -> Status {
        let node = |number: u16, runs| Member {
            name: format!("n{number}"),
            runs,
            urls: vec![
                ("ingress", format!("http://127.0.0.1:{}", 28_080 + number)),
                ("admin", format!("http://127.0.0.1:{}", 29_070 + number)),
            ],
        };
        Status {
            healthy: second_runs,
            remark: Some("some are well".to_owned()),
            members: vec![node(1, true), node(2, second_runs)],
        }
    }

    #[test]
    fn a_node_that_is_gone_is_told() {
        assert_eq!(
            cluster(false).lines("three").join("\n"),
            "three: runs, but is not well, some are well\n  \
             n1: ingress http://127.0.0.1:28081, admin http://127.0.0.1:29071\n  \
             n2: does not run"
        );
        assert_eq!(
            cluster(false).to_json("three"),
            json!({"name": "three", "runs": true, "healthy": false, "nodes": [
                {"name": "n1", "runs": true, "ingress": "http://127.0.0.1:28081", "admin": "http://127.0.0.1:29071"},
                {"name": "n2", "runs": false, "ingress": "http://127.0.0.1:28082", "admin": "http://127.0.0.1:29072"},
            ]})
        );
    }

    #[test]
    fn one_server_with_one_address_is_one_line_and_one_url() {
        let url = "redis://127.0.0.1:26379";
        let status = Status {
            healthy: true,
            remark: None,
            members: vec![Member::with_url("redis", Some(url.to_owned()))],
        };
        assert_eq!(status.lines("redis"), [format!("redis: runs, {url}")]);
        assert_eq!(status.only_url(), Some(url));
        assert_eq!(cluster(true).only_url(), None);
    }

    #[test]
    fn what_does_not_run_says_how_to_start_it() {
        let status = Status {
            healthy: false,
            remark: None,
            members: Vec::new(),
        };
        assert_eq!(
            status.lines("redis"),
            ["redis: does not run; `cargo xtask services up redis` starts it"]
        );
    }
}
