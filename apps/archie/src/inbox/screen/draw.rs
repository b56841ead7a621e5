//! Draws the full-screen inbox.
//!
//! From top to bottom: a title, the list, the item, a notice, and the keys. On a wide terminal the item is to the right of the
//! list. Drawing an item is what counts as reading it, so only rows that fit on the screen are marked as read.

use archie_agent::printable::{counted, grouped, one_line};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::state::{Entry, InboxScreen, Mode, Phase, Reading};

/// Colours by meaning; none if the person wants none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    pub(super) has_colours: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        match self.has_colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    fn problem(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn good(self) -> Style {
        self.colour(Color::Green)
    }

    fn waiting(self) -> Style {
        self.colour(Color::Yellow)
    }

    fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

/// Draws the screen.
pub(super) fn draw(screen: &mut InboxScreen, frame: &mut Frame<'_>, theme: Theme) {
    let message = notice_lines(screen, frame.area().width, theme);
    let [title, body, notice, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(u16::try_from(message.len()).unwrap_or(1)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(title_line(screen, theme), title);
    let [list, item] = split(screen, body);
    if list.area() > 0 {
        draw_list(screen, frame, list, theme);
    }
    if item.area() > 0 {
        draw_item(screen, frame, item, theme);
    }
    frame.render_widget(Paragraph::new(message), notice);
    frame.render_widget(keys_line(screen, theme), keys);
    let over = match &screen.mode {
        Mode::Help => Some(help(screen)),
        _ => None,
    };
    if let Some(lines) = over {
        let inside = draw_frame(frame, "Keys", lines.len(), theme);
        frame.render_widget(Paragraph::new(lines), inside);
    } else if let Mode::Review { diff, .. } = &mut screen.mode {
        let inside = draw_frame(frame, "Your changes", usize::from(body.height), theme);
        diff.show(usize::from(inside.width), usize::from(inside.height));
        draw_diff(frame, inside, diff, theme);
    }
}

/// Returns where the list and the item are. An item with the whole screen leaves nothing for the list.
fn split(screen: &InboxScreen, body: Rect) -> [Rect; 2] {
    if screen.is_zoomed {
        return [Rect::ZERO, body];
    }
    if body.width >= WIDE {
        return Layout::horizontal([Constraint::Percentage(40), Constraint::Percentage(60)])
            .areas(body);
    }
    let entries = u16::try_from(screen.entries.len()).unwrap_or(u16::MAX);
    let rows = entries.clamp(1, (body.height / 3).max(1));
    Layout::vertical([Constraint::Length(rows), Constraint::Min(1)]).areas(body)
}

fn title_line(screen: &InboxScreen, theme: Theme) -> Line<'static> {
    let open = screen.open().len();
    let mut spans = vec![Span::styled(
        "Inbox",
        Style::new().add_modifier(Modifier::BOLD),
    )];
    let count = match (screen.is_loaded, open) {
        (false, _) => "loading…".to_owned(),
        (true, 0) => "no open questions".to_owned(),
        (true, open) => counted(open, "open question"),
    };
    spans.push(Span::raw(format!("  {count}")));
    let running = screen.running();
    if running > 0 {
        let text = format!("  {running} running");
        spans.push(Span::styled(text, theme.waiting()));
    }
    if !screen.filter.is_empty() {
        let text = format!("  only “{}”", one_line(&screen.filter));
        spans.push(Span::styled(text, theme.waiting()));
    }
    Line::from(spans)
}

fn draw_list(screen: &InboxScreen, frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let entries: Vec<_> = screen.visible().collect();
    if entries.is_empty() {
        let text = match (screen.is_loaded, screen.filter.is_empty()) {
            (false, _) => "",
            (true, true) => "Nothing waits for you. New questions appear here.",
            (true, false) => "No item matches; Esc shows all.",
        };
        frame.render_widget(Paragraph::new(text).style(theme.quiet()), area);
        return;
    }
    let selected = screen.selected_entry().map(Entry::id);
    let at = entries
        .iter()
        .position(|entry| Some(entry.id()) == selected);
    let rows = usize::from(area.height);
    // The selected item is in the middle where it can be.
    let first = at.unwrap_or(0).saturating_sub(rows / 2);
    let first = first.min(entries.len().saturating_sub(rows));
    let agent = entries.iter().map(|entry| entry.loaded.agent.width()).max();
    let columns = ListColumns {
        width: usize::from(area.width),
        agent: agent.unwrap_or(0).min(AGENT_COLUMNS),
    };
    let lines = entries.iter().skip(first).take(rows).map(|entry| {
        let is_selected = Some(entry.id()) == selected;
        list_line(screen, entry, is_selected, columns, theme)
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

#[derive(Debug, Clone, Copy)]
struct ListColumns {
    width: usize,
    agent: usize,
}

fn list_line(
    screen: &InboxScreen,
    entry: &Entry,
    is_selected: bool,
    columns: ListColumns,
    theme: Theme,
) -> Line<'static> {
    let item = &entry.loaded.item;
    let (sign, style) = match &entry.phase {
        Phase::Open => (" ", Style::new()),
        Phase::Running(_) => ("…", theme.waiting()),
        Phase::Ended { is_ok: true, .. } => ("✓", theme.good()),
        Phase::Ended { is_ok: false, .. } => ("!", theme.problem()),
        Phase::Closed(_) => ("×", theme.quiet()),
    };
    let deadline = item.open.interrupt.deadline;
    let when = match deadline {
        Some(deadline) => format!("due {}", span(deadline.0 - screen.now.0)),
        None => span(screen.now.0 - item.open.row.asked_at.0),
    };
    let begin = format!(
        "{}{sign} {}  {}  ",
        if is_selected { ">" } else { " " },
        item.short_id,
        padded(&entry.loaded.agent, columns.agent)
    );
    let left = columns
        .width
        .saturating_sub(begin.width() + when.width() + 2);
    let subject = padded(&entry.loaded.subject, left);
    let style = match is_selected {
        true => style.add_modifier(Modifier::REVERSED),
        false => style,
    };
    let when_style = match deadline {
        Some(_) => theme.waiting(),
        None => theme.quiet(),
    };
    Line::from(vec![
        Span::styled(format!("{begin}{subject} "), style),
        Span::styled(format!(" {when}"), when_style),
    ])
}

fn draw_item(screen: &mut InboxScreen, frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let has_list_above = !screen.is_zoomed && frame.area().width < WIDE;
    let borders = match (screen.is_zoomed, has_list_above) {
        (true, _) => Borders::NONE,
        (false, true) => Borders::TOP,
        (false, false) => Borders::LEFT,
    };
    let now = screen.now.0;
    let Some(entry) = screen.selected_mut() else {
        return;
    };
    let item = &entry.loaded.item;
    let title = format!(
        " {}  {}  thread {}  asked {} ago ",
        item.short_id,
        entry.loaded.agent,
        short_thread(&item.open.row.thread.to_string()),
        span(now - item.open.row.asked_at.0),
    );
    let block = Block::new().borders(borders).border_style(theme.quiet());
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let [head, text, foot] = Layout::vertical([
        Constraint::Length(u16::from(!has_list_above)),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(inside);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match has_list_above {
        true => {
            let top = Rect {
                x: area.x + 1,
                width: area.width.saturating_sub(1),
                height: 1,
                ..area
            };
            frame.render_widget(Line::styled(title, bold), top);
        }
        false => frame.render_widget(Line::styled(title, bold), head),
    }
    let (rows, status) = match &entry.phase {
        Phase::Open => (None, None),
        Phase::Closed(why) => (
            None,
            Some((format!("{why}; the item is closed"), theme.problem())),
        ),
        Phase::Running(output) => {
            let progress = output.progress().unwrap_or_else(|| "running".to_owned());
            (Some(output.lines()), Some((progress, theme.waiting())))
        }
        Phase::Ended { lines, is_ok } => {
            let status = match is_ok {
                true => ("answered".to_owned(), theme.good()),
                false => ("answered; the run failed".to_owned(), theme.problem()),
            };
            (Some(lines.clone()), Some(status))
        }
    };
    if let Some(lines) = rows {
        draw_output(frame, text, &lines);
    } else if let Some(reading) = entry.reading.as_mut() {
        reading.show(usize::from(text.width), usize::from(text.height));
        draw_text(frame, text, reading);
    }
    let status = status.unwrap_or_else(|| reading_status(entry, theme));
    frame.render_widget(Line::styled(status.0, status.1), foot);
}

/// Draws the last lines that a run printed.
fn draw_output(frame: &mut Frame<'_>, area: Rect, lines: &[String]) {
    let text = lines.join("\n").replace('\t', "    ");
    let rows = super::wrap::wrap(&text, usize::from(area.width));
    let first = rows.len().saturating_sub(usize::from(area.height));
    let rows = rows[first..].iter().map(|row| row_line(&text, row));
    frame.render_widget(Paragraph::new(rows.collect::<Vec<_>>()), area);
}

fn draw_text(frame: &mut Frame<'_>, area: Rect, reading: &Reading) {
    let rows = reading.rows.iter().skip(reading.top);
    let rows = rows.take(usize::from(area.height));
    let lines = rows.map(|row| row_line(&reading.shown.text, row));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn row_line(text: &str, row: &super::wrap::Row) -> Line<'static> {
    Line::raw(format!(
        "{}{}",
        " ".repeat(row.indent),
        &text[row.range.clone()]
    ))
}

fn reading_status(entry: &Entry, theme: Theme) -> (String, Style) {
    let Some(reading) = &entry.reading else {
        return ("loading…".to_owned(), theme.quiet());
    };
    let bottom = (reading.top + reading.height()).min(reading.rows.len());
    let lines = format!(
        "line {} of {}",
        grouped(bottom),
        grouped(reading.rows.len())
    );
    match (
        reading.is_read(),
        entry.loaded.item.asked.may_permit_effect(),
    ) {
        (true, true) => (format!("{lines}, read in full"), theme.good()),
        (true, false) => (lines, theme.quiet()),
        (false, true) => (
            format!("{lines}; Space: more. Read it to its end to approve it"),
            theme.waiting(),
        ),
        (false, false) => (format!("{lines}; Space: more"), theme.quiet()),
    }
}

/// Returns what the person should know now, or the line that they type: one row at least, so that nothing moves when a short
/// message comes or goes.
fn notice_lines(screen: &InboxScreen, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let width = usize::from(width);
    if let Mode::Typing(line) = &screen.mode {
        let label = format!("{}: ", line.label);
        let left = width.saturating_sub(label.width() + 2);
        // The end of a long line is what the person types.
        return vec![Line::from(vec![
            Span::styled(label, Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(end_of(&one_line(&line.text), left)),
            Span::styled(" ", Style::new().add_modifier(Modifier::REVERSED)),
        ])];
    }
    // What became of an answer is more urgent than a list that is not up to date.
    let (text, style) = match (&screen.notice, &screen.trouble) {
        (Some(notice), _) if notice.is_problem => (&notice.text, theme.problem()),
        (_, Some(trouble)) => (trouble, theme.problem()),
        (Some(notice), None) => (&notice.text, Style::new()),
        (None, None) => return vec![Line::default()],
    };
    let text = one_line(text);
    let rows = super::wrap::wrap(&text, width);
    let rows = rows.iter().take(NOTICE_ROWS_MAX);
    rows.map(|row| row_line(&text, row).style(style)).collect()
}

fn keys_line(screen: &InboxScreen, theme: Theme) -> Line<'static> {
    let text = match &screen.mode {
        Mode::Typing(_) => "Enter: send   Esc: back".to_owned(),
        Mode::Confirm { label, .. } => format!("{label}?   Enter: yes   any other key: no"),
        Mode::Review { diff, .. } if diff.is_read() => {
            "send it with these changes?   Enter: yes   any other key: no".to_owned()
        }
        Mode::Review { .. } => "Space: more   Esc: back".to_owned(),
        Mode::Help => "any key: back".to_owned(),
        Mode::Leave => format!(
            "{} in progress; the answers are stored.   q: leave now   any other key: stay",
            counted(screen.running(), "run")
        ),
        Mode::Browse => browse_keys(screen),
    };
    let style = match &screen.mode {
        Mode::Confirm { .. } | Mode::Review { .. } | Mode::Leave => {
            theme.waiting().add_modifier(Modifier::BOLD)
        }
        _ => theme.quiet(),
    };
    Line::styled(text, style)
}

fn browse_keys(screen: &InboxScreen) -> String {
    let choices = screen.selected_entry().and_then(|entry| {
        let is_open = matches!(entry.phase, Phase::Open);
        let reading = entry.reading.as_ref().filter(|_| is_open)?;
        let choices = reading.shown.choices.iter();
        let choices = choices.map(|choice| format!("{}: {}   ", choice.key, choice.label));
        Some(choices.collect::<String>())
    });
    format!(
        "{}j/k: move   ?: keys   q: leave",
        choices.unwrap_or_default()
    )
}

fn help(screen: &InboxScreen) -> Vec<Line<'static>> {
    let mut lines = vec![
        "j k, arrows    next or previous item",
        "g G            first or last item",
        "Space b        next or previous page of the item",
        "J K            one line down or up",
        "Enter, z       item on the whole screen, and back",
        "/              show only items with these words; Esc shows all",
        "x              remove answered items from the list",
        "R              load the list now; it loads by itself every second",
        "q              leave; items stay open",
        "",
        "For this item:",
    ]
    .into_iter()
    .map(Line::raw)
    .collect::<Vec<_>>();
    let reading = screen
        .selected_entry()
        .and_then(|entry| entry.reading.as_ref());
    for choice in reading
        .into_iter()
        .flat_map(|reading| &reading.shown.choices)
    {
        lines.push(Line::raw(format!(
            "{}              {}",
            choice.key, choice.label
        )));
    }
    lines
}

fn draw_diff(frame: &mut Frame<'_>, area: Rect, diff: &Reading, theme: Theme) {
    let text = &diff.shown.text;
    let rows = diff
        .rows
        .iter()
        .skip(diff.top)
        .take(usize::from(area.height));
    let lines = rows.map(|row| {
        // A row that continues a line has the colour of the line.
        let line = text[..row.range.start].rfind('\n').map_or(0, |at| at + 1);
        let style = match text[line..].trim_start().chars().next() {
            Some('+') => theme.good(),
            Some('-') => theme.colour(Color::Red),
            _ => Style::new(),
        };
        row_line(text, row).style(style)
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

/// Clears a part of the screen for so many rows, with a frame. Returns what is inside of the frame.
fn draw_frame(frame: &mut Frame<'_>, title: &str, rows: usize, theme: Theme) -> Rect {
    let screen = frame.area();
    let height = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2);
    let area = Rect {
        x: 0,
        y: 1,
        width: screen.width,
        height: height.min(screen.height.saturating_sub(3)),
    };
    let block = Block::bordered()
        .title(format!(" {title} "))
        .border_style(theme.quiet());
    let inside = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inside
}

/// Returns a text with exactly this many columns, cut with `…` if it is longer.
fn padded(text: &str, columns: usize) -> String {
    let mut cut = String::new();
    let mut used = 0;
    for sign in text.graphemes(true) {
        let width = sign.width();
        if used + width > columns {
            while used >= columns.max(1) {
                let last = cut.grapheme_indices(true).next_back();
                let Some((at, last)) = last.map(|(at, last)| (at, last.width())) else {
                    break;
                };
                cut.truncate(at);
                used -= last;
            }
            if columns > 0 {
                cut.push('…');
                used += 1;
            }
            break;
        }
        cut.push_str(sign);
        used += width;
    }
    cut.push_str(&" ".repeat(columns.saturating_sub(used)));
    cut
}

/// Returns as much of the end of a text as fits.
fn end_of(text: &str, columns: usize) -> String {
    let mut used = 0;
    let start = text.grapheme_indices(true).rev().take_while(|(_, sign)| {
        used += sign.width();
        used <= columns
    });
    let start = start.last().map_or(text.len(), |(at, _)| at);
    text[start..].to_owned()
}

/// Returns a time span in its largest unit, such as `5m`.
fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn short_thread(id: &str) -> &str {
    id.get(..THREAD_CHARS).unwrap_or(id)
}

/// Maximum number of rows of a message. Long ones leave room for the item.
const NOTICE_ROWS_MAX: usize = 3;
/// From this width on, the list and the item are next to each other.
const WIDE: u16 = 110;
const AGENT_COLUMNS: usize = 15;
/// Ids of threads begin with their time; shorter prefixes would be ambiguous.
const THREAD_CHARS: usize = 13;
