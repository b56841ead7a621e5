//! DOM tree of an HTML document, built by html5ever within limits.
//!
//! For many tags html5ever searches all open elements, and for each attribute all other attributes of its tag. Limits on depth
//! and on attributes per tag keep the time proportional to the length of the text.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, ExpandedName, LocalName, ParseOpts, QualName, ns, parse_document};

/// A parsed document.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Why the rest of the text is missing; empty if all of it was parsed.
    pub(super) cut: &'static str,
}

/// A node of the document; its links are indices of other nodes.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) data: Data,
    depth: usize,
    parent: Option<usize>,
    pub(super) first_child: Option<usize>,
    last_child: Option<usize>,
    previous: Option<usize>,
    pub(super) next: Option<usize>,
}

/// Content of a node.
#[derive(Debug)]
pub(super) enum Data {
    Element(Element),
    Text(String),
    Comment(String),
    /// The document itself.
    Other,
}

/// An element with its attributes, in source order.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: Rc<QualName>,
    pub(super) attributes: Vec<(String, String)>,
}

impl Element {
    pub(super) fn name(&self) -> &str {
        &self.name.local
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

impl Tree {
    /// Parses HTML up to the limits.
    pub(super) fn read(html: &str) -> Self {
        let (html, mut cut) = within_limits(html);
        let sink = Sink::default();
        let stop = sink.stop.clone();
        let mut parser = parse_document(sink, ParseOpts::default());
        let mut rest = html;
        while !rest.is_empty() {
            if !stop.get().is_empty() {
                cut = stop.get();
                break;
            }
            let end = rest.floor_char_boundary(PIECE_BYTES.min(rest.len()));
            let (piece, further) = rest.split_at(end.max(1));
            parser.process(StrTendril::from(piece));
            rest = further;
        }
        let nodes = parser.finish();
        Self { nodes, cut }
    }

    pub(super) fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// Returns all nodes, in the order in which they were created.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Index of the document node.
    pub(super) const ROOT: usize = 0;
}

/// Returns the part of the text within the limits, and why the rest is missing.
fn within_limits(html: &str) -> (&str, &'static str) {
    let (head, mut cut) = match html.len() > HTML_BYTES_MAX {
        true => (
            &html[..html.floor_char_boundary(HTML_BYTES_MAX)],
            "everything after the first 1 MiB of HTML",
        ),
        false => (html, ""),
    };
    let end = before_too_many_attributes(head.as_bytes());
    if end < head.len() {
        cut = "everything after a tag with more than 200 attributes";
    }
    (&head[..end], cut)
}

/// Returns where the first tag with too many attributes begins, or the end of the text.
fn before_too_many_attributes(html: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = html[at..].iter().position(|byte| *byte == b'<') {
        let begin = at + found;
        at = begin + 1;
        let is_tag = html
            .get(at)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'/');
        if is_tag {
            match end_of_tag(html, at) {
                Some(end) => at = end,
                None => return begin,
            }
        }
    }
    html.len()
}

/// Returns where the tag ends whose name begins at `begin`; `None` if it has too many attributes.
fn end_of_tag(html: &[u8], begin: usize) -> Option<usize> {
    let is_space = |byte: u8| byte.is_ascii_whitespace();
    let skip = |from: usize, stop: &dyn Fn(u8) -> bool| {
        html[from..]
            .iter()
            .position(|byte| stop(*byte))
            .map_or(html.len(), |found| from + found)
    };
    let mut at = skip(begin + 1, &|byte| {
        is_space(byte) || byte == b'/' || byte == b'>'
    });
    let mut attributes = 0;
    loop {
        at = skip(at, &|byte| !is_space(byte) && byte != b'/');
        if at >= html.len() || html[at] == b'>' {
            return Some(at);
        }
        attributes += 1;
        if attributes > ATTRIBUTES_MAX {
            return None;
        }
        // An attribute name may begin with `=`.
        at = skip(at + 1, &|byte| {
            is_space(byte) || matches!(byte, b'/' | b'>' | b'=')
        });
        let value = skip(at, &|byte| !is_space(byte));
        if html.get(value) != Some(&b'=') {
            continue;
        }
        at = skip(value + 1, &|byte| !is_space(byte));
        at = match html.get(at).copied() {
            Some(quote @ (b'"' | b'\'')) => skip(at + 1, &|byte| byte == quote) + 1,
            Some(_) => skip(at, &|byte| is_space(byte) || byte == b'>'),
            None => at,
        };
        if at >= html.len() {
            return Some(html.len());
        }
    }
}

/// Sink in which html5ever builds the tree.
struct Sink {
    nodes: RefCell<Vec<Node>>,
    stop: Rc<Cell<&'static str>>,
}

/// A reference to a node, as html5ever holds it.
#[derive(Clone)]
struct Handle {
    at: usize,
    name: Rc<QualName>,
}

impl Default for Sink {
    fn default() -> Self {
        let sink = Self {
            nodes: RefCell::default(),
            stop: Rc::default(),
        };
        sink.add(Data::Other);
        sink
    }
}

impl Sink {
    fn add(&self, data: Data) -> usize {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node {
            data,
            depth: 0,
            parent: None,
            first_child: None,
            last_child: None,
            previous: None,
            next: None,
        });
        if nodes.len() > NODES_MAX {
            self.stop.set("everything after 200000 elements");
        }
        nodes.len() - 1
    }

    fn nameless(at: usize) -> Handle {
        let name = QualName::new(None, ns!(), LocalName::from(""));
        Handle {
            at,
            name: Rc::new(name),
        }
    }

    fn detach(&self, at: usize) {
        let mut nodes = self.nodes.borrow_mut();
        let (parent, previous, next) = (nodes[at].parent, nodes[at].previous, nodes[at].next);
        match previous {
            Some(previous) => nodes[previous].next = next,
            None => {
                if let Some(parent) = parent {
                    nodes[parent].first_child = next;
                }
            }
        }
        match next {
            Some(next) => nodes[next].previous = previous,
            None => {
                if let Some(parent) = parent {
                    nodes[parent].last_child = previous;
                }
            }
        }
        let node = &mut nodes[at];
        (node.parent, node.previous, node.next) = (None, None, None);
    }

    /// Moves a node under a parent, before a child or, without one, to the end.
    fn insert(&self, parent: usize, at: usize, before: Option<usize>) {
        self.detach(at);
        let mut nodes = self.nodes.borrow_mut();
        let previous = match before {
            Some(before) => nodes[before].previous.replace(at),
            None => nodes[parent].last_child.replace(at),
        };
        match previous {
            Some(previous) => nodes[previous].next = Some(at),
            None => nodes[parent].first_child = Some(at),
        }
        let depth = nodes[parent].depth + 1;
        let node = &mut nodes[at];
        node.parent = Some(parent);
        node.previous = previous;
        node.next = before;
        node.depth = depth;
        if depth > DEPTH_MAX {
            self.stop.set("everything nested deeper than 200 elements");
        }
    }

    /// Appends to the adjacent text node, or creates one.
    fn insert_text(&self, parent: usize, text: &str, before: Option<usize>) {
        let neighbour = {
            let nodes = self.nodes.borrow();
            match before {
                Some(before) => nodes[before].previous,
                None => nodes[parent].last_child,
            }
        };
        if let Some(neighbour) = neighbour
            && let Data::Text(known) = &mut self.nodes.borrow_mut()[neighbour].data
        {
            known.push_str(text);
            return;
        }
        let at = self.add(Data::Text(text.to_owned()));
        self.insert(parent, at, before);
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = Vec<Node>;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Vec<Node> {
        self.nodes.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Self::nameless(Tree::ROOT)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        _: ElementFlags,
    ) -> Handle {
        let name = Rc::new(name);
        let attributes = attributes.into_iter().map(|attribute| {
            (
                attribute.name.local.to_string(),
                attribute.value.to_string(),
            )
        });
        let at = self.add(Data::Element(Element {
            name: name.clone(),
            attributes: attributes.collect(),
        }));
        Handle { at, name }
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        Self::nameless(self.add(Data::Comment(text.to_string())))
    }

    fn create_pi(&self, _: StrTendril, data: StrTendril) -> Handle {
        Self::nameless(self.add(Data::Comment(data.to_string())))
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        match child {
            NodeOrText::AppendNode(node) => self.insert(parent.at, node.at, None),
            NodeOrText::AppendText(text) => self.insert_text(parent.at, &text, None),
        }
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        previous: &Handle,
        child: NodeOrText<Handle>,
    ) {
        let has_parent = self.nodes.borrow()[element.at].parent.is_some();
        match has_parent {
            true => self.append_before_sibling(element, child),
            false => self.append(previous, child),
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// A template's content is never shown, so it can stay in the template element.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.at == other.at
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, node: NodeOrText<Handle>) {
        let Some(parent) = self.nodes.borrow()[sibling.at].parent else {
            return;
        };
        match node {
            NodeOrText::AppendNode(node) => self.insert(parent, node.at, Some(sibling.at)),
            NodeOrText::AppendText(text) => self.insert_text(parent, &text, Some(sibling.at)),
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        if let Data::Element(element) = &mut self.nodes.borrow_mut()[target.at].data {
            for attribute in attributes {
                let name = attribute.name.local.to_string();
                if element.attribute(&name).is_none() && element.attributes.len() < ATTRIBUTES_MAX {
                    element.attributes.push((name, attribute.value.to_string()));
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.at);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        loop {
            let first = self.nodes.borrow()[node.at].first_child;
            match first {
                Some(first) => self.insert(new_parent.at, first, None),
                None => return,
            }
        }
    }
}

/// Maximum length of HTML that is parsed, in bytes.
pub(super) const HTML_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 200;
const ATTRIBUTES_MAX: usize = 200;
const NODES_MAX: usize = 200_000;
/// Number of bytes parsed between two checks of the limits.
const PIECE_BYTES: usize = 256;
