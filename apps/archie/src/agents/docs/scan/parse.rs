//! What is in one file: definitions, imports, the beginning of a program, and places to look at.

use std::collections::HashSet;

use tree_sitter::{Node, Parser};

use super::{Language, Mark, Symbol, SymbolKind, word_hash};

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) symbols: Vec<Symbol>,
    pub(super) imports: Vec<String>,
    pub(super) marks: Vec<Mark>,
    pub(super) is_entry: bool,
    pub(super) is_partial: bool,
}

/// Reads source with its grammar. Words that code may be named by go into `words`.
pub(super) fn source(
    parser: &mut Parser,
    language: Language,
    name: &str,
    text: &str,
    words: &mut HashSet<u64>,
) -> Option<Found> {
    let grammar = language.grammar(name)?;
    let mut reading = Reading {
        language,
        text,
        words,
        owners: Vec::new(),
        found: Found::default(),
    };
    if parser.set_language(&grammar).is_err() {
        reading.found.is_partial = true;
        return Some(reading.found);
    }
    match parser.parse(text, None) {
        Some(tree) => {
            reading.found.is_partial = tree.root_node().has_error();
            reading.walk(tree.root_node());
        }
        None => reading.found.is_partial = true,
    }
    Some(reading.found)
}

/// The words of settings, which a text may name.
pub(super) fn settings(text: &str, words: &mut HashSet<u64>) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    for word in text.split(|c: char| !is_part(c)) {
        if !word.is_empty() && word.len() <= WORD_BYTES_MAX {
            words.insert(word_hash(word));
        }
    }
}

struct Reading<'a> {
    language: Language,
    text: &'a str,
    words: &'a mut HashSet<u64>,
    /// The types around what is read, by the byte at which they end.
    owners: Vec<(usize, Option<String>)>,
    found: Found,
}

impl Reading<'_> {
    /// In the order of the text, without recursion: sources may be nested deeply.
    fn walk(&mut self, root: Node<'_>) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            self.visit(node);
            let goes_down = cursor.goto_first_child();
            if goes_down {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn visit(&mut self, node: Node<'_>) {
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

    fn define(&mut self, node: Node<'_>, kind: SymbolKind) {
        let line = line_of(node);
        // `var a, b int` and `int a, b;` name several.
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
            (SymbolKind::Value, _) if !self.is_of_module(node) => return,
            (SymbolKind::Value, _) if is_function_value(node) => SymbolKind::Function,
            _ => kind,
        };
        let kind = match self.language {
            Language::Go => go_kind(kind, node),
            _ => kind,
        };
        let around = self.type_around(node).or(owner);
        for name in names.into_iter().filter(|name| is_name(name)) {
            self.found.symbols.push(Symbol {
                name,
                kind,
                owner: around.clone(),
                line,
            });
        }
    }

    /// The type whose field, variant or method this is.
    fn type_around(&self, node: Node<'_>) -> Option<String> {
        let receiver = node.child_by_field_name("receiver");
        if let Some(receiver) = receiver {
            let text = self.of(receiver).trim_matches(['(', ')']);
            return text.split([' ', '*']).next_back().map(bare);
        }
        let mut up = node.parent();
        for _ in 0..LEVELS_AROUND {
            let around = up?;
            if let Some(SymbolKind::Type | SymbolKind::Enum | SymbolKind::Interface) =
                self.language.defines(around.kind())
            {
                return around
                    .child_by_field_name("name")
                    .map(|name| self.of(name).to_owned());
            }
            up = around.parent();
        }
        None
    }

    /// Whether a value is of the module, and not of a function's body.
    fn is_of_module(&self, node: Node<'_>) -> bool {
        let mut up = node.parent();
        while let Some(around) = up {
            let kind = around.kind();
            if matches!(
                kind,
                "block" | "statement_block" | "function_body" | "for_statement"
            ) {
                return false;
            }
            up = around.parent();
        }
        true
    }

    fn python_value(&mut self, node: Node<'_>) {
        let is_of_module = node
            .parent()
            .and_then(|statement| statement.parent())
            .is_some_and(|module| module.kind() == "module");
        let in_class = node
            .parent()
            .and_then(|statement| statement.parent())
            .and_then(|block| block.parent())
            .is_some_and(|class| class.kind() == "class_definition");
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
        self.found.marks.push(Mark {
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
                self.called(node, "name") == "main" && self.text.contains("package main")
            }
            (Language::Java, "method_declaration") => {
                let text = self.of(node);
                self.called(node, "name") == "main"
                    && text.contains("static")
                    && text.contains("String")
            }
            (Language::Python, "if_statement") => {
                let condition = self.called(node, "condition");
                condition.contains("__name__") && condition.contains("__main__")
            }
            (Language::Rust, "function_item") => {
                let is_top = node
                    .parent()
                    .is_some_and(|parent| parent.kind() == "source_file");
                is_top && self.called(node, "name") == "main"
            }
            _ => false,
        };
        self.found.is_entry |= is_entry;
    }
}

/// In Go, what a type is stands behind its name.
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

/// `const f = () => …` defines a function.
fn is_function_value(node: Node<'_>) -> bool {
    let value = node.child_by_field_name("value");
    value.is_some_and(|value| matches!(value.kind(), "arrow_function" | "function_expression"))
}

fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX)
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$' || c == '#')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// `Vec<T>` and `a::Vec` are both `Vec`.
fn bare(name: &str) -> String {
    let name = name.split(['<', '[']).next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).trim().to_owned()
}

/// A word that is longer is none.
const WORD_BYTES_MAX: usize = 120;

/// How far above a field its type may be.
const LEVELS_AROUND: usize = 4;
