//! How many arguments a function takes, as far as its definition shows it.

use tree_sitter::Node;

use super::Language;

/// How many arguments a function takes, without the value that a method is called on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arity {
    /// Number of parameters that have no default.
    pub least: u32,
    /// Number of parameters. Absent if there may be more.
    pub most: Option<u32>,
    /// Whether the function has a parameter for the value that it is called on.
    pub has_self: bool,
}

impl Arity {
    /// Returns whether a call with this many arguments may be right. `Type::method(value, …)` passes the value, too.
    pub fn takes(self, args: u32) -> bool {
        let most = self.most.map(|most| most + u32::from(self.has_self));
        args >= self.least && most.is_none_or(|most| args <= most)
    }
}

/// Counts the parameters of a function. `None` if the definition has no list of parameters.
pub(super) fn arity(language: Language, node: Node<'_>, text: &str) -> Option<Arity> {
    let value = node.child_by_field_name("value");
    let parameters = node
        .child_by_field_name("parameters")
        .or_else(|| value?.child_by_field_name("parameters"))?;
    let mut arity = Arity {
        least: 0,
        most: Some(0),
        has_self: node.child_by_field_name("receiver").is_some(),
    };
    let mut cursor = parameters.walk();
    for (at, parameter) in parameters.named_children(&mut cursor).enumerate() {
        let word = text.get(parameter.byte_range()).unwrap_or_default();
        let is_python_self =
            language == Language::Python && at == 0 && matches!(word, "self" | "cls");
        match role(language, parameter) {
            _ if is_python_self => arity.has_self = true,
            Role::Receiver => arity.has_self = true,
            Role::Nothing => {}
            Role::Rest => arity.most = None,
            Role::Argument { count, is_optional } => {
                arity.least += if is_optional { 0 } else { count };
                arity.most = arity.most.map(|most| most + count);
            }
        }
    }
    Some(arity)
}

/// What an entry of a list of parameters stands for.
enum Role {
    /// The value that a method is called on.
    Receiver,
    /// A comment, an attribute or a separator.
    Nothing,
    /// Any number of arguments.
    Rest,
    Argument {
        count: u32,
        is_optional: bool,
    },
}

fn role(language: Language, parameter: Node<'_>) -> Role {
    let kind = parameter.kind();
    let is_rest = kind.contains("variadic")
        || kind.contains("splat")
        || kind == "spread_parameter"
        || parameter
            .named_child(0)
            .is_some_and(|inner| inner.kind() == "rest_pattern");
    if kind == "self_parameter" {
        return Role::Receiver;
    }
    if kind.ends_with("comment") || kind.ends_with("separator") || kind == "attribute_item" {
        return Role::Nothing;
    }
    if is_rest {
        return Role::Rest;
    }
    // `a, b int` is one entry in Go.
    let mut cursor = parameter.walk();
    let names = parameter
        .children_by_field_name("name", &mut cursor)
        .count();
    let count = match language {
        Language::Go => u32::try_from(names.max(1)).unwrap_or(u32::MAX),
        _ => 1,
    };
    // JavaScript may leave out any argument.
    let is_optional = kind.contains("default")
        || kind == "optional_parameter"
        || language == Language::JavaScript
        || language == Language::TypeScript && parameter.child_by_field_name("value").is_some();
    Role::Argument { count, is_optional }
}
