//! Languages: how a file's language is detected, and which grammar nodes define or import something.

use serde::{Deserialize, Serialize};

use super::SymbolKind;

/// Language of a file, detected by its extension. Only those up to Java are parsed with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Language {
    /// Rust; parsed with a grammar.
    Rust,
    /// Python; parsed with a grammar.
    Python,
    /// TypeScript; parsed with a grammar.
    TypeScript,
    /// JavaScript; parsed with the grammar of TypeScript.
    JavaScript,
    /// Go; parsed with a grammar.
    Go,
    /// Java; parsed with a grammar.
    Java,
    /// The C language. It and those below are only counted, not parsed with a grammar.
    C,
    /// C++.
    Cpp,
    /// C#.
    CSharp,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Kotlin.
    Kotlin,
    /// Swift.
    Swift,
    /// Shell scripts (`sh`, `bash`).
    Shell,
    /// SQL.
    Sql,
    /// Protocol buffers.
    Protobuf,
    /// GraphQL.
    GraphQl,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
    /// CSS, including SCSS and Less.
    Css,
    /// JSON, including JSONC.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// XML.
    Xml,
}

impl Language {
    /// Detects the language by the extension of a file's name.
    pub fn of(name: &str) -> Option<Self> {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending)?;
        Some(match ending {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "ts" | "tsx" | "mts" | "cts" => Self::TypeScript,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "hpp" | "hh" => Self::Cpp,
            "cs" => Self::CSharp,
            "rb" => Self::Ruby,
            "php" => Self::Php,
            "kt" | "kts" => Self::Kotlin,
            "swift" => Self::Swift,
            "sh" | "bash" => Self::Shell,
            "sql" => Self::Sql,
            "proto" => Self::Protobuf,
            "graphql" | "gql" => Self::GraphQl,
            "md" | "markdown" => Self::Markdown,
            "html" | "htm" => Self::Html,
            "css" | "scss" | "less" => Self::Css,
            "json" | "jsonc" => Self::Json,
            "toml" => Self::Toml,
            "yaml" | "yml" => Self::Yaml,
            "xml" => Self::Xml,
            _ => return None,
        })
    }

    /// Returns the usual spelling of the language's name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::TypeScript => "TypeScript",
            Self::JavaScript => "JavaScript",
            Self::Go => "Go",
            Self::Java => "Java",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::CSharp => "C#",
            Self::Ruby => "Ruby",
            Self::Php => "PHP",
            Self::Kotlin => "Kotlin",
            Self::Swift => "Swift",
            Self::Shell => "Shell",
            Self::Sql => "SQL",
            Self::Protobuf => "Protobuf",
            Self::GraphQl => "GraphQL",
            Self::Markdown => "Markdown",
            Self::Html => "HTML",
            Self::Css => "CSS",
            Self::Json => "JSON",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Xml => "XML",
        }
    }

    /// Returns whether files of this language are treated as configuration: all their words count as names that a text may
    /// mention.
    pub(super) fn is_settings(self) -> bool {
        matches!(
            self,
            Self::Json
                | Self::Toml
                | Self::Yaml
                | Self::Xml
                | Self::Sql
                | Self::Protobuf
                | Self::GraphQl
                | Self::Shell
        )
    }

    /// Returns whether files of this language are parsed with a grammar.
    pub(crate) fn is_parsed(self) -> bool {
        self.grammar("").is_some()
    }

    /// Returns the grammar for a file of this name. `None` for languages that are not parsed.
    pub(super) fn grammar(self, name: &str) -> Option<tree_sitter::Language> {
        Some(match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::TypeScript if !name.ends_with("tsx") => {
                tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()
            }
            // TypeScript with JSX is a superset of JavaScript.
            Self::TypeScript | Self::JavaScript => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            _ => return None,
        })
    }

    /// Returns the kind of definition that a grammar node is, or `None` if it defines nothing.
    pub(super) fn defines(self, node: &str) -> Option<SymbolKind> {
        use SymbolKind as Kind;
        Some(match (self, node) {
            (Self::Rust, "function_item" | "function_signature_item") => Kind::Function,
            (Self::Rust, "struct_item" | "union_item") => Kind::Type,
            (Self::Rust, "trait_item") => Kind::Interface,
            (Self::Rust, "enum_item") => Kind::Enum,
            (Self::Rust, "enum_variant") => Kind::Variant,
            (Self::Rust, "field_declaration") => Kind::Field,
            (Self::Rust, "const_item" | "static_item") => Kind::Value,
            (Self::Rust, "mod_item") => Kind::Module,
            (Self::Rust, "macro_definition") => Kind::Macro,
            (Self::Rust, "type_item" | "associated_type") => Kind::Alias,
            (Self::Python, "function_definition") => Kind::Function,
            (Self::Python, "class_definition") => Kind::Type,
            (
                Self::TypeScript | Self::JavaScript,
                "function_declaration" | "generator_function_declaration" | "function_signature",
            ) => Kind::Function,
            (
                Self::TypeScript | Self::JavaScript,
                "class_declaration" | "abstract_class_declaration",
            ) => Kind::Type,
            (
                Self::TypeScript | Self::JavaScript,
                "method_definition" | "method_signature" | "abstract_method_signature",
            ) => Kind::Method,
            (
                Self::TypeScript | Self::JavaScript,
                "public_field_definition" | "property_signature",
            ) => Kind::Field,
            (Self::TypeScript, "interface_declaration") => Kind::Interface,
            (Self::TypeScript, "enum_declaration") => Kind::Enum,
            (Self::TypeScript, "type_alias_declaration") => Kind::Alias,
            (Self::TypeScript, "internal_module" | "module") => Kind::Module,
            (Self::TypeScript | Self::JavaScript, "variable_declarator") => Kind::Value,
            (Self::Go, "function_declaration") => Kind::Function,
            (Self::Go, "method_declaration") => Kind::Method,
            (Self::Go, "type_spec" | "type_alias") => Kind::Type,
            (Self::Go, "const_spec" | "var_spec") => Kind::Value,
            (Self::Go, "field_declaration") => Kind::Field,
            (Self::Go, "method_elem" | "method_spec") => Kind::Method,
            (Self::Java, "class_declaration" | "record_declaration") => Kind::Type,
            (Self::Java, "interface_declaration" | "annotation_type_declaration") => {
                Kind::Interface
            }
            (Self::Java, "enum_declaration") => Kind::Enum,
            (Self::Java, "enum_constant") => Kind::Variant,
            (Self::Java, "method_declaration" | "constructor_declaration") => Kind::Method,
            (Self::Java, "field_declaration") => Kind::Field,
            _ => return None,
        })
    }

    /// Returns whether functions inside this grammar node are methods.
    pub(super) fn is_body_of_type(self, node: &str) -> bool {
        match self {
            Self::Rust => matches!(node, "impl_item" | "trait_item"),
            Self::Python => node == "class_definition",
            _ => false,
        }
    }

    /// Returns whether this grammar node is an import.
    pub(super) fn imports(self, node: &str) -> bool {
        match self {
            Self::Rust => matches!(node, "use_declaration" | "extern_crate_declaration"),
            Self::Python => matches!(node, "import_statement" | "import_from_statement"),
            Self::TypeScript | Self::JavaScript => {
                matches!(node, "import_statement" | "export_statement")
            }
            Self::Go => node == "import_spec",
            Self::Java => node == "import_declaration",
            _ => false,
        }
    }
}
