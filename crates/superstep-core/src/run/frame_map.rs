//! A map by frame. Most threads have one frame, the root, which needs no tree.

use std::collections::{BTreeMap, btree_map};
use std::ops::Index;

use crate::ids::FramePath;

static ROOT: FramePath = FramePath::root();

/// A map by frame, in the order of paths: the root comes first, and a frame comes before those below it.
#[derive(Debug, Clone)]
pub(crate) struct FrameMap<V> {
    root: Option<V>,
    below: BTreeMap<FramePath, V>,
}

impl<V> FrameMap<V> {
    pub(crate) const fn new() -> Self {
        Self {
            root: None,
            below: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&self, path: &FramePath) -> Option<&V> {
        match path.is_root() {
            true => self.root.as_ref(),
            false => self.below.get(path),
        }
    }

    pub(crate) fn get_mut(&mut self, path: &FramePath) -> Option<&mut V> {
        match path.is_root() {
            true => self.root.as_mut(),
            false => self.below.get_mut(path),
        }
    }

    pub(crate) fn contains_key(&self, path: &FramePath) -> bool {
        self.get(path).is_some()
    }

    pub(crate) fn insert(&mut self, path: FramePath, value: V) -> Option<V> {
        match path.is_root() {
            true => self.root.replace(value),
            false => self.below.insert(path, value),
        }
    }

    pub(crate) fn remove(&mut self, path: &FramePath) -> Option<V> {
        match path.is_root() {
            true => self.root.take(),
            false => self.below.remove(path),
        }
    }

    pub(crate) fn pop_first(&mut self) -> Option<(FramePath, V)> {
        match self.root.take() {
            Some(root) => Some((FramePath::root(), root)),
            None => self.below.pop_first(),
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.root.is_some()) + self.below.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none() && self.below.is_empty()
    }

    /// Whether there is any frame below `path`.
    pub(crate) fn has_below(&self, path: &FramePath) -> bool {
        self.below.keys().any(|frame| frame.is_below(path))
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&FramePath, &V)> {
        let root = self.root.iter().map(|root| (&ROOT, root));
        root.chain(&self.below)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&FramePath, &mut V)> {
        let root = self.root.iter_mut().map(|root| (&ROOT, root));
        root.chain(&mut self.below)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &FramePath> {
        self.iter().map(|(path, _)| path)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.root.iter().chain(self.below.values())
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.root.iter_mut().chain(self.below.values_mut())
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&FramePath, &mut V) -> bool) {
        self.root.take_if(|root| !keep(&ROOT, root));
        self.below.retain(keep);
    }
}

impl<V: Default> FrameMap<V> {
    pub(crate) fn or_default(&mut self, path: &FramePath) -> &mut V {
        match path.is_root() {
            true => self.root.get_or_insert_default(),
            false => self.below.entry(path.clone()).or_default(),
        }
    }
}

impl<V> Default for FrameMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Index<&FramePath> for FrameMap<V> {
    type Output = V;

    fn index(&self, path: &FramePath) -> &V {
        self.get(path).expect("the frame is in the map")
    }
}

impl<V> FromIterator<(FramePath, V)> for FrameMap<V> {
    fn from_iter<I: IntoIterator<Item = (FramePath, V)>>(pairs: I) -> Self {
        let mut map = Self::new();
        map.extend(pairs);
        map
    }
}

impl<V> Extend<(FramePath, V)> for FrameMap<V> {
    fn extend<I: IntoIterator<Item = (FramePath, V)>>(&mut self, pairs: I) {
        for (path, value) in pairs {
            self.insert(path, value);
        }
    }
}

impl<V> IntoIterator for FrameMap<V> {
    type Item = (FramePath, V);
    type IntoIter =
        std::iter::Chain<std::option::IntoIter<(FramePath, V)>, btree_map::IntoIter<FramePath, V>>;

    fn into_iter(self) -> Self::IntoIter {
        let root = self.root.map(|root| (FramePath::root(), root));
        root.into_iter().chain(self.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeName;

    fn path(nodes: &[&str]) -> FramePath {
        let child = |path: FramePath, node: &&str| path.child(NodeName::new(node).unwrap(), None);
        nodes.iter().fold(FramePath::root(), child)
    }

    #[test]
    fn behaves_as_a_tree_does() {
        let paths = [path(&["b"]), path(&[]), path(&["a", "b"]), path(&["a"])];
        let pairs = || paths.iter().cloned().zip(0..);
        let (mut map, mut tree): (FrameMap<_>, BTreeMap<_, _>) =
            (pairs().collect(), pairs().collect());
        loop {
            assert!(map.iter().eq(&tree));
            assert!(map.iter().rev().eq(tree.iter().rev()));
            assert!(map.keys().eq(tree.keys()) && map.values().eq(tree.values()));
            assert!(map.clone().into_iter().eq(tree.clone()));
            assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
            for path in &paths {
                assert_eq!(map.get(path), tree.get(path));
                let has_below = tree.keys().any(|frame| frame.is_below(path));
                assert_eq!(map.has_below(path), has_below);
            }
            let first = map.pop_first();
            assert_eq!(first, tree.pop_first());
            if first.is_none() {
                break;
            }
        }
        map.extend(pairs());
        map.retain(|path, value| !path.is_root() && *value > 0);
        assert!(map.keys().eq([&path(&["a"]), &path(&["a", "b"])]));
        assert_eq!(
            (map.insert(path(&[]), 7), map.remove(&path(&[]))),
            (None, Some(7))
        );
    }
}
