//! What a Restate node is told: the text of its configuration file.
//!
//! Only what differs from the server's own defaults, and what tests rely on. The server says nothing about keys that it
//! does not know, so `cargo xtask services drill` asks it what it has.

use super::Layout;

/// Where one node listens, always on loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodePorts {
    /// For the other nodes and `restatectl`.
    pub(super) fabric: u16,
    pub(super) ingress: u16,
    pub(super) admin: u16,
}

impl NodePorts {
    pub(super) fn all(self) -> [u16; 3] {
        [self.fabric, self.ingress, self.admin]
    }

    pub(super) fn fabric_url(self) -> String {
        format!("http://127.0.0.1:{}", self.fabric)
    }
}

/// One line a node.
pub(super) fn write_ports(nodes: &[NodePorts]) -> String {
    let line = |node: &NodePorts| format!("{} {} {}\n", node.fabric, node.ingress, node.admin);
    nodes.iter().map(line).collect()
}

/// None if the text is not what [`write_ports`] writes for so many nodes.
pub(super) fn read_ports(text: &str, count: usize) -> Option<Vec<NodePorts>> {
    let node = |line: &str| {
        let ports: Result<Vec<u16>, _> = line.split(' ').map(str::parse).collect();
        let [fabric, ingress, admin] = ports.ok()?.try_into().ok()?;
        Some(NodePorts {
            fabric,
            ingress,
            admin,
        })
    };
    let nodes: Option<Vec<NodePorts>> = text.lines().map(node).collect();
    nodes.filter(|nodes| nodes.len() == count)
}

pub(super) fn node_name(index: usize) -> String {
    format!("n{}", index + 1)
}

/// The file of the node with this index.
pub(super) fn render(cluster: &str, layout: Layout, nodes: &[NodePorts], index: usize) -> String {
    let name = node_name(index);
    let NodePorts {
        fabric,
        ingress,
        admin,
    } = nodes[index];
    let (partitions, replication) = (layout.partitions(), layout.replication());
    // Several would each make a cluster of its own.
    let provision = index == 0;
    let peers: Vec<String> = nodes
        .iter()
        .map(|node| format!("\"{}\"", node.fabric_url()))
        .collect();
    let peers = peers.join(", ");
    format!(
        r#"cluster-name = "{cluster}"
node-name = "{name}"
auto-provision = {provision}
default-num-partitions = {partitions}
default-replication = {replication}
listen-mode = "tcp"
bind-address = "127.0.0.1:{fabric}"
advertised-address = "http://127.0.0.1:{fabric}"
disable-telemetry = true
log-format = "compact"
log-disable-ansi-codes = true
rocksdb-total-memory-size = "{ROCKSDB_MEMORY}"

[metadata-client]
type = "replicated"
addresses = [{peers}]

[bifrost]
default-provider = "replicated"

[ingress]
bind-address = "127.0.0.1:{ingress}"

[admin]
bind-address = "127.0.0.1:{admin}"
{BEHAVIOUR}"#
    )
}

/// What happens to handlers that say nothing about it themselves. Retries come soon and never give up, so that no test
/// waits for a back-off or finds its call paused; the timeouts are the server's own, as users will meet them.
const BEHAVIOUR: &str = r#"
[default-retry-policy]
initial-interval = "50ms"
exponentiation-factor = 2.0
max-interval = "2s"
max-attempts = "unlimited"

[worker.invoker]
inactivity-timeout = "1m"
abort-timeout = "10m"
"#;

/// A bound, not what it takes: an idle node takes about 160 MB in all.
const ROCKSDB_MEMORY: &str = "512 MiB";

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodePorts; 3] = [node(1), node(2), node(3)];

    const fn node(number: u16) -> NodePorts {
        NodePorts {
            fabric: 25_120 + number,
            ingress: 28_080 + number,
            admin: 29_070 + number,
        }
    }

    #[test]
    fn a_single_node_makes_its_own_cluster() {
        let text = render("alone", Layout::Single, &NODES[..1], 0);
        let expected = r#"cluster-name = "alone"
node-name = "n1"
auto-provision = true
default-num-partitions = 4
default-replication = 1
listen-mode = "tcp"
bind-address = "127.0.0.1:25121"
advertised-address = "http://127.0.0.1:25121"
disable-telemetry = true
log-format = "compact"
log-disable-ansi-codes = true
rocksdb-total-memory-size = "512 MiB"

[metadata-client]
type = "replicated"
addresses = ["http://127.0.0.1:25121"]

[bifrost]
default-provider = "replicated"

[ingress]
bind-address = "127.0.0.1:28081"

[admin]
bind-address = "127.0.0.1:29071"

[default-retry-policy]
initial-interval = "50ms"
exponentiation-factor = 2.0
max-interval = "2s"
max-attempts = "unlimited"

[worker.invoker]
inactivity-timeout = "1m"
abort-timeout = "10m"
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn the_nodes_of_a_cluster_know_each_other_and_one_makes_it() {
        for index in 0..3 {
            let text = render("three", Layout::Cluster, &NODES, index);
            let has = |line: &str| assert!(text.lines().any(|found| found == line), "{line}");
            has(&format!("node-name = \"n{}\"", index + 1));
            has(&format!("auto-provision = {}", index == 0));
            has("default-num-partitions = 8");
            has("default-replication = 2");
            has(
                r#"addresses = ["http://127.0.0.1:25121", "http://127.0.0.1:25122", "http://127.0.0.1:25123"]"#,
            );
        }
    }

    #[test]
    fn every_address_is_loopback() {
        let text = render("three", Layout::Cluster, &NODES, 1);
        let addresses = text.lines().filter(|line| line.contains("bind-address"));
        assert_eq!(
            addresses.collect::<Vec<_>>(),
            [
                r#"bind-address = "127.0.0.1:25122""#,
                r#"bind-address = "127.0.0.1:28082""#,
                r#"bind-address = "127.0.0.1:29072""#
            ]
        );
    }

    #[test]
    fn ports_are_read_as_they_were_written() {
        let text = write_ports(&NODES);
        assert_eq!(read_ports(&text, 3).as_deref(), Some(&NODES[..]));
        for half in [
            "",
            "25121 28081 29071\n25122 280",
            "25121 28081\n1 2 3\n1 2 3\n",
        ] {
            assert_eq!(read_ports(half, 3), None, "{half:?}");
        }
    }
}
