//! The nodes of a graph by name.

use std::collections::BTreeMap;

use crate::graph::NodeDef;
use crate::ids::NodeName;

/// The nodes of a graph, sorted by name.
///
/// A superstep looks up its nodes several times, and nearly always by a clone of the name that is in the table: plans copy the
/// names of edges, which are clones of those in the table. Comparing pointers finds such a name without comparing text.
pub(crate) struct NodeTable {
    names: Vec<NodeName>,
    /// Addresses of the first names, which stay theirs as long as `names` holds them.
    addresses: Vec<usize>,
    /// In the order of `names`.
    nodes: Vec<NodeDef>,
}

/// Number of names to compare by pointer. In a larger graph, a search by text is quicker than going through all of them.
const POINTERS_MAX: usize = 32;

impl NodeTable {
    pub(crate) fn new(nodes: BTreeMap<NodeName, NodeDef>) -> Self {
        let (names, nodes): (Vec<NodeName>, _) = nodes.into_iter().unzip();
        let first = names.iter().take(POINTERS_MAX);
        let mut table = Self {
            addresses: first.map(NodeName::address).collect(),
            names,
            nodes,
        };
        let targets = table
            .nodes
            .iter_mut()
            .flat_map(|node| &mut node.routing.edges);
        for target in targets.flatten() {
            own(&table.names, target);
        }
        table
    }

    /// Replaces a name by a clone of the equal one in this table.
    pub(crate) fn own(&self, name: &mut NodeName) {
        own(&self.names, name);
    }

    fn position(&self, name: &NodeName) -> Option<usize> {
        let address = name.address();
        let found = self.addresses.iter().position(|own| *own == address);
        found.or_else(|| self.names.binary_search(name).ok())
    }

    pub(crate) fn get(&self, name: &NodeName) -> Option<&NodeDef> {
        self.position(name).map(|at| &self.nodes[at])
    }

    pub(crate) fn contains_key(&self, name: &NodeName) -> bool {
        self.position(name).is_some()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &NodeName> {
        self.names.iter()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeName, &NodeDef)> {
        self.names.iter().zip(&self.nodes)
    }
}

fn own(names: &[NodeName], name: &mut NodeName) {
    if let Ok(at) = names.binary_search(name) {
        name.clone_from(&names[at]);
    }
}
