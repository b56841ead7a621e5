//! What a Restate says about itself: which nodes are well, and who leads which partition. Asked of `restatectl`, which asks
//! any node that answers; judged here.

use std::fmt;

use anyhow::Context;
use serde_json::Value as Json;

/// How well a Restate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    pub nodes: usize,
    pub nodes_well: usize,
    pub partitions: usize,
    /// With a leader that is at work on a node that is well.
    pub partitions_led: usize,
}

impl Health {
    /// Every node is well and every partition has a leader.
    pub fn is_whole(&self) -> bool {
        self.nodes_well == self.nodes && self.all_led()
    }

    /// Every partition has a leader, though a node may be gone.
    pub fn all_led(&self) -> bool {
        self.partitions_led == self.partitions
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} nodes are well, {} of {} partitions have a leader",
            self.nodes_well, self.nodes, self.partitions_led, self.partitions
        )
    }
}

/// A partition, its leader and its replicas, with nodes as indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    pub number: u64,
    /// None while there is none at work.
    pub leader: Option<usize>,
    pub replicas: Vec<usize>,
}

/// The cluster as its nodes see it.
#[derive(Debug, Default)]
pub(super) struct View {
    nodes: Vec<Node>,
    pub(super) partitions: Vec<Partition>,
}

#[derive(Debug)]
struct Node {
    /// `N2`: who comes second gets it, so it need not be the node called `n2`.
    id: String,
    index: usize,
    /// The others hear from it, and it has a vote on metadata: with fewer votes the cluster would not outlive a node.
    takes_part: bool,
}

impl View {
    /// From the rows that the two queries give.
    pub(super) fn new(nodes: &Json, partitions: &Json) -> anyhow::Result<Self> {
        let nodes: Vec<Node> = rows(nodes)?.iter().filter_map(node).collect();
        let index = |id: &str| Some(nodes.iter().find(|node| node.id == id)?.index);
        let partition = |row: &Json| {
            let leads = row["effective_mode"] == "Leader";
            let leader = row["leader_plain_node_id"].as_str().filter(|_| leads);
            let replicas = row["current_replica_set"].as_str()?;
            Some(Partition {
                number: row["partition_id"].as_u64()?,
                leader: leader.and_then(index),
                replicas: replicas.split(',').filter_map(&index).collect(),
            })
        };
        let partitions = rows(partitions)?.iter().filter_map(partition).collect();
        Ok(Self { nodes, partitions })
    }

    /// Given which nodes answer: the others notice only after a while that one does not.
    pub(super) fn health(&self, answering: &[bool], partitions: usize) -> Health {
        let well = |index: usize| {
            let mut found = self.nodes.iter();
            answering[index] && found.any(|node| node.index == index && node.takes_part)
        };
        let led = |partition: &&Partition| {
            let leader = partition.leader;
            leader.is_some_and(|leader| well(leader) && partition.replicas.contains(&leader))
        };
        Health {
            nodes: answering.len(),
            nodes_well: (0..answering.len()).filter(|index| well(*index)).count(),
            partitions,
            partitions_led: self.partitions.iter().filter(led).count(),
        }
    }

    /// What `restatectl` calls the node with this index.
    pub(super) fn number_of(&self, index: usize) -> Option<&str> {
        let node = self.nodes.iter().find(|node| node.index == index)?;
        node.id.strip_prefix('N')
    }
}

fn rows(json: &Json) -> anyhow::Result<&Vec<Json>> {
    json.as_array().context("restatectl did not print rows")
}

fn node(row: &Json) -> Option<Node> {
    let number: usize = row["name"].as_str()?.strip_prefix('n')?.parse().ok()?;
    Some(Node {
        id: row["plain_node_id"].as_str()?.to_owned(),
        index: number.checked_sub(1)?,
        takes_part: row["state"] == "alive" && row["metadata_server_state"] == "member",
    })
}

pub(super) const NODES: &str =
    "SELECT name, plain_node_id, state, metadata_server_state FROM nodes";

/// A node is the leader when the others take it for that, and when it says so itself.
pub(super) const PARTITIONS: &str = "SELECT p.partition_id, p.leader_plain_node_id, p.current_replica_set, s.effective_mode \
     FROM partitions p LEFT JOIN partition_state s \
     ON s.partition_id = p.partition_id AND s.gen_node_id = p.leader_gen_node_id \
     ORDER BY p.partition_id";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nodes() -> Json {
        // The third came second.
        json!([
            {"name": "n1", "plain_node_id": "N1", "state": "alive", "metadata_server_state": "member"},
            {"name": "n3", "plain_node_id": "N2", "state": "alive", "metadata_server_state": "member"},
            {"name": "n2", "plain_node_id": "N3", "state": "alive", "metadata_server_state": "member"},
        ])
    }

    fn partitions() -> Json {
        json!([
            {"partition_id": 0, "leader_plain_node_id": "N1", "current_replica_set": "N1,N2", "effective_mode": "Leader"},
            {"partition_id": 1, "leader_plain_node_id": "N2", "current_replica_set": "N3,N2", "effective_mode": "Leader"},
        ])
    }

    fn health(nodes: &Json, partitions: &Json, answering: [bool; 3]) -> String {
        let health = View::new(nodes, partitions).unwrap().health(&answering, 2);
        format!("{} {}", health.nodes_well, health.partitions_led)
    }

    #[test]
    fn nodes_are_known_by_their_names() {
        let view = View::new(&nodes(), &partitions()).unwrap();
        assert_eq!(
            view.partitions[1],
            Partition {
                number: 1,
                leader: Some(2),
                replicas: vec![1, 2]
            }
        );
        assert_eq!(view.number_of(2), Some("2"));
        assert_eq!(view.number_of(1), Some("3"));
        assert_eq!(health(&nodes(), &partitions(), [true; 3]), "3 2");
    }

    #[test]
    fn a_leader_that_does_not_answer_leads_nothing() {
        assert_eq!(health(&nodes(), &partitions(), [true, true, false]), "2 1");
    }

    #[test]
    fn a_leader_is_one_when_it_says_so_itself_and_is_a_replica() {
        let mut partitions = partitions();
        partitions[0]["effective_mode"] = json!("Follower");
        partitions[1]["current_replica_set"] = json!("N1,N3");
        assert_eq!(health(&nodes(), &partitions, [true; 3]), "3 0");
    }

    #[test]
    fn a_node_without_a_vote_on_metadata_is_not_well_yet() {
        let mut nodes = nodes();
        nodes[0]["metadata_server_state"] = json!("standby");
        assert_eq!(health(&nodes, &partitions(), [true; 3]), "2 1");
    }

    #[test]
    fn a_node_that_nobody_has_heard_of_is_not_well() {
        assert_eq!(health(&json!([]), &json!([]), [true; 3]), "0 0");
        assert!(View::new(&json!({}), &json!([])).is_err());
    }
}
