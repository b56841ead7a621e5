//! Diagrams of pages: drawn with box characters in the files, where every viewer shows them, and as vectors in the book.
//!
//! One character is one cell of a grid, so a diagram looks the same in both. In the book its lines meet, its boxes are filled, and
//! its colours follow the theme.

/// Replaces each block of `text` that has lines between its words with a drawing of them.
pub(super) fn draw_diagrams(page: &str) -> String {
    let mut drawn = String::with_capacity(page.len());
    let mut block: Option<Vec<&str>> = None;
    for line in page.lines() {
        match &mut block {
            None if line == OPEN => block = Some(Vec::new()),
            None => push_line(&mut drawn, line),
            Some(_) if line == CLOSE => {
                let lines = block.take().unwrap_or_default();
                if lines.iter().any(|line| line.chars().any(is_line)) {
                    push_line(&mut drawn, &svg(&lines));
                } else {
                    push_block(&mut drawn, &lines);
                    push_line(&mut drawn, CLOSE);
                }
            }
            Some(lines) => lines.push(line),
        }
    }
    if let Some(lines) = block {
        push_block(&mut drawn, &lines);
    }
    drawn
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn push_block(text: &mut String, lines: &[&str]) {
    push_line(text, OPEN);
    for line in lines {
        push_line(text, line);
    }
}

/// On one line: Markdown ends a block of HTML at an empty one.
fn svg(lines: &[&str]) -> String {
    let grid = Grid::of(lines);
    let [width, height] = [grid.columns() as f32 * WIDTH, lines.len() as f32 * HEIGHT];
    let mut svg = format!(
        "<div class=\"diagram\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">",
        escaped(
            &grid
                .words()
                .map(|word| word.text)
                .collect::<Vec<_>>()
                .join("; ")
        )
    );
    for [left, top, right, bottom] in grid.boxes() {
        let [x, y] = middle(left, top);
        let [to_x, to_y] = middle(right, bottom);
        let (width, height) = (to_x - x, to_y - y);
        svg.push_str(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }
    let (strokes, heads) = grid.paths();
    svg.push_str(&format!("<path d=\"{strokes}\"/>"));
    svg.push_str(&format!("<path class=\"heads\" d=\"{heads}\"/>"));
    for word in grid.words() {
        // The length holds whatever font the reader's system has.
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
            word.column as f32 * WIDTH,
            (word.row as f32 + BASELINE) * HEIGHT,
            word.text.chars().count() as f32 * WIDTH,
            escaped(&word.text)
        ));
    }
    svg.push_str("</svg></div>");
    svg
}

/// The characters of a diagram by row and column.
struct Grid(Vec<Vec<char>>);

/// Words with a single blank between them.
struct Word {
    row: usize,
    column: usize,
    text: String,
}

impl Grid {
    /// Without the indentation that all rows share.
    fn of(lines: &[&str]) -> Self {
        let rows = lines.iter().filter(|line| !line.trim().is_empty());
        let indent = rows
            .map(|line| line.chars().take_while(|c| *c == ' ').count())
            .min()
            .unwrap_or_default();
        let rows = lines
            .iter()
            .map(|line| line.trim_end().chars().skip(indent).collect());
        Self(rows.collect())
    }

    fn columns(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or_default()
    }

    fn at(&self, column: usize, row: usize) -> char {
        let row = self.0.get(row).map(Vec::as_slice).unwrap_or_default();
        row.get(column).copied().unwrap_or(' ')
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize, char)> {
        let rows = self.0.iter().enumerate();
        rows.flat_map(|(row, cells)| {
            let cells = cells.iter().enumerate();
            cells.map(move |(column, cell)| (column, row, *cell))
        })
    }

    fn words(&self) -> impl Iterator<Item = Word> {
        let rows = self.0.iter().enumerate();
        rows.flat_map(|(row, cells)| {
            let mut words: Vec<Word> = Vec::new();
            for (column, cell) in cells.iter().enumerate() {
                if *cell == ' ' || is_line(*cell) {
                    continue;
                }
                let last = words.last_mut().map(|word| {
                    let end = word.column + word.text.chars().count();
                    (word, end)
                });
                match last {
                    Some((word, end)) if end == column => word.text.push(*cell),
                    Some((word, end)) if end + 1 == column && cells[end] == ' ' => {
                        word.text.push(' ');
                        word.text.push(*cell);
                    }
                    _ => words.push(Word {
                        row,
                        column,
                        text: cell.to_string(),
                    }),
                }
            }
            words
        })
    }

    /// Left, top, right and bottom of each box whose four sides are drawn.
    fn boxes(&self) -> Vec<[usize; 4]> {
        let has = |column, row, side: usize| arms(self.at(column, row))[side];
        let mut boxes = Vec::new();
        for (left, top, _) in self.cells().filter(|(_, _, cell)| *cell == '┌') {
            let along = |from: usize| (from..self.columns()).take_while(|c| has(*c, top, LEFT));
            let Some(right) = along(left + 1).find(|c| self.at(*c, top) == '┐') else {
                continue;
            };
            let down = (top + 1..self.0.len()).take_while(|row| has(left, *row, UP));
            let is_closed = |row: usize| {
                self.at(left, row) == '└'
                    && self.at(right, row) == '┘'
                    && (left + 1..right).all(|column| has(column, row, LEFT))
                    && (top + 1..row).all(|row| has(right, row, UP))
            };
            if let Some(bottom) = down.into_iter().find(|row| is_closed(*row)) {
                boxes.push([left, top, right, bottom]);
            }
        }
        boxes
    }

    /// The strokes of all lines, and the outlines of the heads of arrows.
    fn paths(&self) -> (String, String) {
        let (mut strokes, mut heads) = (String::new(), String::new());
        for (column, row, cell) in self.cells() {
            let [x, y] = middle(column, row);
            let ends = [
                [x - WIDTH / 2.0, y],
                [x + WIDTH / 2.0, y],
                [x, y - HEIGHT / 2.0],
                [x, y + HEIGHT / 2.0],
            ];
            for (_, [to_x, to_y]) in arms(cell).iter().zip(ends).filter(|(arm, _)| **arm) {
                strokes.push_str(&format!("M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}"));
            }
            let [w, h] = [WIDTH / 2.0, HEIGHT / 2.0];
            if matches!(cell, '╲' | '╳') {
                strokes.push_str(&format!(
                    "M{:.1} {:.1}l{WIDTH:.1} {HEIGHT:.1}",
                    x - w,
                    y - h
                ));
            }
            if matches!(cell, '╱' | '╳') {
                strokes.push_str(&format!(
                    "M{:.1} {:.1}l{WIDTH:.1} -{HEIGHT:.1}",
                    x - w,
                    y + h
                ));
            }
            // From the tip back to both corners.
            heads.push_str(&match cell {
                '▶' => format!("M{:.1} {y:.1}l-{WIDTH:.1} -4v8z", x + w),
                '◀' => format!("M{:.1} {y:.1}l{WIDTH:.1} -4v8z", x - w),
                '▲' => format!("M{x:.1} {:.1}l-4 {WIDTH:.1}h8z", y - h),
                '▼' => format!("M{x:.1} {:.1}l-4 -{WIDTH:.1}h8z", y + h),
                _ => String::new(),
            });
        }
        (strokes, heads)
    }
}

fn middle(column: usize, row: usize) -> [f32; 2] {
    [(column as f32 + 0.5) * WIDTH, (row as f32 + 0.5) * HEIGHT]
}

const LEFT: usize = 0;
const UP: usize = 2;

/// Whether a line leaves the middle of its cell to the left, right, top and bottom.
fn arms(cell: char) -> [bool; 4] {
    let sides = match cell {
        '─' => "lr",
        '│' => "ud",
        '┌' => "rd",
        '┐' => "ld",
        '└' => "ru",
        '┘' => "lu",
        '├' => "rud",
        '┤' => "lud",
        '┬' => "lrd",
        '┴' => "lru",
        '┼' => "lrud",
        '▶' => "l",
        '◀' => "r",
        '▲' => "d",
        '▼' => "u",
        _ => "",
    };
    ['l', 'r', 'u', 'd'].map(|side| sides.contains(side))
}

fn is_line(cell: char) -> bool {
    arms(cell).contains(&true) || matches!(cell, '╲' | '╱' | '╳')
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

const OPEN: &str = "```text";
const CLOSE: &str = "```";
/// Of a cell, in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 20.0;
/// Where letters stand, as a part of the height of their row.
const BASELINE: f32 = 0.72;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_between_words_are_drawn_and_other_blocks_stay() {
        let page = "before\n\n```text\n  a ─▶ b & c   d\n```\n\n```text\nplain\n```\nafter\n";
        let drawn = draw_diagrams(page);
        assert!(
            drawn.starts_with("before\n\n<div class=\"diagram\"><svg "),
            "{drawn}"
        );
        assert!(
            drawn.ends_with("</svg></div>\n\n```text\nplain\n```\nafter\n"),
            "{drawn}"
        );
        assert!(drawn.contains("aria-label=\"a; b &amp; c; d\""), "{drawn}");
        // `b & c` is five cells from the sixth on: two words, one blank between them each.
        assert!(drawn.contains(">b &amp; c</text>"), "{drawn}");
        assert_eq!(drawn.matches("<text ").count(), 3);
    }

    #[test]
    fn a_box_is_filled_if_it_is_closed() {
        let closed = ["┌───┐", "│ a │", "└───┘"];
        assert_eq!(Grid::of(&closed).boxes(), [[0, 0, 4, 2]]);
        let open = ["┌─ no ─┐", "│      │", "└──────┘"];
        assert!(Grid::of(&open).boxes().is_empty());
        let cut = ["┌───┐", "│ a  ", "└───┘"];
        assert!(Grid::of(&cut).boxes().is_empty());
    }

    #[test]
    fn a_block_that_is_not_closed_stays() {
        assert_eq!(draw_diagrams("```text\na ─ b\n"), "```text\na ─ b\n");
    }
}
