//! Mermaid diagrams: parsed before they are written to a page, so that diagrams which a forge could not draw are left out.
//!
//! Supports five kinds: flowcharts, sequence, class, entity relationship and state diagrams. Draws flowcharts in a simple form
//! for the viewer.

use std::collections::BTreeMap;

use archie_agent::layout::cut;
use archie_agent::printable::one_line;
use maud::{Markup, html};

/// A valid diagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagram {
    /// Kind of the diagram, from its first line.
    pub kind: Kind,
    /// Ids and labels of the nodes, in order of appearance. Only for flowcharts.
    pub nodes: Vec<(String, String)>,
    /// Edges with their labels, as indices into `nodes`. Only for flowcharts.
    pub edges: Vec<(usize, usize, String)>,
}

/// Kind of a diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Begins with `flowchart` or `graph`.
    Flowchart,
    /// Begins with `sequenceDiagram`.
    Sequence,
    /// Begins with `classDiagram`.
    Class,
    /// Begins with `erDiagram`.
    Entity,
    /// Begins with `stateDiagram` or `stateDiagram-v2`.
    State,
}

/// Why a text is not a valid diagram.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct NoDiagram {
    /// Line of the problem, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub why: String,
}

/// Parses a diagram.
pub fn parse(text: &str) -> Result<Diagram, NoDiagram> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| {
            (
                at + 1,
                line.split("%%")
                    .next()
                    .unwrap_or(line)
                    .trim()
                    .trim_end_matches(';')
                    .trim(),
            )
        })
        .filter(|(_, line)| !line.is_empty());
    let (at, head) = lines.next().ok_or(NoDiagram {
        line: 1,
        why: "it is empty".to_owned(),
    })?;
    let mut words = head.split_whitespace();
    let kind = match words.next() {
        Some("flowchart" | "graph") => Kind::Flowchart,
        Some("sequenceDiagram") => Kind::Sequence,
        Some("classDiagram") => Kind::Class,
        Some("erDiagram") => Kind::Entity,
        Some("stateDiagram" | "stateDiagram-v2") => Kind::State,
        other => {
            let why = format!("`{}` is not a kind of diagram", other.unwrap_or_default());
            return Err(NoDiagram { line: at, why });
        }
    };
    if kind == Kind::Flowchart
        && let Some(direction) = words.next()
        && !["TD", "TB", "BT", "LR", "RL"].contains(&direction)
    {
        let why = format!("`{direction}` is not a direction");
        return Err(NoDiagram { line: at, why });
    }
    let mut reading = Reading {
        diagram: Diagram {
            kind,
            nodes: Vec::new(),
            edges: Vec::new(),
        },
        by_id: BTreeMap::new(),
        depth: 0,
    };
    let mut last = at;
    for (at, line) in lines {
        last = at;
        reading
            .line(line)
            .map_err(|why| NoDiagram { line: at, why })?;
    }
    match reading.depth {
        0 => Ok(reading.diagram),
        _ => Err(NoDiagram {
            line: last,
            why: "something that was opened is not closed".to_owned(),
        }),
    }
}

/// Parses a diagram and returns its text without active content: comments and directives, links, callbacks, and tags in labels.
pub fn tame(text: &str) -> Result<String, NoDiagram> {
    let diagram = parse(text)?;
    let mut out = String::new();
    for line in text.lines() {
        let line = line.split("%%").next().unwrap_or(line).trim_end();
        let first = line.split_whitespace().next().unwrap_or_default();
        if first.is_empty() || ACTING.contains(&first.to_ascii_lowercase().as_str()) {
            continue;
        }
        let mut line = without_tags(line);
        if diagram.kind != Kind::Flowchart {
            // On the same line, another statement could follow that the parser has not checked.
            line = line.replace(';', ",");
        }
        out.push_str(&line.replace(LESS_THAN, "#lt;"));
        out.push('\n');
    }
    parse(&out).map(|_| out)
}

/// Replaces `<` with [`LESS_THAN`] wherever a tag could begin. Keeps arrows and `<<word>>`.
fn without_tags(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let word = rest
            .strip_prefix("<<")
            .and_then(|inner| inner.split_once(">>"))
            .map(|(word, _)| word)
            .filter(|word| word.chars().all(char::is_alphanumeric));
        let kept = match word {
            Some(word) => word.len() + 4,
            None if rest[1..].starts_with(['|', '-', '.', '=', ' ']) => 1,
            None => {
                out.push(LESS_THAN);
                rest = &rest[1..];
                continue;
            }
        };
        out.push_str(&rest[..kept]);
        rest = &rest[kept..];
    }
    out.push_str(rest);
    out
}

/// Escapes a name for a quoted label: characters with a meaning in Mermaid become entity codes.
pub fn label(name: &str) -> String {
    let line = one_line(&name.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut out = String::new();
    for c in line.chars() {
        match CODES.iter().find(|(plain, _)| *plain == c) {
            Some((_, code)) => out.push_str(code),
            None => out.push(c),
        }
    }
    out
}

/// Returns the text that a label shows, with its entity codes decoded.
fn unlabelled(label: &str) -> String {
    let mut shown = label.to_owned();
    for (plain, code) in CODES.iter().rev() {
        shown = shown.replace(code, &plain.to_string());
    }
    shown
}

/// Characters with a meaning in labels, and their entity codes. `#` must be first, because it occurs in the codes of the
/// others.
const CODES: [(char, &str); 7] = [
    ('#', "#35;"),
    ('"', "#quot;"),
    ('<', "#lt;"),
    ('>', "#gt;"),
    ('&', "#amp;"),
    ('`', "#96;"),
    ('%', "#37;"),
];

/// Stands for `<` until semicolons are replaced, because its entity code contains one.
const LESS_THAN: char = '\u{1}';

/// First words of lines that add behaviour or styles to a diagram.
const ACTING: [&str; 8] = [
    "click",
    "link",
    "links",
    "callback",
    "href",
    "properties",
    "style",
    "linkstyle",
];

struct Reading {
    diagram: Diagram,
    by_id: BTreeMap<String, usize>,
    depth: usize,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), String> {
        match self.diagram.kind {
            Kind::Flowchart => self.flowchart(line),
            Kind::Sequence => self.sequence(line),
            Kind::Class | Kind::Entity | Kind::State => self.block(line),
        }
    }

    fn open(&mut self) {
        self.depth += 1;
    }

    fn close(&mut self) -> Result<(), String> {
        self.depth = self
            .depth
            .checked_sub(1)
            .ok_or("nothing is open that could be closed")?;
        Ok(())
    }

    fn flowchart(&mut self, line: &str) -> Result<(), String> {
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            "subgraph" => {
                self.open();
                return Ok(());
            }
            "end" if line == "end" => return self.close(),
            "classDef" | "class" | "style" | "linkStyle" | "click" | "direction" => return Ok(()),
            _ => {}
        }
        let mut rest = line;
        let mut before: Option<Vec<usize>> = None;
        let mut label = String::new();
        loop {
            let (group, after) = self.group(rest)?;
            if let Some(from) = before {
                for one in &from {
                    for other in &group {
                        self.diagram.edges.push((*one, *other, label.clone()));
                    }
                }
            }
            let after = after.trim_start();
            if after.is_empty() {
                return Ok(());
            }
            let (found, further) = link(after)?;
            label = found;
            rest = further;
            before = Some(group);
        }
    }

    /// Parses nodes joined by `&`.
    fn group<'a>(&mut self, text: &'a str) -> Result<(Vec<usize>, &'a str), String> {
        let mut group = Vec::new();
        let mut rest = text;
        loop {
            let (id, label, after) = node(rest.trim_start())?;
            let next = self.by_id.len();
            let at = *self.by_id.entry(id.clone()).or_insert(next);
            if at == self.diagram.nodes.len() {
                self.diagram.nodes.push((id.clone(), id));
            }
            if let Some(label) = label {
                self.diagram.nodes[at].1 = label;
            }
            group.push(at);
            match after.trim_start().strip_prefix('&') {
                Some(after) => rest = after,
                None => return Ok((group, after)),
            }
        }
    }

    fn sequence(&mut self, line: &str) -> Result<(), String> {
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            "participant" | "actor" | "autonumber" | "activate" | "deactivate" | "title"
            | "create" | "destroy" | "else" | "and" | "option" => Ok(()),
            "Note" | "note" if line.contains(':') => Ok(()),
            "loop" | "alt" | "opt" | "par" | "critical" | "break" | "rect" | "box" => {
                self.open();
                Ok(())
            }
            "end" => self.close(),
            _ => {
                let (arrow, _) = SEQUENCE_ARROWS
                    .iter()
                    .filter_map(|arrow| Some((*arrow, line.find(arrow)?)))
                    .min_by_key(|(arrow, at)| (*at, usize::MAX - arrow.len()))
                    .ok_or_else(|| format!("`{line}` sends nothing to anybody"))?;
                let (from, to) = line.split_once(arrow).unwrap_or_default();
                let (to, _) = to.split_once(':').ok_or("a message needs `: text`")?;
                let is_named = |name: &str| !name.trim().trim_start_matches(['+', '-']).is_empty();
                (is_named(from) && is_named(to))
                    .then_some(())
                    .ok_or_else(|| "a message needs somebody on both sides".to_owned())
            }
        }
    }

    fn block(&mut self, line: &str) -> Result<(), String> {
        if line == "}" {
            return self.close();
        }
        if line.ends_with('{') {
            let head = line.trim_end_matches('{').trim();
            if head.is_empty() {
                return Err("a block needs a name".to_owned());
            }
            self.open();
            return Ok(());
        }
        if self.depth > 0
            || line.starts_with("class ")
            || line.starts_with("state ")
            || line.starts_with("note ")
            || line.starts_with("direction ")
        {
            return Ok(());
        }
        let arrows: &[&str] = match self.diagram.kind {
            Kind::Class => &[
                "<|--", "--|>", "*--", "--*", "o--", "--o", "-->", "<--", "..>", "<..", "..|>",
                "<|..", "--", "..",
            ],
            Kind::Entity => &["--", ".."],
            _ => &["-->"],
        };
        let has_both = arrows.iter().any(|arrow| {
            line.split_once(arrow)
                .is_some_and(|(from, to)| !from.trim().is_empty() && !to.trim().is_empty())
        });
        let is_member = self.diagram.kind != Kind::Entity && line.contains(" : ");
        if has_both && self.diagram.kind == Kind::Entity && !line.contains(':') {
            return Err("a relation needs `: label`".to_owned());
        }
        let is_word = line
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        (has_both || is_member || is_word)
            .then_some(())
            .ok_or_else(|| format!("`{line}` says nothing that belongs here"))
    }
}

/// Parses a node: `id`, `id[label]`, `id(label)`, `id{label}` and similar shapes.
fn node(text: &str) -> Result<(String, Option<String>, &str), String> {
    let end = text
        .char_indices()
        .find(|(at, c)| {
            let is_plain = c.is_alphanumeric() || matches!(c, '_' | '.' | '/')
                // A dash is part of an id if it does not begin a link.
                || (*c == '-' && text[*at + 1..].starts_with(|next: char| next.is_alphanumeric()) && *at > 0);
            !is_plain
        })
        .map_or(text.len(), |(at, _)| at);
    let (id, rest) = text.split_at(end);
    if id.is_empty() {
        return Err(format!("a node was expected before `{}`", head(text)));
    }
    if id == "end" {
        return Err("`end` cannot be the name of a node".to_owned());
    }
    for (open, close) in SHAPES {
        let Some(inner) = rest.strip_prefix(open) else {
            continue;
        };
        let (label, after) = match inner.strip_prefix('"') {
            Some(quoted) => {
                let (label, after) = quoted.split_once('"').ok_or("a label is not closed")?;
                let after = after.strip_prefix(close).ok_or("a label is not closed")?;
                (label, after)
            }
            None => {
                let (label, after) = inner.split_once(close).ok_or("a label is not closed")?;
                if label.contains(['[', ']', '(', ')', '{', '}', '"']) {
                    return Err(format!("the label `{label}` needs quotes"));
                }
                (label, after)
            }
        };
        return Ok((id.to_owned(), Some(label.to_owned()), after));
    }
    let after = rest.strip_prefix(":::").map_or(rest, |class| {
        class.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
    });
    Ok((id.to_owned(), None, after))
}

/// Parses a link and its label.
fn link(text: &str) -> Result<(String, &str), String> {
    let bad = || format!("a link was expected before `{}`", head(text));
    let starts = ["-.", "==", "--", "~~", "<-", "x-", "o-"];
    if !starts.iter().any(|start| text.starts_with(start)) {
        return Err(bad());
    }
    let is_line = |c: char| matches!(c, '-' | '=' | '.' | '~' | '<' | '>' | 'x' | 'o');
    let first = text.find(|c: char| !is_line(c)).unwrap_or(text.len());
    let (line, rest) = text.split_at(first);
    if let Some(labelled) = rest.strip_prefix('|') {
        let (label, after) = labelled.split_once('|').ok_or("a label is not closed")?;
        return Ok((label.trim_matches('"').to_owned(), after));
    }
    let is_whole = line.ends_with(['>', 'x', 'o'])
        || line == "---"
        || line == "==="
        || line == "-.-"
        || line == "~~~";
    if is_whole {
        return Ok((String::new(), rest));
    }
    // A label within the link: `-- label -->`.
    let ends = ["-->", "---", "==>", "===", ".->", ".-"];
    let (at, end) = ends
        .iter()
        .filter_map(|end| Some((rest.find(end)?, *end)))
        .min()
        .ok_or_else(bad)?;
    Ok((rest[..at].trim().to_owned(), &rest[at + end.len()..]))
}

fn head(text: &str) -> String {
    text.chars().take(24).collect()
}

/// Brackets of node shapes. Longer ones come first, because the first match wins.
const SHAPES: [(&str, &str); 9] = [
    ("([", "])"),
    ("[[", "]]"),
    ("[(", ")]"),
    ("((", "))"),
    ("{{", "}}"),
    ("[", "]"),
    ("(", ")"),
    ("{", "}"),
    (">", "]"),
];

const SEQUENCE_ARROWS: [&str; 8] = ["-->>", "->>", "-->", "->", "--x", "-x", "--)", "-)"];

/// Draws a flowchart with its rows from top to bottom. A row with many nodes takes several lines, so that the picture fits into
/// the width of a page. `None` for other kinds and for empty diagrams.
pub fn svg(diagram: &Diagram) -> Option<Markup> {
    if diagram.kind != Kind::Flowchart || diagram.nodes.is_empty() {
        return None;
    }
    let (places, lines) = placed(&rows(diagram));
    let widest = lines.iter().max().copied().unwrap_or(1);
    let (width, height) = (
        widest * (BOX_WIDTH + GAP) + GAP,
        lines.len() * (BOX_HEIGHT + GAP) + GAP,
    );
    let centre = |node: usize| {
        let (column, line) = places[node];
        let indent = (widest - lines[line]) * (BOX_WIDTH + GAP) / 2;
        let x = GAP + indent + column * (BOX_WIDTH + GAP) + BOX_WIDTH / 2;
        (x, GAP + line * (BOX_HEIGHT + GAP) + BOX_HEIGHT / 2)
    };
    let edges = diagram.edges.iter().filter_map(|(from, to, label)| {
        let arrow = Arrow::between(centre(*from), centre(*to))?;
        Some(html! {
            line x1=(arrow.start.0) y1=(arrow.start.1) x2=(arrow.end.0) y2=(arrow.end.1) {}
            polygon points=(arrow.head) {}
            @if !label.is_empty() {
                text x=((arrow.start.0 + arrow.end.0) / 2) y=((arrow.start.1 + arrow.end.1) / 2) class="edge" {
                    (cut(&unlabelled(label), LABEL_COLUMNS))
                }
            }
        })
    });
    let nodes = diagram.nodes.iter().enumerate().map(|(at, (_, label))| {
        let (x, y) = centre(at);
        html! {
            rect x=(x - BOX_WIDTH / 2) y=(y - BOX_HEIGHT / 2) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="6" {}
            text x=(x) y=(y + 5) { (cut(&unlabelled(label), LABEL_COLUMNS)) }
        }
    });
    Some(html! {
        svg viewBox=(format!("0 0 {width} {height}")) width=(width) role="img" {
            @for edge in edges { (edge) }
            @for node in nodes { (node) }
        }
    })
}

/// Returns the column and the line of each node, and how many nodes each line has.
fn placed(rows: &[usize]) -> (Vec<(usize, usize)>, Vec<usize>) {
    let depth = rows.iter().max().map_or(1, |deepest| deepest + 1);
    let mut sizes = vec![0_usize; depth];
    rows.iter().for_each(|row| sizes[*row] += 1);
    let mut lines = Vec::new();
    let mut first_lines = Vec::new();
    for size in &sizes {
        first_lines.push(lines.len());
        for first in (0..*size).step_by(COLUMNS_MAX) {
            lines.push((size - first).min(COLUMNS_MAX));
        }
    }
    let mut taken = vec![0_usize; depth];
    let places = rows.iter().map(|row| {
        let at = taken[*row];
        taken[*row] += 1;
        (at % COLUMNS_MAX, first_lines[*row] + at / COLUMNS_MAX)
    });
    (places.collect(), lines)
}

/// A line from the edge of one box to the edge of another, with the points of its head.
struct Arrow {
    start: (i64, i64),
    end: (i64, i64),
    head: String,
}

impl Arrow {
    /// Returns the arrow between two centres, or `None` if they are the same.
    fn between(from: (usize, usize), to: (usize, usize)) -> Option<Self> {
        let ((x1, y1), (x2, y2)) = ((from.0 as f64, from.1 as f64), (to.0 as f64, to.1 as f64));
        let (dx, dy) = (x2 - x1, y2 - y1);
        let length = dx.hypot(dy);
        if length == 0.0 {
            return None;
        }
        // The part of the line that is inside of a box.
        let across = |half: f64, distance: f64| match distance {
            0.0 => f64::INFINITY,
            distance => half / distance.abs(),
        };
        let inside = across(BOX_WIDTH as f64 / 2.0, dx).min(across(BOX_HEIGHT as f64 / 2.0, dy));
        // Boxes do not overlap, but rounding must not turn the arrow around.
        let inside = inside.min(0.49);
        let (start, end) = (
            (x1 + dx * inside, y1 + dy * inside),
            (x2 - dx * inside, y2 - dy * inside),
        );
        let (ux, uy) = (dx / length, dy / length);
        let base = (end.0 - HEAD_LENGTH * ux, end.1 - HEAD_LENGTH * uy);
        let points = [
            end,
            (base.0 - HEAD_HALF * uy, base.1 + HEAD_HALF * ux),
            (base.0 + HEAD_HALF * uy, base.1 - HEAD_HALF * ux),
        ];
        let round = |(x, y): (f64, f64)| (x.round() as i64, y.round() as i64);
        let points = points.map(|point| {
            let (x, y) = round(point);
            format!("{x},{y}")
        });
        Some(Self {
            start: round(start),
            end: round(end),
            head: points.join(" "),
        })
    }
}

/// Assigns each node to a row below the nodes that link to it. An edge to an earlier node that already has a row is ignored,
/// which breaks cycles.
fn rows(diagram: &Diagram) -> Vec<usize> {
    let mut rows = vec![0_usize; diagram.nodes.len()];
    for _ in 0..diagram.nodes.len().min(12) {
        for (from, to, _) in &diagram.edges {
            if from < to || rows[*to] == 0 && from != to {
                rows[*to] = rows[*to].max(rows[*from] + 1).min(diagram.nodes.len());
            }
        }
    }
    rows
}

const BOX_WIDTH: usize = 200;
const BOX_HEIGHT: usize = 36;
const GAP: usize = 32;
/// Maximum number of boxes next to each other.
const COLUMNS_MAX: usize = 4;
/// Columns of a label that fit into a box.
const LABEL_COLUMNS: usize = 26;
const HEAD_LENGTH: f64 = 9.0;
const HEAD_HALF: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flowchart_is_read_with_its_labels() {
        let text = "graph TD\n  A[Start] --> B{\"ok?\"}\n  B -->|yes| C & D\n  B -- no --> E((x))\n  C -.-> A\n subgraph one\n  D === E\n end\n classDef x fill:#fff";
        let diagram = parse(text).unwrap();
        assert_eq!(diagram.nodes.len(), 5);
        assert_eq!(diagram.nodes[1], ("B".to_owned(), "ok?".to_owned()));
        let edges: Vec<_> = diagram
            .edges
            .iter()
            .map(|(a, b, label)| (*a, *b, label.as_str()))
            .collect();
        assert_eq!(
            edges,
            [
                (0, 1, ""),
                (1, 2, "yes"),
                (1, 3, "yes"),
                (1, 4, "no"),
                (2, 0, ""),
                (3, 4, "")
            ]
        );
        assert!(svg(&diagram).unwrap().into_string().contains("ok?"));
    }

    #[test]
    fn what_cannot_be_drawn_is_told_with_its_line() {
        for (text, line, why) in [
            ("", 1, "empty"),
            ("pie\n a: 1", 1, "not a kind"),
            ("graph XY\nA-->B", 1, "not a direction"),
            ("graph TD\nA[open --> B", 2, "not closed"),
            ("graph TD\nA[f(x)] --> B", 2, "needs quotes"),
            ("graph TD\nA --> ", 2, "expected"),
            ("graph TD\nA B", 2, "link"),
            ("graph TD\nsubgraph x\nA-->B", 3, "not closed"),
            ("sequenceDiagram\nA calls B", 2, "sends nothing"),
            ("erDiagram\nA ||--o{ B", 2, "label"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.why.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_other_kinds_are_read_too() {
        for text in [
            "sequenceDiagram\nparticipant A\nA->>B: hello\nB-->>A: hi\nloop x\nA->>A: y\nend",
            "classDiagram\nclass Cart {\n +items\n}\nCart <|-- Big\nCart : +add()",
            "erDiagram\nCART ||--o{ ITEM : holds\nCART {\n int id\n}",
            "stateDiagram-v2\n[*] --> Open\nOpen --> [*]",
        ] {
            parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn a_name_stays_a_label_whatever_is_in_it() {
        for name in [
            "C#",
            "a\"] --> x[\"b",
            "<img src=x onerror=alert(1)>",
            "a\n```\n<b>",
            "50%% off",
            "\u{202e}x",
            "&lt;",
            "#35;quot;",
        ] {
            let text = format!("graph TD\n  a[\"{}\"]\n  a --> b\n", label(name));
            let diagram = parse(&text).unwrap_or_else(|error| panic!("{name:?}: {error}"));
            assert_eq!(diagram.nodes.len(), 2, "{text}");
            assert!(!text.contains(['<', '`', '%', '\u{202e}']), "{text}");
            let meant = one_line(&name.split_whitespace().collect::<Vec<_>>().join(" "));
            assert_eq!(unlabelled(&diagram.nodes[0].1), meant);
            let drawn = svg(&diagram).unwrap().into_string();
            assert!(!drawn.contains("<img"), "{drawn}");
        }
    }

    #[test]
    fn what_acts_is_taken_out_of_a_diagram() {
        let flow = "%%{init: {'securityLevel': 'loose'}}%%\ngraph TD\nA[\"<a href='javascript:x'>y</a>\"] <--> B %% x\nclick A \"javascript:alert(1)\"\nstyle A fill:url(http://evil.example)";
        assert_eq!(
            tame(flow).unwrap(),
            "graph TD\nA[\"#lt;a href='javascript:x'>y#lt;/a>\"] <--> B\n"
        );
        let calls = "sequenceDiagram\nA->>B: hi; link A: x @ https://evil.example";
        assert_eq!(
            tame(calls).unwrap(),
            "sequenceDiagram\nA->>B: hi, link A: x @ https://evil.example\n"
        );
        let class = "classDiagram\nclass Cart {\n <<interface>>\n <<img src=x>>\n}\nCart <|-- Big";
        assert_eq!(
            tame(class).unwrap(),
            "classDiagram\nclass Cart {\n <<interface>>\n #lt;#lt;img src=x>>\n}\nCart <|-- Big\n"
        );
    }
}
