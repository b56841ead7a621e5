//! Reads the names and calls of a code span: `Arc::new(RwLock::new(x))` names two functions, each with its arguments.

use super::super::scan::Language;
use super::Claim;
use super::standard::KEYWORDS;

/// Returns the claims that a piece of code in backticks makes.
pub(super) fn claims_of(piece: &str) -> Vec<Claim> {
    let piece = piece.trim();
    if piece.is_empty() || piece.len() > PIECE_BYTES_MAX || is_something_else(piece) {
        return Vec::new();
    }
    if is_path(piece) {
        return vec![Claim::Path(piece.trim_end_matches(',').to_owned())];
    }
    let has_blank = piece.contains(char::is_whitespace);
    let is_code = match has_blank {
        true => piece.contains("::") || piece.contains('(') || begins_definition(piece),
        false => piece.contains('(') || piece.chars().all(is_plain),
    };
    if !is_code {
        return Vec::new();
    }
    let is_definition = begins_definition(piece);
    let mut found = Vec::new();
    for named in names(piece) {
        // `pay(amount)` names a function, and gives its argument a name for the reader.
        let is_placeholder = !named.is_call
            && !named.name.contains([':', '.'])
            && !named.name.contains(char::is_uppercase)
            && (has_blank || named.depth > 0);
        if is_placeholder || named.name.len() < 2 || KEYWORDS.contains(&named.name) {
            continue;
        }
        let name = named.name.to_owned();
        let claim = match named.args {
            Some(args @ 1..) if !is_definition => Claim::Call { name, args },
            _ => Claim::Symbol(name),
        };
        if !found.contains(&claim) {
            found.push(claim);
        }
    }
    found
}

/// Returns whether a piece is an address, an option, a literal or the like.
fn is_something_else(piece: &str) -> bool {
    let is_other_start = piece.starts_with(['-', '@', '$', '<', '"', '\'', '{', '[', '.'])
        && !piece.starts_with("./")
        && !looks_like_hidden(piece);
    piece.contains("://") || is_other_start
}

fn looks_like_hidden(piece: &str) -> bool {
    piece
        .strip_prefix('.')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        && (piece.contains('/') || piece.contains("ignore") || piece.contains("rc"))
}

/// Returns whether a piece is the path of a file or folder, by its form.
pub(super) fn is_path(piece: &str) -> bool {
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '*' | ':' | '+');
    if !piece.chars().all(plain) || piece.contains("::") || piece.contains("..") {
        return false;
    }
    let name = piece.split(':').next().unwrap_or(piece);
    if name.contains('/') {
        // In backticks, `a/b` is a path. In prose it may be `and/or` or `TCP/IP`; there, `bare_path` requires an extension.
        return true;
    }
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    !stem.is_empty() && Language::of(name).is_some()
        || matches!(
            ending,
            "lock" | "txt" | "cfg" | "ini" | "mod" | "sum" | "gradle" | "env" | "png" | "svg"
        )
}

/// Characters of a name, of a type with arguments, and of a reference.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_.:-#!;?<>,&*".contains(c)
}

fn begins_definition(piece: &str) -> bool {
    let first = piece.split_whitespace().next().unwrap_or_default();
    let first = first.split('(').next().unwrap_or(first);
    DEFINES.contains(&first)
}

/// A name in a piece of code.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    name: &'a str,
    /// Whether parentheses follow.
    is_call: bool,
    /// Number of arguments. Absent if they are not written out.
    args: Option<u32>,
    /// Number of parentheses around it.
    depth: usize,
}

fn names(piece: &str) -> Vec<Named<'_>> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = piece[at..].chars().next() {
        let is_start = c.is_alphabetic() || c == '_';
        match c {
            '"' => at += literal(&piece[at..]),
            '(' => (depth, at) = (depth + 1, at + 1),
            ')' => (depth, at) = (depth.saturating_sub(1), at + 1),
            _ if is_start => {
                let end = at + name_bytes(&piece[at..], piece.contains('('));
                let name = piece[at..end].trim_end_matches(['.', ':', '-', '#']);
                let after = piece[end..].trim_start_matches('!');
                let after = after.strip_prefix("::").unwrap_or(after);
                let after = match after.starts_with('<') {
                    true => past_angles(after),
                    false => after,
                };
                found.push(Named {
                    name,
                    is_call: after.starts_with('('),
                    args: after.strip_prefix('(').and_then(arguments),
                    depth,
                });
                at = end;
            }
            _ if c.is_ascii_digit() => {
                let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
                let rest = &piece[at..];
                at += rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            }
            _ => at += c.len_utf8(),
        }
    }
    found
}

/// Returns the length of a name with its path. Dashes belong to names of packages and commands, not to calls.
fn name_bytes(text: &str, is_expression: bool) -> usize {
    let is_part = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '#') || (c == '-' && !is_expression)
    };
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Returns the length of a text in quotes.
fn literal(text: &str) -> usize {
    text[1..].find('"').map_or(text.len(), |end| end + 2)
}

/// Returns what follows a group in angle brackets.
fn past_angles(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return &text[at + c.len_utf8()..];
        }
    }
    ""
}

/// Counts the arguments after an opening parenthesis. `None` if they are not written out, or the parenthesis stays open.
fn arguments(text: &str) -> Option<u32> {
    let (mut depth, mut commas, mut at) = (0_usize, 0, 0);
    let mut last = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => {
                at += literal(&text[at..]);
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                let inside = &text[..at];
                if inside.contains("..") || inside.contains('…') {
                    return None;
                }
                let has_last = !text[last..at].trim().is_empty();
                return Some(commas + u32::from(has_last));
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            // The comma of `HashMap<String, u32>` is not between arguments.
            '<' if text[at + 1..].starts_with(char::is_uppercase) => depth += 1,
            '>' if depth > 0 && !text[..at].ends_with(['-', '=']) => depth -= 1,
            ',' if depth == 0 => {
                commas += 1;
                last = at + 1;
            }
            _ => {}
        }
        at += c.len_utf8();
    }
    None
}

const PIECE_BYTES_MAX: usize = 200;

/// Words that begin a definition or an import.
const DEFINES: &[&str] = &[
    "async",
    "class",
    "const",
    "def",
    "enum",
    "export",
    "fn",
    "func",
    "function",
    "impl",
    "import",
    "interface",
    "mod",
    "pub",
    "public",
    "static",
    "struct",
    "trait",
    "type",
    "use",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(piece: &str) -> String {
        let claims: Vec<String> = claims_of(piece).iter().map(Claim::to_string).collect();
        claims.join(", ")
    }

    #[test]
    fn a_span_is_read_as_code() {
        for (piece, claims) in [
            ("Cart", "symbol Cart"),
            ("Cart::add()", "symbol Cart::add"),
            ("pay(amount, 2)", "call pay 2"),
            (
                "Arc::new(RwLock::new(HashMap::new()))",
                "call Arc::new 1, call RwLock::new 1, symbol HashMap::new",
            ),
            (
                "run(Cart { items: vec![1, 2] }, \"a, b\")",
                "call run 2, symbol Cart",
            ),
            ("open(...)", "symbol open"),
            ("collect::<Vec<_>>(x)", "call collect 1, symbol Vec"),
            ("Option<Cart>", "symbol Option, symbol Cart"),
            (
                "pub fn open(name: &ModelName) -> Model",
                "symbol open, symbol ModelName, symbol Model",
            ),
            ("impl Model for Remote", "symbol Model, symbol Remote"),
            ("serde-json", "symbol serde-json"),
            ("src/cart.rs:12", "path src/cart.rs:12"),
            ("cargo build --release", ""),
            ("key=value", ""),
            ("--gate", ""),
            ("\"text\"", ""),
            ("println!(\"{}\", x)", "call println 2"),
        ] {
            assert_eq!(read(piece), claims, "{piece}");
        }
    }
}
