//! Plots: horizontal bars on a logarithmic scale, as SVG that is readable on light and on dark pages.

/// One picture: some groups of bars, one below the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Plot {
    pub(super) groups: Vec<Group>,
}

/// Bars that are compared with each other.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) bars: Vec<Bar>,
}

#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) kind: Kind,
    pub(super) value: f64,
}

/// Whose bar it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ours,
    Floor,
    Peer,
}

impl Plot {
    pub(super) fn svg(&self) -> String {
        let heights = self.groups.iter().map(Group::height);
        let height: f64 = heights.sum::<f64>() + MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<style>{STYLE}</style>\n"
        );
        let mut top = 0.0;
        for group in &self.groups {
            group.draw(&mut svg, top);
            top += group.height();
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Group {
    fn height(&self) -> f64 {
        TITLE + self.bars.len() as f64 * ROW + AXIS
    }

    fn draw(&self, svg: &mut String, top: f64) {
        let scale = Scale::over(self.bars.iter().map(|bar| bar.value));
        let first = top + TITLE;
        let bottom = first + self.bars.len() as f64 * ROW;
        put(svg, MARGIN, top + TITLE - 12.0, "title", &self.title);
        for (at, label) in scale.marks() {
            svg.push_str(&format!("<line class=\"mark\" x1=\"{at:.1}\" y1=\"{first}\" x2=\"{at:.1}\" y2=\"{bottom}\"/>\n"));
            put(svg, at, bottom + 16.0, "axis", &label);
        }
        for (at, bar) in self.bars.iter().enumerate() {
            bar.draw(svg, first + at as f64 * ROW, &scale);
        }
    }
}

impl Bar {
    fn draw(&self, svg: &mut String, top: f64, scale: &Scale) {
        let (end, middle) = (scale.at(self.value), top + ROW / 2.0 + 4.5);
        put(svg, LEFT - 10.0, middle, "label", &self.label);
        svg.push_str(&format!("<rect class=\"{}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"/>\n",
            self.kind.class(),
            top + 3.0,
            (end - LEFT).max(1.0),
            ROW - 6.0));
        put(svg, end + 6.0, middle, "value", &number(self.value));
    }
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Kind::Ours => "ours",
            Kind::Floor => "floor",
            Kind::Peer => "peer",
        }
    }
}

/// Powers of ten from one side of the picture to the other.
struct Scale {
    low: i32,
    high: i32,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let powers = values.filter(|value| *value > 0.0).map(f64::log10);
        let (low, high) = powers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), power| {
            (low.min(power), high.max(power))
        });
        if !low.is_finite() {
            return Self { low: 0, high: 1 };
        }
        // Half a power below the least, so that its bar can be seen.
        let (low, high) = ((low - 0.5).floor() as i32, high.ceil() as i32);
        Self {
            low,
            high: high.max(low + 1),
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    fn marks(&self) -> impl Iterator<Item = (f64, String)> {
        (self.low..=self.high).map(|power| {
            let value = 10_f64.powi(power);
            (self.at(value), number(value))
        })
    }
}

fn put(svg: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    svg.push_str(&format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n"
    ));
}

/// A figure as people read it: few digits, and thousands apart.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if size >= 100.0 || size == 0.0 => 0,
        _ if size >= 10.0 => 1,
        _ => (1 - size.log10().floor() as i32).clamp(0, 9) as usize,
    };
    let text = format!("{value:.digits$}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match part {
        "" => grouped,
        part => format!("{grouped}.{part}"),
    }
}

const WIDTH: f64 = 860.0;
const MARGIN: f64 = 10.0;
const LEFT: f64 = 260.0;
const RIGHT: f64 = 770.0;
const TITLE: f64 = 44.0;
const ROW: f64 = 24.0;
const AXIS: f64 = 24.0;
const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#24292f}\
.title{font-weight:600;font-size:14px}.label{text-anchor:end}\
.axis{text-anchor:middle;font-size:11px;fill:#57606a}.mark{stroke:#57606a;stroke-opacity:.25}\
.ours{fill:#d9480f}.floor{fill:#868e96}.peer{fill:#4c7fb8}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.axis{fill:#9198a1}.mark{stroke:#9198a1}\
.ours{fill:#ff8a4c}.floor{fill:#8b949e}.peer{fill:#6ea8e6}}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_thousands_apart() {
        let read = [0.0123, 1.5, 42.0, 42.26, 1_234_567.0, 0.0].map(number);
        assert_eq!(read, ["0.012", "1.5", "42", "42.3", "1,234,567", "0"]);
    }

    #[test]
    fn a_bar_is_as_long_as_its_power_of_ten() {
        let scale = Scale::over([10.0, 1_000.0].into_iter());
        assert_eq!((scale.low, scale.high), (0, 3));
        assert!((scale.at(1_000.0) - RIGHT).abs() < 1e-9);
        assert!((scale.at(10.0) - LEFT - (RIGHT - LEFT) / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_plot_names_every_bar() {
        let bar = Bar {
            label: "a < b".to_owned(),
            kind: Kind::Ours,
            value: 5.0,
        };
        let group = Group {
            title: "speed".to_owned(),
            bars: vec![bar],
        };
        let svg = Plot {
            groups: vec![group],
        }
        .svg();
        assert!(svg.contains("a &lt; b") && svg.contains("class=\"ours\"") && svg.contains(">5<"));
    }
}
