//! Runs the operators of a page that show text, and puts the text into lines by its position.

use std::collections::BTreeMap;
use std::rc::Rc;

use memchr::memmem;

use super::file::{PdfFile, get, name};
use super::font::Font;
use super::object::{Dict, Object, Parser, is_blank};
use super::{PdfFault, TEXT_BYTES_MAX};

/// The text of a page while its operators are run.
pub(super) struct PageText<'f, 'a> {
    file: &'f PdfFile<'a>,
    text: String,
    /// Where the last text ended, and how high it was.
    end: Option<TextEnd>,
}

#[derive(Debug, Clone, Copy)]
struct TextEnd {
    x: f64,
    y: f64,
    height: f64,
}

/// A transformation of coordinates, as the operators write it.
type Matrix = [f64; 6];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// State that operators change.
#[derive(Debug, Clone)]
struct Graphics {
    page: Matrix,
    text: Matrix,
    /// Where the current line begins.
    line: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    char_space: f64,
    word_space: f64,
    stretch: f64,
    leading: f64,
}

impl Graphics {
    fn new() -> Self {
        Self {
            page: IDENTITY,
            text: IDENTITY,
            line: IDENTITY,
            font: None,
            size: 1.0,
            char_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
        }
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line = multiply(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line);
        self.text = self.line;
    }

    /// Moves forward in the line.
    fn advance(&mut self, by: f64) {
        self.text = multiply(&[1.0, 0.0, 0.0, 1.0, by, 0.0], &self.text);
    }

    /// Returns the position and the height of the next character on the page.
    fn position(&self) -> TextEnd {
        let place = multiply(&self.text, &self.page);
        TextEnd {
            x: place[4],
            y: place[5],
            height: self.size.abs() * place[2].hypot(place[3]),
        }
    }
}

impl<'f, 'a> PageText<'f, 'a> {
    /// Returns the text of a page.
    pub(super) fn read(
        file: &'f PdfFile<'a>,
        page: &Dict,
        resources: Option<&Dict>,
    ) -> Result<String, PdfFault> {
        let content = content_of(file, page)?;
        let mut reader = Self {
            file,
            text: String::new(),
            end: None,
        };
        reader.run(&content, resources, Graphics::new(), 0)?;
        Ok(reader.text)
    }

    /// Runs the operators of a page, or of a form that a page shows.
    fn run(
        &mut self,
        content: &[u8],
        resources: Option<&Dict>,
        mut graphics: Graphics,
        depth: usize,
    ) -> Result<(), PdfFault> {
        self.file.spend(content.len())?;
        let mut parser = Parser::new(content, 0);
        let mut operands: Vec<Object> = Vec::new();
        let mut saved: Vec<Graphics> = Vec::new();
        let mut fonts: BTreeMap<Vec<u8>, Rc<Font>> = BTreeMap::new();
        while !parser.is_at_end() {
            let Some(object) = parser.next_object() else {
                // Not a value: go on behind it.
                parser.jump(parser.at() + 1);
                continue;
            };
            let Object::Word(operator) = object else {
                if operands.len() < OPERANDS_MAX {
                    operands.push(object);
                }
                continue;
            };
            match operator.as_slice() {
                b"q" if saved.len() < SAVED_MAX => saved.push(graphics.clone()),
                b"Q" => graphics = saved.pop().unwrap_or(graphics),
                b"Tf" => {
                    if let [Object::Name(name), Object::Number(size)] = operands.as_slice() {
                        graphics.font = match fonts.get(name) {
                            Some(font) => Some(font.clone()),
                            None => self.font(resources, name)?,
                        };
                        if let Some(font) = &graphics.font {
                            fonts.insert(name.clone(), font.clone());
                        }
                        graphics.size = *size;
                    }
                }
                b"Do" if depth < FORMS_DEPTH_MAX => {
                    if let Some(Object::Name(name)) = operands.first() {
                        self.run_form(name, resources, &graphics, depth)?;
                    }
                }
                b"ID" => parser.jump(parser.at() + image_length(parser.rest())),
                operator => self.operate(operator, &operands, &mut graphics)?,
            }
            operands.clear();
        }
        Ok(())
    }

    /// Runs an operator that needs nothing but its operands.
    fn operate(
        &mut self,
        operator: &[u8],
        operands: &[Object],
        graphics: &mut Graphics,
    ) -> Result<(), PdfFault> {
        let numbers: Vec<f64> = operands.iter().filter_map(Object::number).collect();
        match (operator, numbers.as_slice()) {
            (b"cm", &[a, b, c, d, e, f]) => {
                graphics.page = multiply(&[a, b, c, d, e, f], &graphics.page);
            }
            (b"BT", _) => (graphics.text, graphics.line) = (IDENTITY, IDENTITY),
            (b"Tm", &[a, b, c, d, e, f]) => {
                graphics.line = [a, b, c, d, e, f];
                graphics.text = graphics.line;
            }
            (b"Tc", &[space]) => graphics.char_space = space,
            (b"Tw", &[space]) => graphics.word_space = space,
            (b"Tz", &[percent]) => graphics.stretch = percent / 100.0,
            (b"TL", &[leading]) => graphics.leading = leading,
            (b"Td", &[x, y]) => graphics.next_line(x, y),
            (b"TD", &[x, y]) => {
                graphics.leading = -y;
                graphics.next_line(x, y);
            }
            (b"T*", _) => graphics.next_line(0.0, -graphics.leading),
            (b"Tj" | b"TJ", _) => self.show(operands, graphics)?,
            (b"'", _) => {
                graphics.next_line(0.0, -graphics.leading);
                self.show(operands, graphics)?;
            }
            (b"\"", &[word_space, char_space]) => {
                graphics.word_space = word_space;
                graphics.char_space = char_space;
                graphics.next_line(0.0, -graphics.leading);
                self.show(&operands[operands.len() - 1..], graphics)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows strings, and moves by the numbers between them.
    fn show(&mut self, shown: &[Object], graphics: &mut Graphics) -> Result<(), PdfFault> {
        for object in shown {
            match object {
                Object::String(string) => self.show_string(string, graphics)?,
                Object::Number(back) => {
                    graphics.advance(-back / 1_000.0 * graphics.size * graphics.stretch);
                }
                // Only `TJ` has an array, and there are no arrays in it.
                Object::Array(items) => {
                    for item in items {
                        match item {
                            Object::Array(_) => {}
                            item => self.show(std::slice::from_ref(item), graphics)?,
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn show_string(&mut self, string: &[u8], graphics: &mut Graphics) -> Result<(), PdfFault> {
        let Some(font) = graphics.font.clone() else {
            return Ok(());
        };
        self.file.spend(string.len() * CODE_WORK)?;
        self.separate(graphics.position());
        for code in font.codes(string) {
            font.push_text(code, &mut self.text);
            if self.text.len() > TEXT_BYTES_MAX {
                return Err(PdfFault::TooMuchText);
            }
            let mut width = font.width(code) * graphics.size + graphics.char_space;
            if font.is_space(code) {
                width += graphics.word_space;
            }
            graphics.advance(width * graphics.stretch);
        }
        self.end = Some(graphics.position());
        Ok(())
    }

    /// Begins a new line, or adds a space, if the next text is not where the last one ended.
    fn separate(&mut self, next: TextEnd) {
        let Some(end) = self.end else {
            return;
        };
        let height = next.height.max(end.height);
        let gap = next.x - end.x;
        if (next.y - end.y).abs() > height * LINE_GAP {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
        } else if gap.abs() > height * WORD_GAP
            // A short step back is kerning.
            && (gap > 0.0 || gap < -height)
            && !self.text.ends_with([' ', '\n'])
        {
            self.text.push(' ');
        }
    }

    fn font(&self, resources: Option<&Dict>, name: &[u8]) -> Result<Option<Rc<Font>>, PdfFault> {
        let fonts = resources.and_then(|resources| get(resources, b"Font"));
        let fonts = self.file.resolve(fonts)?;
        let fonts = fonts.as_deref().and_then(Object::dict);
        match fonts.and_then(|fonts| get(fonts, name)) {
            Some(font) => self.file.font(font),
            None => Ok(None),
        }
    }

    /// Runs the operators of a form. Other external objects, such as images, have no text.
    fn run_form(
        &mut self,
        form: &[u8],
        resources: Option<&Dict>,
        graphics: &Graphics,
        depth: usize,
    ) -> Result<(), PdfFault> {
        let file = self.file;
        let forms = file.resolve(resources.and_then(|resources| get(resources, b"XObject")))?;
        let forms = forms.as_deref().and_then(Object::dict);
        let Some(form @ Object::Reference(number)) = forms.and_then(|forms| get(forms, form))
        else {
            return Ok(());
        };
        let dict = file.resolve(Some(form))?;
        let kind = dict.as_deref().and_then(Object::dict);
        if kind.and_then(|dict| name(dict, b"Subtype")) != Some(b"Form") {
            return Ok(());
        }
        let Some((dict, content)) = file.stream(*number)? else {
            return Ok(());
        };
        let mut inner = graphics.clone();
        if let Some(Object::Array(items)) = get(&dict, b"Matrix") {
            let numbers: Vec<f64> = items.iter().filter_map(Object::number).collect();
            if let &[a, b, c, d, e, f] = numbers.as_slice() {
                inner.page = multiply(&[a, b, c, d, e, f], &inner.page);
            }
        }
        let own = file.resolve(get(&dict, b"Resources"))?;
        let own = own.as_deref().and_then(Object::dict);
        self.run(&content, own.or(resources), inner, depth + 1)
    }
}

/// Returns the operators of a page. They can be in several streams.
fn content_of(file: &PdfFile<'_>, page: &Dict) -> Result<Vec<u8>, PdfFault> {
    let contents = get(page, b"Contents");
    let reference = |object: &Object| match object {
        Object::Reference(number) => Some(*number),
        _ => None,
    };
    let mut streams: Vec<u32> = contents.and_then(reference).into_iter().collect();
    // A reference leads to a stream, or to an array of references.
    if let Some(Object::Array(items)) = file.resolve(contents)?.as_deref() {
        streams = items.iter().filter_map(reference).collect();
    }
    let mut content = Vec::new();
    for stream in streams {
        if let Some((_, data)) = file.stream(stream)? {
            content.extend(data);
            content.push(b'\n');
        }
        if content.len() > CONTENT_BYTES_MAX {
            return Err(PdfFault::TooMuchWork);
        }
    }
    Ok(content)
}

/// Returns the length of the image that begins here, with its end mark.
fn image_length(rest: &[u8]) -> usize {
    let mut marks = memmem::find_iter(rest, b"EI");
    let is_end = |at: &usize| {
        let is_blank_at = |at: Option<usize>| match at.and_then(|at| rest.get(at)) {
            Some(byte) => is_blank(*byte),
            None => true,
        };
        is_blank_at(at.checked_sub(1)) && is_blank_at(Some(at + 2))
    };
    marks.find(is_end).map_or(rest.len(), |at| at + 2)
}

/// Returns the transformation that does first `one` and then `other`.
fn multiply(one: &Matrix, other: &Matrix) -> Matrix {
    let [a, b, c, d, e, f] = *one;
    let [g, h, i, j, k, l] = *other;
    [
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + l,
    ]
}

/// From which distance on a text is in another line, as a part of its height.
const LINE_GAP: f64 = 0.5;
/// From which distance on a text is another word, as a part of its height.
const WORD_GAP: f64 = 0.15;
/// Maximum number of values before an operator.
const OPERANDS_MAX: usize = 40;
/// Maximum number of saved states.
const SAVED_MAX: usize = 64;
/// Maximum depth of forms in forms.
const FORMS_DEPTH_MAX: usize = 8;
/// Maximum size of the operators of a page.
const CONTENT_BYTES_MAX: usize = 16 << 20;
/// Work to show a code: it is looked up in the maps of its font.
const CODE_WORK: usize = 8;
