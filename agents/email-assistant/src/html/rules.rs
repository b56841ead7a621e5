//! Rules of embedded style sheets: which elements they match and what they declare.
//!
//! As in browsers, rules are indexed by id, class or element name, so that not every rule is compared with every element. Where
//! exact matching would cost too much, a selector matches more than it should: text that may be hidden counts as hidden.

use std::collections::{BTreeMap, HashMap, HashSet};

use cssparser::{Delimiter, Delimiters, ParseError, Parser, ToCss, Token};

use super::tree::Element;

/// Declarations that apply to an element, by property.
pub(super) type Declared = BTreeMap<&'static str, String>;

/// Precedence of a declaration: importance, then specificity, then source order.
type Rank = (bool, [u32; 4], usize);

/// Index key under which rules for an element are found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Id(String),
    Class(String),
    Name(String),
    Any,
}

impl Key {
    /// Returns all keys of an element, or `None` if it has more than [`KEYS_MAX`].
    pub(super) fn of(element: &Element) -> Option<Vec<Self>> {
        let mut keys = vec![Self::Any, Self::Name(element.name().to_ascii_lowercase())];
        if let Some(id) = element.attribute("id") {
            keys.push(Self::Id(id.to_lowercase()));
        }
        for class in element
            .attribute("class")
            .unwrap_or_default()
            .split_whitespace()
        {
            if keys.len() > KEYS_MAX {
                return None;
            }
            keys.push(Self::Class(class.to_lowercase()));
        }
        Some(keys)
    }
}

/// Indexed rules of a document.
#[derive(Debug, Default)]
pub(super) struct Rules {
    by_key: HashMap<Key, Bucket>,
    /// Keys that some rule requires of an ancestor.
    pub(super) ancestors: HashSet<Key>,
    count: usize,
}

/// Rules indexed under one key.
#[derive(Debug, Default)]
struct Bucket {
    /// Winning declarations of rules that have no further conditions.
    always: BTreeMap<&'static str, (Rank, String)>,
    /// Rules with further conditions.
    sometimes: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    subject: Compound,
    ancestors: Vec<Key>,
    declared: Vec<(&'static str, Rank, String)>,
}

/// A compound selector such as `td.note#x[title]`.
#[derive(Debug, Default, Clone)]
struct Compound {
    keys: Vec<Key>,
    attributes: Vec<(String, Option<(char, String)>)>,
    /// Whether it has a part that is not evaluated and counts as matching.
    has_more: bool,
    /// Whether it has a part that never matches in a displayed email, such as `:hover` or `::before`.
    is_never: bool,
}

#[derive(Debug, Default)]
struct Selector {
    subject: Compound,
    ancestors: Vec<Key>,
    specificity: [u32; 4],
}

impl Rules {
    /// Adds the rules of a style sheet.
    pub(super) fn read(&mut self, sheet: &str) {
        self.block(&mut Parser::new(sheet), 0);
    }

    fn block(&mut self, input: &mut Parser<'_>, depth: usize) {
        loop {
            let before = input.state();
            match input.next() {
                Err(_) => return,
                Ok(Token::CDO | Token::CDC | Token::Semicolon) => {}
                Ok(Token::AtKeyword(name)) => {
                    let name = name.to_ascii_lowercase();
                    self.at_rule(&name, input, depth);
                }
                Ok(_) => {
                    input.reset(&before);
                    self.rule(input);
                }
            }
        }
    }

    fn at_rule(&mut self, name: &str, input: &mut Parser<'_>, depth: usize) {
        let prelude = within(
            input,
            Delimiter::CurlyBracketBlock | Delimiter::Semicolon,
            text_of,
        );
        let is_block = matches!(input.next(), Ok(Token::CurlyBracketBlock));
        let holds_rules = match name {
            "media" => media_applies(&prelude),
            "supports" | "layer" | "container" | "scope" | "document" | "starting-style" => true,
            _ => false,
        };
        if is_block && holds_rules && depth < NESTED_MAX {
            nested(input, |input| self.block(input, depth + 1));
        }
    }

    fn rule(&mut self, input: &mut Parser<'_>) {
        let selectors = within(input, Delimiter::CurlyBracketBlock, selectors);
        if !matches!(input.next(), Ok(Token::CurlyBracketBlock)) {
            return;
        }
        let declared = nested(input, declarations);
        self.count += 1;
        for selector in selectors {
            if !selector.subject.is_never && !declared.is_empty() {
                self.add(selector, &declared);
            }
        }
    }

    fn add(&mut self, selector: Selector, declared: &[(&'static str, String, bool)]) {
        let order = self.count;
        let ranked = declared.iter().map(|(name, value, is_important)| {
            (
                *name,
                (*is_important, selector.specificity, order),
                value.clone(),
            )
        });
        let Selector {
            subject, ancestors, ..
        } = &selector;
        let rarity = |key: &&Key| match key {
            Key::Id(_) => 0,
            Key::Class(_) => 1,
            Key::Name(_) => 2,
            Key::Any => 3,
        };
        let key = subject.keys.iter().min_by_key(rarity).unwrap_or(&Key::Any);
        let asks_for_more =
            subject.keys.len() > 1 || !subject.attributes.is_empty() || !ancestors.is_empty();
        let bucket = self.by_key.entry(key.clone()).or_default();
        if asks_for_more && bucket.sometimes.len() < SOMETIMES_MAX {
            self.ancestors.extend(ancestors.iter().cloned());
            bucket.sometimes.push(Rule {
                declared: ranked.collect(),
                subject: subject.clone(),
                ancestors: ancestors.clone(),
            });
            return;
        }
        for (name, rank, value) in ranked {
            let wins = bucket
                .always
                .get(name)
                .is_none_or(|(known, _)| *known <= rank);
            if wins {
                bucket.always.insert(name, (rank, value));
            }
        }
    }

    /// Returns the declarations that apply to an element, from the rules and from its `style` attribute.
    pub(super) fn of(
        &self,
        element: &Element,
        keys: &[Key],
        is_inside: impl Fn(&Key) -> bool,
    ) -> Declared {
        let mut won: BTreeMap<&'static str, (Rank, &str)> = BTreeMap::new();
        let mut add = |name: &'static str, rank: Rank, value| {
            if won.get(name).is_none_or(|(known, _)| *known <= rank) {
                won.insert(name, (rank, value));
            }
        };
        for bucket in keys.iter().filter_map(|key| self.by_key.get(key)) {
            for (name, (rank, value)) in &bucket.always {
                add(name, *rank, value);
            }
            for rule in &bucket.sometimes {
                if rule.subject.is_met(element, keys) && rule.ancestors.iter().all(&is_inside) {
                    for (name, rank, value) in &rule.declared {
                        add(name, *rank, value);
                    }
                }
            }
        }
        let own = element.attribute("style").map(own_declarations);
        let own = own.unwrap_or_default();
        for (name, value, is_important) in &own {
            add(name, (*is_important, [1, 0, 0, 0], 0), value);
        }
        let won = won.into_iter();
        won.map(|(name, (_, value))| (name, value.to_owned()))
            .collect()
    }
}

impl Compound {
    fn is_met(&self, element: &Element, keys: &[Key]) -> bool {
        self.keys.iter().all(|key| keys.contains(key))
            && self.attributes.iter().all(|(name, wanted)| {
                let Some(given) = element.attribute(name) else {
                    return false;
                };
                let given = given.to_lowercase();
                wanted.as_ref().is_none_or(|(how, value)| match how {
                    '=' => given == *value,
                    '^' => given.starts_with(value),
                    '$' => given.ends_with(value),
                    _ => given.contains(value),
                })
            })
    }
}

fn own_declarations(style: &str) -> Vec<(&'static str, String, bool)> {
    declarations(&mut Parser::new(style))
}

/// Parses the declarations of properties in [`PROPERTIES`]: name, value, and whether it is important.
fn declarations(input: &mut Parser<'_>) -> Vec<(&'static str, String, bool)> {
    let mut found: BTreeMap<&'static str, (String, bool)> = BTreeMap::new();
    loop {
        let name = match input.next() {
            Err(_) => break,
            Ok(Token::Semicolon) => continue,
            Ok(Token::Ident(name)) => Some(name.to_ascii_lowercase()),
            Ok(_) => None,
        };
        let name = name.filter(|_| {
            input
                .try_parse(|input| input.expect_colon().map(drop))
                .is_ok()
        });
        let value = within(input, Delimiter::Semicolon, text_of);
        let property = name.and_then(|name| PROPERTIES.iter().find(|known| **known == name));
        if let Some(property) = property {
            let is_important = value.contains("!important");
            let value = value.split('!').next().unwrap_or_default().trim();
            let known = found.get(property);
            if is_important || known.is_none_or(|(_, known)| !known) {
                found.insert(property, (value.to_owned(), is_important));
            }
        }
    }
    let found = found.into_iter();
    found
        .map(|(name, (value, is_important))| (name, value, is_important))
        .collect()
}

/// Runs `read` over everything up to a delimiter, and skips what it leaves.
fn within<T: Default>(
    input: &mut Parser<'_>,
    until: Delimiters,
    read: impl FnOnce(&mut Parser<'_>) -> T,
) -> T {
    let done: Result<T, ParseError<()>> = input.parse_until_before(until, |input| {
        let value = read(input);
        while input.next().is_ok() {}
        Ok(value)
    });
    done.unwrap_or_default()
}

/// Runs `read` over the block that was just opened, and skips what it leaves.
fn nested<T: Default>(input: &mut Parser<'_>, read: impl FnOnce(&mut Parser<'_>) -> T) -> T {
    let done: Result<T, ParseError<()>> = input.parse_nested_block(|input| {
        let value = read(input);
        while input.next().is_ok() {}
        Ok(value)
    });
    done.unwrap_or_default()
}

/// Returns a value in lower case, without comments and escapes, with single spaces between its parts.
fn text_of(input: &mut Parser<'_>) -> String {
    let mut text = String::new();
    add_text(input, &mut text, 0);
    text.trim().to_owned()
}

fn add_text(input: &mut Parser<'_>, text: &mut String, depth: usize) {
    while let Ok(token) = input.next_including_whitespace() {
        if text.len() > VALUE_BYTES_MAX {
            return;
        }
        let closes = match token {
            Token::WhiteSpace(_) => {
                text.push(' ');
                continue;
            }
            // The source of an image hides nothing, and may be long.
            Token::UnquotedUrl(_) => {
                text.push_str("url()");
                continue;
            }
            Token::QuotedString(_) => {
                text.push_str("''");
                continue;
            }
            Token::Function(name) => {
                text.push_str(&name.to_lowercase());
                text.push('(');
                true
            }
            Token::ParenthesisBlock => {
                text.push('(');
                true
            }
            token => {
                text.push_str(&token.to_css_string().to_lowercase());
                false
            }
        };
        if closes {
            if depth < NESTED_MAX {
                nested(input, |input| add_text(input, text, depth + 1));
            }
            text.push(')');
        }
    }
}

fn selectors(input: &mut Parser<'_>) -> Vec<Selector> {
    let mut found = vec![Selector::default()];
    let mut is_apart = false;
    while let Ok(token) = input.next_including_whitespace() {
        let token = token.clone();
        let Some(selector) = found.last_mut() else {
            return found;
        };
        match &token {
            Token::Comma => {
                found.push(Selector::default());
                is_apart = false;
                continue;
            }
            Token::WhiteSpace(_) => {
                is_apart = !selector.subject.is_empty();
                continue;
            }
            // A parent counts as any ancestor; for sibling combinators below, the part before them is dropped.
            Token::Delim('>') => {
                is_apart = !selector.subject.is_empty();
                continue;
            }
            Token::Delim('+' | '~') => {
                selector.subject = Compound::default();
                is_apart = false;
                continue;
            }
            _ => {}
        }
        if is_apart {
            let ancestor = std::mem::take(&mut selector.subject);
            let room = ASKED_MAX.saturating_sub(selector.ancestors.len());
            selector
                .ancestors
                .extend(ancestor.keys.into_iter().take(room));
            is_apart = false;
        }
        selector.add(&token, input);
    }
    found.retain(|selector| !selector.subject.is_empty());
    found
}

impl Compound {
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.attributes.is_empty() && !self.has_more && !self.is_never
    }
}

impl Selector {
    fn add(&mut self, token: &Token<'_>, input: &mut Parser<'_>) {
        let subject = &mut self.subject;
        let asked = subject.keys.len() + subject.attributes.len();
        match token {
            _ if asked > ASKED_MAX => subject.has_more = true,
            Token::Ident(name) => {
                subject.keys.push(Key::Name(name.to_lowercase()));
                self.specificity[3] += 1;
            }
            Token::IDHash(id) | Token::Hash(id) => {
                subject.keys.push(Key::Id(id.to_lowercase()));
                self.specificity[1] += 1;
            }
            Token::Delim('.') => {
                if let Ok(Token::Ident(class)) = input.next_including_whitespace() {
                    subject.keys.push(Key::Class(class.to_lowercase()));
                    self.specificity[2] += 1;
                }
            }
            Token::SquareBracketBlock => {
                if let Some(attribute) = nested(input, attribute) {
                    subject.attributes.push(attribute);
                }
                self.specificity[2] += 1;
            }
            Token::Colon => {
                let named = match input.next_including_whitespace() {
                    Ok(Token::Ident(name)) => name.to_lowercase(),
                    Ok(Token::Colon) => match input.next_including_whitespace() {
                        Ok(Token::Ident(name) | Token::Function(name)) => {
                            format!(":{}", name.to_lowercase())
                        }
                        _ => String::new(),
                    },
                    _ => String::new(),
                };
                match named.as_str() {
                    "root" => subject.keys.push(Key::Name("html".to_owned())),
                    ":first-line" | ":first-letter" => subject.has_more = true,
                    other if other.starts_with(':') || NEVER.contains(&other) => {
                        subject.is_never = true;
                    }
                    _ => subject.has_more = true,
                }
                self.specificity[2] += 1;
            }
            _ => subject.has_more = true,
        }
    }
}

fn attribute(input: &mut Parser<'_>) -> Option<(String, Option<(char, String)>)> {
    let name = input.expect_ident().ok()?.to_lowercase();
    let how = match input.next() {
        Ok(Token::Delim('=')) => '=',
        Ok(Token::PrefixMatch) => '^',
        Ok(Token::SuffixMatch) => '$',
        Ok(_) => '*',
        Err(_) => return Some((name, None)),
    };
    let value = input.expect_ident_or_string().ok()?.to_lowercase();
    Some((name, Some((how, value))))
}

/// Returns whether a media query matches a desktop window. A query that is not understood matches.
fn media_applies(query: &str) -> bool {
    query.split(',').any(|clause| {
        let clause = clause.trim();
        if clause.starts_with("not") {
            return true;
        }
        let is_elsewhere = ["print", "speech"].iter().any(|kind| {
            let words = &mut clause.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            words.any(|word| word == *kind)
        });
        let mut features = clause.split('(').skip(1);
        !is_elsewhere
            && features.all(|feature| {
                let feature = feature.split(')').next().unwrap_or_default();
                let Some((name, value)) = feature.split_once(':') else {
                    return true;
                };
                let value = value.trim();
                let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
                let unit = match value.ends_with("em") {
                    true => 16.0,
                    false => 1.0,
                };
                let width = digits.parse::<f32>().map(|width| width * unit);
                match (name.trim(), width) {
                    ("max-width" | "max-device-width", Ok(width)) => WINDOW_PX <= width,
                    ("min-width" | "min-device-width", Ok(width)) => WINDOW_PX >= width,
                    ("prefers-color-scheme", _) => value != "dark",
                    _ => true,
                }
            })
    })
}

const WINDOW_PX: f32 = 1_000.0;
/// Maximum number of keys per element. An element with more is hidden: no honest email needs so many classes.
const KEYS_MAX: usize = 64;
/// Maximum number of conditional rules per key. Further ones apply unconditionally.
const SOMETIMES_MAX: usize = 64;
/// Maximum number of conditions that a selector has on an element, and on its ancestors. Further ones count as met.
const ASKED_MAX: usize = 16;
const VALUE_BYTES_MAX: usize = 300;
const NESTED_MAX: usize = 6;

const NEVER: [&str; 14] = [
    "active",
    "checked",
    "disabled",
    "empty",
    "focus",
    "focus-visible",
    "focus-within",
    "fullscreen",
    "hover",
    "indeterminate",
    "invalid",
    "placeholder-shown",
    "target",
    "visited",
];

/// Properties that can hide text or make it visible again.
const PROPERTIES: [&str; 58] = [
    "-webkit-clip-path",
    "-webkit-mask",
    "-webkit-mask-image",
    "-webkit-text-fill-color",
    "-webkit-text-security",
    "-webkit-transform",
    "background",
    "background-color",
    "block-size",
    "bottom",
    "clip",
    "clip-path",
    "color",
    "content-visibility",
    "display",
    "filter",
    "font",
    "font-size",
    "font-size-adjust",
    "height",
    "inline-size",
    "inset",
    "inset-block-start",
    "inset-inline-start",
    "left",
    "letter-spacing",
    "margin",
    "margin-bottom",
    "margin-inline-start",
    "margin-left",
    "margin-right",
    "margin-top",
    "mask",
    "mask-image",
    "max-block-size",
    "max-height",
    "max-inline-size",
    "max-width",
    "mix-blend-mode",
    "mso-hide",
    "opacity",
    "overflow",
    "overflow-x",
    "overflow-y",
    "padding-left",
    "padding-top",
    "position",
    "right",
    "rotate",
    "scale",
    "text-indent",
    "top",
    "transform",
    "translate",
    "visibility",
    "width",
    "z-index",
    "zoom",
];
