//! Outline of a source file: its own comment, its definitions with their doc comments, and the names that it uses.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::{Node, Parser};

use super::parse::parsed;
use super::{Language, SymbolKind};

/// What a reader takes from a source file without reading all of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outline {
    /// Comment that describes the whole file. Empty if it has none.
    pub(crate) comment: String,
    /// Definitions in the order of the source, without those inside function bodies and test modules.
    pub(crate) items: Vec<OutlineItem>,
    /// How often each identifier occurs.
    pub(crate) names: BTreeMap<String, u32>,
}

/// One definition of an outline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutlineItem {
    pub(crate) name: String,
    pub(crate) kind: SymbolKind,
    /// Whether other files may use it, by the rules or habits of the language.
    pub(crate) is_public: bool,
    /// Lines of the definition without its comment, from 1.
    pub(crate) lines: Range<u32>,
    /// Doc comment and signature.
    pub(crate) signature: String,
    /// Doc comment and the whole definition. Absent if the signature shows everything.
    pub(crate) body: Option<String>,
}

/// Reads the outline of a source text. `None` if the language has no grammar or the text cannot be parsed.
pub(crate) fn outline(language: Language, name: &str, text: &str) -> Option<Outline> {
    let mut parser = Parser::new();
    parser.set_language(&language.grammar(name)?).ok()?;
    let tree = parsed(&mut parser, text)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut reading = OutlineReading {
        language,
        text,
        exports: text.contains("export "),
        lines,
        outline: Outline::default(),
        enclosing: Vec::new(),
    };
    reading.outline.comment = file_comment(language, text, tree.root_node());
    reading.walk(tree.root_node());
    Some(reading.outline)
}

struct OutlineReading<'a> {
    language: Language,
    text: &'a str,
    lines: Vec<&'a str>,
    /// Whether a TypeScript or JavaScript file marks what it exports.
    exports: bool,
    outline: Outline,
    /// Enclosing nodes, the innermost last.
    enclosing: Vec<Enclosing>,
}

/// What a node is inside of. Summed up on the way down, so that a question about it takes one look.
#[derive(Clone, Copy, Default)]
struct Enclosing {
    /// Kind of the innermost node is `class_definition`, whose `block` is not the body of a function.
    is_class: bool,
    in_function: bool,
    /// In a trait or interface: its members are as public as it is.
    in_interface: bool,
    /// In an implementation of a trait: its methods have no visibility of their own.
    in_trait_impl: bool,
    in_tests: bool,
}

impl OutlineReading<'_> {
    fn walk(&mut self, root: Node<'_>) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            self.visit(node);
            let is_entered = self.enclosing.len() < DEPTH_MAX && cursor.goto_first_child();
            if is_entered {
                self.enclosing.push(self.enclosing_of(node));
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.enclosing.pop();
            }
        }
    }

    fn here(&self) -> Enclosing {
        self.enclosing.last().copied().unwrap_or_default()
    }

    fn enclosing_of(&self, node: Node<'_>) -> Enclosing {
        let mut inside = self.here();
        let is_class_body = std::mem::take(&mut inside.is_class) && node.kind() == "block";
        match node.kind() {
            "class_definition" => inside.is_class = true,
            "block" | "statement_block" | "function_body" | "constructor_body" => {
                inside.in_function |= !is_class_body;
            }
            "trait_item" | "interface_declaration" | "interface_type" => inside.in_interface = true,
            "impl_item" => inside.in_trait_impl = node.child_by_field_name("trait").is_some(),
            "mod_item" => inside.in_tests |= self.is_test_module(node),
            _ => {}
        }
        inside
    }

    fn is_test_module(&self, node: Node<'_>) -> bool {
        let name = node.child_by_field_name("name").map(|name| self.of(name));
        let above = node.start_position().row.checked_sub(1);
        let above = above.and_then(|row| self.lines.get(row));
        let is_marked = above.is_some_and(|above| above.contains("cfg(test)"));
        is_marked || matches!(name, Some("tests" | "test"))
    }

    fn visit(&mut self, node: Node<'_>) {
        if self.here().in_tests {
            return;
        }
        if node.child_count() == 0 && node.kind().ends_with("identifier") {
            let name = self.of(node);
            if name.len() <= NAME_BYTES_MAX {
                *self.outline.names.entry(name.to_owned()).or_default() += 1;
            }
        }
        if self.here().in_function {
            return;
        }
        match self.language.defines(node.kind()) {
            None | Some(SymbolKind::Field | SymbolKind::Variant | SymbolKind::Module) => {}
            Some(kind) => self.define(node, kind),
        }
    }

    fn define(&mut self, node: Node<'_>, kind: SymbolKind) {
        if self.outline.items.len() >= ITEMS_MAX {
            return;
        }
        let Some(name) = node.child_by_field_name("name").map(|name| self.of(name)) else {
            return;
        };
        let value = node.child_by_field_name("value");
        let function_value =
            value.filter(|value| matches!(value.kind(), "arrow_function" | "function_expression"));
        let kind = match function_value {
            Some(_) => SymbolKind::Function,
            None => kind,
        };
        let start = self.line_start(node);
        let body = node.child_by_field_name("body").or_else(|| {
            let value = function_value?;
            value.child_by_field_name("body")
        });
        let whole = self.text.get(start..node.end_byte()).unwrap_or_default();
        let head = body.and_then(|body| self.text.get(start..body.start_byte()));
        let head = head.unwrap_or(whole).trim_end();
        let is_function = matches!(kind, SymbolKind::Function | SymbolKind::Method);
        // Members of these are definitions of their own.
        let has_members = matches!(
            node.kind(),
            "trait_item" | "class_definition" | "class_declaration" | "abstract_class_declaration"
        ) || self.language == Language::Java;
        let shown = match (is_function || has_members, kind) {
            (true, _) => cut_lines(head, TYPE_LINES_MAX),
            (_, SymbolKind::Value | SymbolKind::Macro) => first_line(whole),
            _ => cut_lines(whole, TYPE_LINES_MAX),
        };
        let row = node.start_position().row;
        let mut doc = self.doc_above(row);
        if let Some(body) = body.filter(|_| self.language == Language::Python) {
            doc.push_str(&self.docstring(body));
        }
        let is_public = self.is_public(head, name);
        let item = OutlineItem {
            name: name.to_owned(),
            kind,
            is_public,
            lines: line(row)..line(node.end_position().row) + 1,
            signature: format!("{doc}{}", shown.trim_end()),
            body: (is_function && whole.trim_end() != head)
                .then(|| format!("{doc}{}", cut_lines(whole, BODY_LINES_MAX))),
        };
        self.outline.items.push(item);
    }

    /// Returns where the definition starts: at the start of its line if only words such as `export` come before it.
    fn line_start(&self, node: Node<'_>) -> usize {
        let start = node.start_byte();
        // Searching backwards for the line would read a file of one long line again for each of its definitions.
        let line = start.saturating_sub(node.start_position().column);
        let before = self.text.get(line..start).unwrap_or_default();
        let is_words = before.len() <= LINE_CHARS
            && before
                .chars()
                .all(|c| c.is_ascii_alphabetic() || c.is_whitespace());
        match is_words {
            true => line + (before.len() - before.trim_start().len()),
            false => start,
        }
    }

    /// Returns the comment right above a line, without attributes and decorators between the two.
    fn doc_above(&self, row: usize) -> String {
        let mut found: Vec<&str> = Vec::new();
        let above = self.lines.get(..row).unwrap_or_default();
        for line in above.iter().rev().take(DOC_SCAN_LINES_MAX) {
            let line = line.trim();
            let is_attribute = line.starts_with("#[") || line.starts_with('@');
            let is_comment = (line.starts_with("//") && !line.starts_with("//!"))
                || line.starts_with("/*")
                || line.starts_with('*')
                || (line.starts_with('#') && self.language == Language::Python);
            if is_comment {
                found.push(line);
            } else if !is_attribute {
                break;
            }
        }
        found.reverse();
        found.truncate(DOC_LINES_MAX);
        found
            .iter()
            .map(|line| format!("{}\n", first_line(line)))
            .collect()
    }

    /// Returns the docstring of a Python body as comment lines.
    fn docstring(&self, body: Node<'_>) -> String {
        let text = body
            .named_child(0)
            .filter(|first| first.kind() == "expression_statement")
            .and_then(|first| first.named_child(0))
            .filter(|first| first.kind() == "string")
            .map(|string| self.of(string));
        let text = text.unwrap_or_default().trim_matches(['"', '\'', 'r']);
        let lines = text.lines().map(str::trim).take(DOC_LINES_MAX);
        let lines = lines.skip_while(|line| line.is_empty());
        lines
            .take_while(|line| !line.is_empty())
            .map(|line| format!("# {}\n", first_line(line)))
            .collect()
    }

    fn is_public(&self, head: &str, name: &str) -> bool {
        let in_interface = self.here().in_interface;
        match self.language {
            Language::Rust => {
                (head.starts_with("pub ") || in_interface) && !self.here().in_trait_impl
            }
            Language::Python => !name.starts_with('_'),
            Language::Go => name.starts_with(char::is_uppercase),
            Language::Java => head.contains("public ") || in_interface,
            _ => {
                let is_hidden = head.contains("private ") || name.starts_with('#');
                let is_top = !self.enclosing.is_empty() && self.enclosing.len() <= 2;
                !is_hidden && (!self.exports || head.starts_with("export") || !is_top)
            }
        }
    }

    fn of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }
}

/// Returns the comment that describes a whole file: `//!` lines, a module docstring, or the comment at the top.
fn file_comment(language: Language, text: &str, root: Node<'_>) -> String {
    let lines: Vec<String> = match language {
        Language::Rust => text
            .lines()
            .map(str::trim)
            .skip_while(|line| !line.starts_with("//!") && is_preamble(line))
            .take_while(|line| line.starts_with("//!"))
            .map(|line| line.trim_start_matches("//!").trim_start().to_owned())
            .collect(),
        Language::Python => {
            let first = root.named_child(0);
            let string = first
                .filter(|first| first.kind() == "expression_statement")
                .and_then(|first| first.named_child(0))
                .filter(|first| first.kind() == "string");
            let text = string.and_then(|string| text.get(string.byte_range()));
            let text = text.unwrap_or_default().trim_matches(['"', '\'', 'r']);
            text.lines().map(|line| line.trim().to_owned()).collect()
        }
        _ => {
            let is_comment = |line: &&str| {
                line.starts_with("//") || line.starts_with("/*") || line.starts_with('*')
            };
            text.lines()
                .map(str::trim)
                .skip_while(|line| line.is_empty() || line.starts_with("#!"))
                .take_while(is_comment)
                .map(|line| line.trim_matches(['/', '*', ' ']).to_owned())
                .collect()
        }
    };
    let text = lines.join("\n");
    let text = text.trim();
    let is_licence = text
        .get(..text.floor_char_boundary(300))
        .is_some_and(|head| {
            let head = head.to_lowercase();
            head.contains("copyright")
                || head.contains("spdx-license")
                || head.contains("licensed under")
        });
    match is_licence {
        true => String::new(),
        false => text.to_owned(),
    }
}

/// Returns whether a line may come before the `//!` comment of a Rust file.
fn is_preamble(line: &str) -> bool {
    line.is_empty() || line.starts_with("//") || line.starts_with("#!")
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(LINE_CHARS).collect()
}

/// Returns the first lines of a text, and says how many are left out.
fn cut_lines(text: &str, most: usize) -> String {
    let count = text.lines().count();
    let lines = text.lines().take(most);
    let mut cut = lines
        .map(|line| line.chars().take(LINE_CHARS).collect::<String>())
        .collect::<Vec<_>>()
        .join("\n");
    if count > most {
        cut.push_str(&format!("\n… {} more lines", count - most));
    }
    cut
}

fn line(row: usize) -> u32 {
    u32::try_from(row + 1).unwrap_or(u32::MAX)
}

const DEPTH_MAX: usize = 2_000;
const NAME_BYTES_MAX: usize = 200;
const LINE_CHARS: usize = 200;
const DOC_LINES_MAX: usize = 12;
/// Maximum number of lines above a definition that are searched for its comment.
const DOC_SCAN_LINES_MAX: usize = 100;
/// Maximum number of definitions of one file. The rest does not count as left out: such files are generated.
const ITEMS_MAX: usize = 2_000;
const TYPE_LINES_MAX: usize = 30;
const BODY_LINES_MAX: usize = 60;
