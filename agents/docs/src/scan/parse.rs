//! Parsing of one file: definitions, imports, entry points, and places for a security review.

use std::collections::HashSet;
use std::ops::ControlFlow;

use tree_sitter::{Node, Parser};

use super::arity::arity;
use super::{CodeMark, Language, Symbol, SymbolKind, pair_hash, word_hash};

/// Findings in one file.
#[derive(Debug, Default)]
pub(super) struct ParsedFile {
    pub(super) symbols: Vec<Symbol>,
    pub(super) imports: Vec<String>,
    pub(super) marks: Vec<CodeMark>,
    pub(super) is_entry: bool,
    pub(super) is_partial: bool,
}

/// Parses source code with the grammar of its language and adds the hashes of all identifiers to `words`. `None` if the
/// language has no grammar.
pub(super) fn source(
    parser: &mut Parser,
    language: Language,
    name: &str,
    text: &str,
    words: &mut HashSet<u64>,
) -> Option<ParsedFile> {
    let grammar = language.grammar(name)?;
    let unread = || ParsedFile {
        is_partial: true,
        ..ParsedFile::default()
    };
    if parser.set_language(&grammar).is_err() {
        return Some(unread());
    }
    let Some(tree) = parsed(parser, text) else {
        // Otherwise the parser would resume this text when it gets the next file.
        parser.reset();
        return Some(unread());
    };
    let mut reading = Reading {
        language,
        text,
        words,
        owners: Vec::new(),
        around: Vec::new(),
        is_main_package: language == Language::Go && text.contains("package main"),
        found: ParsedFile::default(),
    };
    reading.found.is_partial = tree.root_node().has_error();
    reading.walk(tree.root_node());
    Some(reading.found)
}

/// Parses a text. `None` if the parser needs far more steps than any ordinary text. Counts steps instead of time, so that the
/// same text has the same result on every machine.
pub(super) fn parsed(parser: &mut Parser, text: &str) -> Option<tree_sitter::Tree> {
    let mut left = text.len() + CHECKS_MIN;
    let mut check = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let options = tree_sitter::ParseOptions::new().progress_callback(&mut check);
    let bytes = text.as_bytes();
    let mut input = |at: usize, _| bytes.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut input, None, Some(options))
}

/// Adds the hashes of all words of a configuration file to `words`.
pub(super) fn settings(text: &str, words: &mut HashSet<u64>) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    for word in text.split(|c: char| !is_part(c)) {
        if !word.is_empty() && word.len() <= WORD_BYTES_MAX {
            words.insert(word_hash(word));
        }
    }
}

struct Reading<'a, 't> {
    language: Language,
    text: &'a str,
    words: &'a mut HashSet<u64>,
    /// Enclosing types, each with the byte at which it ends.
    owners: Vec<(usize, Option<String>)>,
    /// Enclosing nodes, the innermost last. Kept here because `Node::parent` searches from the root each time.
    around: Vec<Around<'t>>,
    is_main_package: bool,
    found: ParsedFile,
}

#[derive(Clone, Copy)]
struct Around<'t> {
    node: Node<'t>,
    /// Whether the node is the body of a function or inside of one.
    is_in_body: bool,
}

impl<'t> Reading<'_, 't> {
    /// Visits all nodes in source order. Iterative, because sources may be nested deeply.
    fn walk(&mut self, root: Node<'t>) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            self.visit(node);
            let is_deep = self.around.len() >= DEPTH_MAX;
            self.found.is_partial |= is_deep && node.child_count() > 0;
            if !is_deep && cursor.goto_first_child() {
                self.enter(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.around.pop();
            }
        }
    }

    fn enter(&mut self, node: Node<'t>) {
        let is_body = matches!(
            node.kind(),
            "block" | "statement_block" | "function_body" | "for_statement"
        );
        let is_in_body = is_body || self.around.last().is_some_and(|around| around.is_in_body);
        self.around.push(Around { node, is_in_body });
    }

    /// Returns the kind of the ancestor this many levels up; 1 is the parent.
    fn kind_above(&self, levels: usize) -> &'t str {
        let at = self.around.len().checked_sub(levels);
        at.map_or("", |at| self.around[at].node.kind())
    }

    fn visit(&mut self, node: Node<'t>) {
        while self
            .owners
            .last()
            .is_some_and(|(end, _)| *end <= node.start_byte())
        {
            self.owners.pop();
        }
        let kind = node.kind();
        if node.child_count() == 0 && kind.ends_with("identifier") {
            let word = self.of(node);
            self.words.insert(word_hash(word));
        }
        if let Some((owner, name)) = self.pair(node) {
            self.words.insert(pair_hash(owner, name));
        }
        if self.language.imports(kind) {
            self.import(node);
        }
        if let Some(defined) = self.language.defines(kind) {
            self.define(node, defined);
        } else if self.language == Language::Python && kind == "assignment" {
            self.python_value(node);
        }
        if self.language.is_body_of_type(kind) {
            let field = if kind == "impl_item" { "type" } else { "name" };
            let owner = node
                .child_by_field_name(field)
                .map(|name| bare(self.of(name)));
            self.owners.push((node.end_byte(), owner));
        }
        self.mark(node);
        self.entry(node);
    }

    fn of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Returns the last two names of a path or of an access to a member.
    fn pair(&self, node: Node<'_>) -> Option<(&str, &str)> {
        let (left, right) = path_fields(node.kind())?;
        let left = node.child_by_field_name(left)?;
        let name = node.child_by_field_name(right)?;
        // Of a longer path, the last name counts. It is a field of its own, so the text of the path is not searched.
        let owner = match path_fields(left.kind()) {
            Some((_, last)) => left.child_by_field_name(last)?,
            None => match left.kind() {
                "generic_type" => left.child_by_field_name("type")?,
                _ => left,
            },
        };
        (owner.child_count() == 0 && name.child_count() == 0)
            .then(|| (self.of(owner), self.of(name)))
    }

    fn define(&mut self, node: Node<'_>, kind: SymbolKind) {
        let line = line_of(node);
        // `var a, b int` and `int a, b;` define several names.
        let mut cursor = node.walk();
        let mut names: Vec<String> = node
            .children_by_field_name("name", &mut cursor)
            .map(|name| self.of(name).to_owned())
            .collect();
        if names.is_empty() {
            let mut cursor = node.walk();
            names = node
                .children_by_field_name("declarator", &mut cursor)
                .filter_map(|declarator| declarator.child_by_field_name("name"))
                .map(|name| self.of(name).to_owned())
                .collect();
        }
        let owner = self.owners.last().and_then(|(_, owner)| owner.clone());
        let kind = match (kind, &owner) {
            (SymbolKind::Function, Some(_)) => SymbolKind::Method,
            (SymbolKind::Value, _) if self.is_in_body() => return,
            (SymbolKind::Value, _) if is_function_value(node) => SymbolKind::Function,
            _ => kind,
        };
        let kind = match self.language {
            Language::Go => go_kind(kind, node),
            _ => kind,
        };
        let around = self.type_around(node).or(owner);
        let arity = match kind {
            SymbolKind::Function | SymbolKind::Method => arity(self.language, node, self.text),
            _ => None,
        };
        for name in names.into_iter().filter(|name| is_name(name)) {
            self.found.symbols.push(Symbol {
                name,
                kind,
                owner: around.clone(),
                line,
                arity,
            });
        }
    }

    /// Returns the type that this field, variant or method belongs to.
    fn type_around(&self, node: Node<'_>) -> Option<String> {
        let receiver = node.child_by_field_name("receiver");
        if let Some(receiver) = receiver {
            let text = self.of(receiver).trim_matches(['(', ')']);
            return text.split([' ', '*']).next_back().map(bare);
        }
        for around in self.around.iter().rev().take(LEVELS_AROUND) {
            if let Some(SymbolKind::Type | SymbolKind::Enum | SymbolKind::Interface) =
                self.language.defines(around.node.kind())
            {
                let name = around.node.child_by_field_name("name");
                return name.map(|name| short(self.of(name)));
            }
        }
        None
    }

    /// Returns whether the current node is inside a function body; variables there are local.
    fn is_in_body(&self) -> bool {
        self.around.last().is_some_and(|around| around.is_in_body)
    }

    fn python_value(&mut self, node: Node<'_>) {
        // The parent of an assignment is its statement; above that is the module, or the block of a class.
        let is_of_module = self.kind_above(2) == "module";
        let in_class = self.kind_above(3) == "class_definition";
        let Some(left) = node.child_by_field_name("left") else {
            return;
        };
        if left.kind() != "identifier" || !(is_of_module || in_class) {
            return;
        }
        let kind = if in_class {
            SymbolKind::Field
        } else {
            SymbolKind::Value
        };
        let owner = self.owners.last().and_then(|(_, owner)| owner.clone());
        self.found.symbols.push(Symbol {
            name: self.of(left).to_owned(),
            kind,
            owner,
            line: line_of(node),
            arity: None,
        });
    }

    fn import(&mut self, node: Node<'_>) {
        let text = self.of(node);
        let imported = match self.language {
            Language::Rust => text
                .trim_start_matches("pub ")
                .trim_start_matches("use ")
                .trim_start_matches("extern crate ")
                .trim_end_matches(';')
                .to_owned(),
            Language::Python => {
                let text = text
                    .trim_start_matches("from ")
                    .trim_start_matches("import ");
                text.split(" import").next().unwrap_or(text).to_owned()
            }
            Language::TypeScript | Language::JavaScript => {
                match node.child_by_field_name("source") {
                    Some(source) => self.of(source).to_owned(),
                    None => return,
                }
            }
            _ => {
                let text = text
                    .trim_start_matches("import ")
                    .trim_start_matches("static ");
                let path = node.child_by_field_name("path").map(|path| self.of(path));
                path.unwrap_or(text).trim_end_matches(';').to_owned()
            }
        };
        let imported = imported.trim().trim_matches(['"', '\'', '`']);
        for one in imported
            .split(',')
            .filter(|_| self.language == Language::Python)
        {
            let one = one.split(" as ").next().unwrap_or(one).trim();
            self.found.imports.push(one.to_owned());
        }
        if self.language != Language::Python {
            self.found.imports.push(imported.to_owned());
        }
    }

    fn mark(&mut self, node: Node<'_>) {
        let kind = node.kind();
        let what = match (self.language, kind) {
            (Language::Rust, "unsafe_block") => "unsafe block",
            (Language::Rust, "function_modifiers") if self.of(node).contains("unsafe") => {
                "unsafe function"
            }
            (Language::Python, "call") => match self.called(node, "function") {
                "eval" | "exec" => "code from text",
                "os.system"
                | "subprocess.run"
                | "subprocess.Popen"
                | "subprocess.call"
                | "subprocess.check_output" => "starts a program",
                "pickle.load" | "pickle.loads" => "reads a pickle",
                "os.getenv" | "os.environ.get" => "reads the environment",
                _ => return,
            },
            (Language::TypeScript | Language::JavaScript, "call_expression") => {
                match self.called(node, "function") {
                    "eval" => "code from text",
                    "child_process.exec" | "execSync" | "spawn" | "exec" | "spawnSync" => {
                        "starts a program"
                    }
                    _ => return,
                }
            }
            (Language::TypeScript | Language::JavaScript, "new_expression")
                if self.called(node, "constructor") == "Function" =>
            {
                "code from text"
            }
            (Language::TypeScript | Language::JavaScript, "member_expression")
                if self.of(node) == "process.env" =>
            {
                "reads the environment"
            }
            (Language::Rust, "call_expression") => match self.called(node, "function") {
                "std::env::var" | "env::var" | "std::env::var_os" | "env::var_os" => {
                    "reads the environment"
                }
                "Command::new" | "std::process::Command::new" => "starts a program",
                _ => return,
            },
            (Language::Go, "call_expression") => match self.called(node, "function") {
                "exec.Command" | "exec.CommandContext" => "starts a program",
                "os.Getenv" | "os.LookupEnv" => "reads the environment",
                _ => return,
            },
            (Language::Java, "method_invocation") => match self.of(node) {
                text if text.starts_with("Runtime.getRuntime().exec") => "starts a program",
                text if text.starts_with("System.getenv") => "reads the environment",
                _ => return,
            },
            _ => return,
        };
        self.found.marks.push(CodeMark {
            what,
            line: line_of(node),
        });
    }

    fn called(&self, node: Node<'_>, field: &str) -> &str {
        node.child_by_field_name(field)
            .map_or("", |called| self.of(called))
    }

    fn entry(&mut self, node: Node<'_>) {
        let is_entry = match (self.language, node.kind()) {
            (Language::Go, "function_declaration") => {
                self.is_main_package && self.called(node, "name") == "main"
            }
            (Language::Java, "method_declaration") => {
                let head = self.of(node).split('{').next().unwrap_or_default();
                self.called(node, "name") == "main"
                    && head.contains("static")
                    && head.contains("String")
            }
            (Language::Python, "if_statement") => {
                let condition = self.called(node, "condition");
                condition.contains("__name__") && condition.contains("__main__")
            }
            (Language::Rust, "function_item") => {
                let is_top = self.kind_above(1) == "source_file";
                is_top && self.called(node, "name") == "main"
            }
            _ => false,
        };
        self.found.is_entry |= is_entry;
    }
}

/// Refines the kind of a Go type: the grammar has the same node for structs, interfaces and other types.
fn go_kind(kind: SymbolKind, node: Node<'_>) -> SymbolKind {
    match (
        kind,
        node.child_by_field_name("type").map(|inner| inner.kind()),
    ) {
        (SymbolKind::Type, Some("interface_type")) => SymbolKind::Interface,
        (SymbolKind::Type, Some("struct_type")) => SymbolKind::Type,
        (SymbolKind::Type, _) => SymbolKind::Alias,
        _ => kind,
    }
}

/// Returns whether a variable holds a function, as in `const f = () => …`.
fn is_function_value(node: Node<'_>) -> bool {
    let value = node.child_by_field_name("value");
    value.is_some_and(|value| matches!(value.kind(), "arrow_function" | "function_expression"))
}

/// Returns the fields of a grammar node that joins two names: what comes first, and the name after it.
fn path_fields(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "scoped_identifier" | "scoped_type_identifier" => ("path", "name"),
        "field_expression" => ("value", "field"),
        "attribute" => ("object", "attribute"),
        "member_expression" => ("object", "property"),
        "selector_expression" => ("operand", "field"),
        "field_access" => ("object", "field"),
        "method_invocation" => ("object", "name"),
        _ => return None,
    })
}

fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX)
}

fn is_name(name: &str) -> bool {
    if name.len() > NAME_BYTES_MAX {
        return false;
    }
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$' || c == '#')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// Returns a type's name without its generic arguments and path: both `Vec<T>` and `a::Vec` become `Vec`.
fn bare(name: &str) -> String {
    let name = name.split(['<', '[']).next().unwrap_or(name);
    short(name.rsplit("::").next().unwrap_or(name).trim())
}

/// Cuts a name to the maximum length. Needed because every field repeats the name of its type.
fn short(name: &str) -> String {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX))
        .unwrap_or_default()
        .to_owned()
}

/// Maximum length of a word in a configuration file, in bytes. Longer words are skipped.
const WORD_BYTES_MAX: usize = 120;

/// Maximum length of a name, in bytes. Definitions with longer names are skipped, and names of owners are cut.
const NAME_BYTES_MAX: usize = 200;

/// Maximum depth of visited nodes. Deeper ones make the file partial.
const DEPTH_MAX: usize = 2_000;

/// Number of progress checks that every text may use, besides one for each of its bytes. The parser makes a check after every
/// 100 steps and an ordinary text needs a few steps per word, so this allows a hundred times what it needs.
const CHECKS_MIN: usize = 10_000;

/// Maximum number of levels between a field and its type.
const LEVELS_AROUND: usize = 4;
