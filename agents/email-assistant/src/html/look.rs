//! Decides whether a person would see the text of an element, from its own and its inherited styles.

use cssparser::color::{parse_hash_color, parse_named_color};

use super::rules::Declared;
use super::tree::Element;

/// Computed style of an element's text, as far as visibility depends on it.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// Hidden, and descendants cannot undo it (`display: none`).
    is_gone: bool,
    /// Hidden, unless a descendant makes itself visible (`visibility: hidden`).
    is_invisible: bool,
    ink: Colour,
    ground: Colour,
    opacity: f32,
    font_px: f32,
    tight: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            is_gone: false,
            is_invisible: false,
            ink: Colour::BLACK,
            ground: Colour::WHITE,
            opacity: 1.0,
            font_px: FONT_PX,
            tight: false,
        }
    }
}

impl Look {
    /// Returns whether text in this style is invisible.
    pub(super) fn hides(&self) -> bool {
        self.is_gone
            || self.is_invisible
            || self.tight
            || self.opacity <= OPACITY_MIN
            || self.font_px <= FONT_PX_MIN
            || self.ink.over(self.ground).contrast(self.ground) < CONTRAST_MIN
    }

    /// Returns a copy that is hidden together with all descendants.
    pub(super) fn gone(&self) -> Self {
        Self {
            is_gone: true,
            ..self.clone()
        }
    }

    /// Computes the style of a child element from this style and the child's declarations.
    pub(super) fn inside(&self, element: &Element, declared: &Declared) -> Self {
        let mut look = self.clone();
        let get = |name: &str| declared.get(name).map(String::as_str);
        look.hints(element);
        if let Some(size) = get("font-size").or_else(|| get("font").map(size_of_font)) {
            look.font_px = font_px(size, self.font_px);
        }
        match get("visibility") {
            None => {}
            Some("visible" | "initial") => look.is_invisible = false,
            Some("inherit" | "unset") => {}
            Some(_) => look.is_invisible = true,
        }
        if let Some(value) = get("background-color").or_else(|| get("background")) {
            look.paint(value);
        }
        for name in ["color", "-webkit-text-fill-color"] {
            match get(name).map(|value| (value, colour(value))) {
                Some((_, Some(ink))) => look.ink = ink,
                // An unsupported colour function may yield any colour, so assume an invisible one.
                Some((value, None)) if value.contains('(') => look.ink = Colour::NONE,
                _ => {}
            }
        }
        if let Some(opacity) = get("opacity") {
            look.opacity *= fraction(opacity).unwrap_or(0.0);
        }
        if let Some(spacing) = get("letter-spacing") {
            look.tight = numbers(spacing).any(|(value, unit)| match unit {
                "em" | "rem" => value <= -0.3,
                _ => value <= -4.0,
            });
        }
        look.is_gone |= takes_away(declared, look.font_px);
        look
    }

    /// Applies style attributes such as `bgcolor`, as old emails use them.
    fn hints(&mut self, element: &Element) {
        if let Some(ground) = element.attribute("bgcolor") {
            self.paint(ground);
        }
        let ink = match element.name() {
            "font" | "basefont" => element.attribute("color"),
            "body" => element.attribute("text"),
            _ => None,
        };
        if let Some(ink) = ink.and_then(old_colour) {
            self.ink = ink;
        }
    }

    fn paint(&mut self, value: &str) {
        let parts = value.split([' ', ',', '(', ')']);
        let found = colour(value)
            .or_else(|| old_colour(value))
            .or_else(|| function_in(value).and_then(colour))
            .or_else(|| parts.into_iter().find_map(colour));
        if let Some(ground) = found {
            self.ground = ground.over(self.ground);
        }
    }
}

/// Returns whether the declarations hide an element, shrink it to nothing or move it out of view.
fn takes_away(declared: &Declared, font_px: f32) -> bool {
    let get = |name: &str| declared.get(name).map(String::as_str);
    let is_set = |name: &str, harmless: &[&str]| {
        get(name).is_some_and(|value| {
            let plain = ["", "inherit", "initial", "unset", "revert"];
            !harmless.contains(&value) && !plain.contains(&value)
        })
    };
    let is_clipped = ["overflow", "overflow-x", "overflow-y"]
        .iter()
        .any(|name| get(name).is_some_and(|value| !value.starts_with("visible")));
    let has_no_room = SIZES.iter().any(|name| {
        get(name).is_some_and(|value| match length(value, font_px) {
            Some(px) => px <= 0.0 || (px <= 2.0 && is_clipped),
            None => is_clipped && (value.contains("calc") || value.contains("var(")),
        })
    });
    let is_away = PLACES.iter().any(|name| {
        get(name).is_some_and(|value| {
            value.contains("var(")
                || numbers(value).any(|(value, unit)| match unit {
                    "%" => value <= -100.0 || value >= 200.0,
                    "vw" | "vh" => value <= -50.0 || value >= 100.0,
                    "em" | "rem" | "ex" | "ch" => value <= -12.0 || value >= 120.0,
                    "cm" | "in" | "pc" => value <= -3.0 || value >= 30.0,
                    _ => value <= -200.0 || value >= 2_000.0,
                })
        })
    });
    let is_behind = is_set("position", &["static"])
        && get("z-index").is_some_and(|value| value.starts_with('-'));
    let shrinks = ["scale", "zoom"]
        .iter()
        .any(|name| get(name).is_some_and(|value| numbers(value).any(is_tiny)));
    let is_turned = ["transform", "-webkit-transform"].iter().any(|name| {
        get(name).is_some_and(|value| {
            value.contains("matrix")
                || value.contains("rotatex")
                || value.contains("rotatey")
                || value.contains("rotate3d")
                || value
                    .split("scale")
                    .skip(1)
                    .any(|rest| numbers(rest.split(')').next().unwrap_or_default()).any(is_tiny))
        })
    });
    get("display").is_some_and(|value| value.contains("none") || value.contains("var("))
        || get("mso-hide").is_some_and(|value| value != "none")
        || get("content-visibility") == Some("hidden")
        || get("filter").is_some_and(|value| FADING.iter().any(|name| value.contains(name)))
        || get("font-size-adjust").is_some_and(|value| numbers(value).any(is_tiny))
        || is_set("clip", &["auto"])
        || HIDING
            .iter()
            .any(|name| is_set(name, &["none", "normal", "border-box", "margin-box"]))
        || has_no_room
        || is_away
        || is_behind
        || shrinks
        || is_turned
        || get("rotate").is_some_and(|value| value.starts_with(['x', 'y']))
}

fn is_tiny((value, unit): (f32, &str)) -> bool {
    let value = if unit == "%" { value / 100.0 } else { value };
    value.abs() < 0.15
}

/// Returns the size in a `font` shorthand such as `italic 12px/1.5 Arial`.
fn size_of_font(font: &str) -> &str {
    let is_size = |word: &&str| {
        let first = word.chars().next().unwrap_or_default();
        let is_weight = word.len() == 3 && word.ends_with("00");
        (first.is_ascii_digit() && !is_weight) || first == '.' || word.contains('(')
    };
    let size = font.split(' ').find(is_size).unwrap_or("medium");
    size.split('/').next().unwrap_or_default()
}

fn font_px(size: &str, inherited: f32) -> f32 {
    match size {
        "xx-small" => 9.0,
        "x-small" => 10.0,
        "small" => 13.0,
        "medium" | "initial" => FONT_PX,
        "large" => 18.0,
        "x-large" => 24.0,
        "xx-large" | "xxx-large" => 32.0,
        "smaller" => inherited * 0.83,
        "larger" => inherited * 1.2,
        "inherit" | "unset" | "" => inherited,
        _ => match (size.strip_suffix('%'), length(size, inherited)) {
            (Some(percent), _) => percent
                .parse::<f32>()
                .map_or(0.0, |percent| inherited * percent / 100.0),
            (None, Some(px)) => px,
            // An expression that is not evaluated here may yield zero.
            (None, None) if size.contains('(') => 0.0,
            (None, None) => inherited,
        },
    }
}

/// Converts a length to pixels; `None` if it is a function or has an unknown unit. Percentages and viewport units are
/// approximate.
fn length(value: &str, font_px: f32) -> Option<f32> {
    let (number, unit) = numbers(value).next().filter(|_| !value.contains('('))?;
    let px = match unit {
        "px" | "" => 1.0,
        "pt" => 4.0 / 3.0,
        "pc" => 16.0,
        "in" => 96.0,
        "cm" => 37.8,
        "mm" => 3.78,
        "q" => 0.945,
        "em" => font_px,
        "rem" => FONT_PX,
        "ex" | "ch" => font_px / 2.0,
        "vw" | "vh" | "vmin" | "vmax" | "%" => 8.0,
        _ => return None,
    };
    Some(number * px)
}

/// Parses `0.5` or `50%`.
fn fraction(value: &str) -> Option<f32> {
    let (number, unit) = numbers(value).next().filter(|_| !value.contains('('))?;
    Some(match unit {
        "%" => number / 100.0,
        _ => number,
    })
}

/// Returns every number in a value, with its unit.
fn numbers(value: &str) -> impl Iterator<Item = (f32, &str)> {
    let parts = value.split([' ', ',', '(', ')', '/', '*']);
    parts.filter_map(|part| {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
        let mut end = part.find(|c| !is_number(c)).unwrap_or(part.len());
        // Scientific notation, such as `1e-3`.
        if part[end..].starts_with('e')
            && part[end + 1..].starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
        {
            let rest = part[end + 2..].find(|c: char| !c.is_ascii_digit());
            end = rest.map_or(part.len(), |rest| end + 2 + rest);
        }
        let number = part[..end].parse::<f32>().ok()?;
        Some((number, &part[end..]))
    })
}

/// A colour with components and alpha from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Colour {
    rgb: [f32; 3],
    alpha: f32,
}

impl Colour {
    const BLACK: Self = Self {
        rgb: [0.0; 3],
        alpha: 1.0,
    };
    const WHITE: Self = Self {
        rgb: [1.0; 3],
        alpha: 1.0,
    };
    const NONE: Self = Self {
        rgb: [0.0; 3],
        alpha: 0.0,
    };

    /// Blends this colour over an opaque background.
    fn over(self, ground: Self) -> Self {
        let mix = |at: usize| self.rgb[at] * self.alpha + ground.rgb[at] * (1.0 - self.alpha);
        Self {
            rgb: [mix(0), mix(1), mix(2)],
            alpha: 1.0,
        }
    }

    /// Returns the contrast ratio of web accessibility guidelines (`WCAG`): 1 for equal colours, 21 for black on white.
    fn contrast(self, other: Self) -> f32 {
        let light = |colour: Self| {
            let linear = colour.rgb.map(|part| match part <= 0.04 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            });
            0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05
        };
        let (one, other) = (light(self), light(other));
        one.max(other) / one.min(other)
    }
}

fn colour(value: &str) -> Option<Colour> {
    let value = value.trim();
    if let Some(hash) = value.strip_prefix('#') {
        let (red, green, blue, alpha) = parse_hash_color(hash.as_bytes()).ok()?;
        return Some(of_bytes([red, green, blue], alpha));
    }
    if let Ok((red, green, blue)) = parse_named_color(value) {
        return Some(of_bytes([red, green, blue], 1.0));
    }
    match value {
        "transparent" => return Some(Colour::NONE),
        "canvas" | "window" | "field" | "background" | "menu" => return Some(Colour::WHITE),
        "canvastext" | "windowtext" | "fieldtext" | "initial" => return Some(Colour::BLACK),
        _ => {}
    }
    let (name, inside) = value.split_once('(')?;
    let parts: Vec<(f32, &str)> = numbers(inside).collect();
    let [first, second, third, ..] = parts[..] else {
        return None;
    };
    let alpha = parts.get(3).map_or(1.0, |(alpha, unit)| match *unit {
        "%" => alpha / 100.0,
        _ => *alpha,
    });
    let byte = |(value, unit): (f32, &str)| match unit {
        "%" => value / 100.0,
        _ => value / 255.0,
    };
    let rgb = match name {
        "rgb" | "rgba" => [byte(first), byte(second), byte(third)],
        "hsl" | "hsla" => of_hue(first.0, second.0 / 100.0, third.0 / 100.0),
        _ => return None,
    };
    Some(Colour {
        rgb: rgb.map(|part| part.clamp(0.0, 1.0)),
        alpha: alpha.clamp(0.0, 1.0),
    })
}

/// Parses a colour as attributes write it: in any case, and optionally without `#`.
fn old_colour(value: &str) -> Option<Colour> {
    let value = value.trim().to_ascii_lowercase();
    colour(&value).or_else(|| colour(&format!("#{value}")))
}

/// Returns the colour function in a value such as `no-repeat rgb(0, 0, 0) center`.
fn function_in(value: &str) -> Option<&str> {
    let begin = ["rgb", "hsl"].iter().find_map(|name| value.find(name))?;
    let end = value[begin..].find(')')?;
    Some(&value[begin..=begin + end])
}

fn of_bytes(rgb: [u8; 3], alpha: f32) -> Colour {
    Colour {
        rgb: rgb.map(|part| f32::from(part) / 255.0),
        alpha,
    }
}

fn of_hue(hue: f32, saturation: f32, light: f32) -> [f32; 3] {
    let part = |n: f32| {
        let k = (n + hue / 30.0).rem_euclid(12.0);
        light - saturation * light.min(1.0 - light) * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)
    };
    [part(0.0), part(8.0), part(4.0)]
}

const FONT_PX: f32 = 16.0;
/// Text of this size or smaller, in pixels, counts as unreadable.
const FONT_PX_MIN: f32 = 3.5;
const OPACITY_MIN: f32 = 0.1;
/// Minimum contrast. Light grey small print on white has more.
const CONTRAST_MIN: f32 = 1.2;

const SIZES: [&str; 8] = [
    "width",
    "height",
    "max-width",
    "max-height",
    "block-size",
    "inline-size",
    "max-block-size",
    "max-inline-size",
];
const PLACES: [&str; 18] = [
    "bottom",
    "inset",
    "inset-block-start",
    "inset-inline-start",
    "left",
    "margin",
    "margin-bottom",
    "margin-inline-start",
    "margin-left",
    "margin-right",
    "margin-top",
    "padding-left",
    "padding-top",
    "right",
    "text-indent",
    "top",
    "transform",
    "translate",
];
const FADING: [&str; 5] = ["opacity", "blur", "brightness", "contrast", "alpha"];
const HIDING: [&str; 8] = [
    "-webkit-clip-path",
    "-webkit-mask",
    "-webkit-mask-image",
    "-webkit-text-security",
    "clip-path",
    "mask",
    "mask-image",
    "mix-blend-mode",
];
