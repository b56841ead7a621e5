//! Finds the objects of a PDF file, decodes its streams and walks through its pages.
//!
//! The reader looks for objects in the bytes instead of trusting the cross-reference table, as other readers do with damaged
//! files: a table can be wrong, and can name one large object thousands of times. If a number occurs twice, the later object
//! counts, as after an incremental save.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;
use std::rc::Rc;

use flate2::read::{DeflateDecoder, ZlibDecoder};
use memchr::memmem;

use super::font::Font;
use super::object::{Dict, Object, Parser, hex, is_blank, whole_number};
use super::{Meter, PdfFault};

/// An open PDF file.
pub(super) struct PdfFile<'a> {
    bytes: &'a [u8],
    meter: &'a Meter,
    places: BTreeMap<u32, Place>,
    /// Decoded object streams: streams that hold other objects.
    packed: Vec<Vec<u8>>,
    /// The catalog, as the trailer names it.
    root: Option<Object>,
    fonts: RefCell<BTreeMap<u32, Rc<Font>>>,
    codes_left: Cell<usize>,
}

/// Where an object is.
#[derive(Debug, Clone, Copy)]
enum Place {
    InFile {
        at: usize,
    },
    Packed {
        /// Where the object stream is in the file.
        container: usize,
        /// Index of the decoded object stream.
        stream: usize,
        at: usize,
    },
}

impl Place {
    /// Returns the position in the file, by which the later of two objects is known.
    fn position(self) -> usize {
        match self {
            Self::InFile { at } => at,
            Self::Packed { container, .. } => container,
        }
    }
}

impl<'a> PdfFile<'a> {
    pub(super) fn open(bytes: &'a [u8], meter: &'a Meter) -> Result<Self, PdfFault> {
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        if memmem::find(head, b"%PDF-").is_none() {
            return Err(PdfFault::NotPdf);
        }
        meter.take(bytes.len())?;
        let mut file = Self {
            bytes,
            meter,
            places: BTreeMap::new(),
            packed: Vec::new(),
            root: None,
            fonts: RefCell::default(),
            codes_left: Cell::new(CODES_MAX),
        };
        for at in memmem::find_iter(bytes, b"obj") {
            if let Some(number) = number_before(bytes, at) {
                file.add(number, Place::InFile { at: at + 3 })?;
            }
        }
        let mut starts: Vec<usize> = file.places.values().map(|place| place.position()).collect();
        starts.sort_unstable();
        file.read_trailers(&starts)?;
        file.unpack(&starts)?;
        Ok(file)
    }

    fn add(&mut self, number: u32, place: Place) -> Result<(), PdfFault> {
        let known = self.places.get(&number);
        if known.is_some_and(|known| known.position() > place.position()) {
            return Ok(());
        }
        self.places.insert(number, place);
        match self.places.len() > OBJECTS_MAX {
            true => Err(PdfFault::TooMuchWork),
            false => Ok(()),
        }
    }

    /// Returns where the objects begin that contain a word.
    fn objects_with(&self, word: &[u8], starts: &[usize]) -> Vec<usize> {
        let mut found = Vec::new();
        for hit in memmem::find_iter(self.bytes, word) {
            let before = starts.partition_point(|start| *start <= hit);
            let start = before.checked_sub(1).and_then(|index| starts.get(index));
            if let Some(start) = start
                && found.last() != Some(start)
            {
                found.push(*start);
            }
        }
        found
    }

    /// Finds the catalog. Fails if the file is encrypted.
    fn read_trailers(&mut self, starts: &[usize]) -> Result<(), PdfFault> {
        let trailers = memmem::find_iter(self.bytes, b"trailer").map(|at| at + 7);
        // A cross-reference stream is a trailer as well.
        let mut trailers: Vec<usize> = trailers.collect();
        trailers.extend(self.objects_with(b"/XRef", starts));
        trailers.sort_unstable();
        for at in trailers {
            let Some((Object::Dict(dict), _)) = self.parse(self.bytes, at)? else {
                continue;
            };
            if name(&dict, b"Type").is_some_and(|kind| kind != b"XRef") {
                continue;
            }
            if dict.contains_key(&b"Encrypt"[..]) {
                return Err(PdfFault::Encrypted);
            }
            if let Some(root) = get(&dict, b"Root") {
                self.root = Some(root.clone());
            }
        }
        Ok(())
    }

    /// Decodes the object streams, and notes which objects they hold.
    fn unpack(&mut self, starts: &[usize]) -> Result<(), PdfFault> {
        let mut packed_bytes = 0;
        for container in self.objects_with(b"/ObjStm", starts) {
            let Some((Object::Dict(dict), end)) = self.parse(self.bytes, container)? else {
                continue;
            };
            if name(&dict, b"Type") != Some(b"ObjStm") {
                continue;
            }
            let Some(range) = self.stream_range(&dict, end)? else {
                continue;
            };
            let Some(data) = self.decode(&dict, self.bytes.get(range).unwrap_or_default())? else {
                continue;
            };
            packed_bytes += data.len();
            if packed_bytes > PACKED_BYTES_MAX {
                return Err(PdfFault::TooMuchWork);
            }
            let first = number(&dict, b"First").unwrap_or_default() as usize;
            let stream = self.packed.len();
            let mut header = Parser::new(&data[..first.min(data.len())], 0);
            let mut next = || header.next_object().as_ref().and_then(Object::number);
            while let (Some(number), Some(offset)) = (next(), next()) {
                let at = first.saturating_add(offset as usize);
                let place = Place::Packed {
                    container,
                    stream,
                    at,
                };
                self.add(number as u32, place)?;
            }
            self.packed.push(data);
        }
        Ok(())
    }

    /// Parses a value, and returns it with the index of the byte after it.
    fn parse(&self, bytes: &[u8], at: usize) -> Result<Option<(Object, usize)>, PdfFault> {
        let mut parser = Parser::new(bytes, at);
        let object = parser.next_object();
        self.spend(parser.work_since(at) + 1)?;
        Ok(object.map(|object| (object, parser.at())))
    }

    /// Counts work. Fails if too much was done.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), PdfFault> {
        self.meter.take(bytes)
    }

    /// Counts an entry of a font, which takes memory until the file is closed.
    pub(super) fn add_code(&self) -> Result<(), PdfFault> {
        let left = self.codes_left.get().checked_sub(1);
        self.codes_left.set(left.ok_or(PdfFault::TooMuchWork)?);
        Ok(())
    }

    /// Returns an object, and where it ends if it is not in an object stream.
    fn value(&self, number: u32) -> Result<Option<(Object, Option<usize>)>, PdfFault> {
        Ok(match self.places.get(&number) {
            None => None,
            Some(Place::InFile { at }) => {
                let parsed = self.parse(self.bytes, *at)?;
                parsed.map(|(object, end)| (object, Some(end)))
            }
            Some(Place::Packed { stream, at, .. }) => match self.packed.get(*stream) {
                Some(packed) => self.parse(packed, *at)?.map(|(object, _)| (object, None)),
                None => None,
            },
        })
    }

    /// Returns the value that an object stands for, if it is a reference.
    pub(super) fn resolve<'o>(
        &self,
        object: Option<&'o Object>,
    ) -> Result<Option<Cow<'o, Object>>, PdfFault> {
        let Some(object) = object else {
            return Ok(None);
        };
        let mut found = Cow::Borrowed(object);
        for _ in 0..REFERENCES_MAX {
            let Object::Reference(number) = *found else {
                return Ok(Some(found));
            };
            match self.value(number)? {
                Some((object, _)) => found = Cow::Owned(object),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns the dictionary and the decoded data of a stream. Returns `None` if the object is not a stream, or if its filters
    /// are not supported.
    pub(super) fn stream(&self, number: u32) -> Result<Option<(Dict, Vec<u8>)>, PdfFault> {
        let Some((Object::Dict(dict), Some(end))) = self.value(number)? else {
            return Ok(None);
        };
        let Some(range) = self.stream_range(&dict, end)? else {
            return Ok(None);
        };
        let data = self.decode(&dict, self.bytes.get(range).unwrap_or_default())?;
        Ok(data.map(|data| (dict, data)))
    }

    /// Returns the bytes of the stream whose dictionary ends at `end`.
    fn stream_range(&self, dict: &Dict, end: usize) -> Result<Option<Range<usize>>, PdfFault> {
        let mut parser = Parser::new(self.bytes, end);
        parser.skip_blanks();
        self.spend(parser.work_since(end))?;
        let Some(rest) = parser.rest().strip_prefix(b"stream") else {
            return Ok(None);
        };
        let line_break = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => 0,
        };
        let start = self.bytes.len() - rest.len() + line_break;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let length = self.resolve(get(dict, b"Length"))?;
        if let Some(length) = length.as_deref().and_then(Object::number)
            && let Some(tail) = rest.get(length as usize..)
        {
            let blanks = tail.iter().take(4).take_while(|byte| is_blank(**byte));
            if tail[blanks.count()..].starts_with(b"endstream") {
                return Ok(Some(start..start + length as usize));
            }
        }
        // The length is missing or wrong.
        let length = memmem::find(rest, b"endstream").unwrap_or(rest.len());
        self.spend(length)?;
        Ok(Some(start..start + length))
    }

    /// Decodes the data of a stream. Returns `None` if a filter is not supported.
    fn decode(&self, dict: &Dict, raw: &[u8]) -> Result<Option<Vec<u8>>, PdfFault> {
        let filter = self.resolve(get(dict, b"Filter"))?;
        let filters: Vec<&[u8]> = match filter.as_deref() {
            Some(Object::Name(name)) => vec![name],
            Some(Object::Array(items)) => items.iter().filter_map(Object::name).collect(),
            _ => Vec::new(),
        };
        if filters.len() > FILTERS_MAX || self.has_predictor(dict)? {
            return Ok(None);
        }
        self.spend(raw.len())?;
        let mut data = raw.to_vec();
        for filter in filters {
            data = match filter {
                b"FlateDecode" | b"Fl" => inflate(&data),
                b"ASCII85Decode" | b"A85" => ascii85(&data),
                b"ASCIIHexDecode" | b"AHx" => ascii_hex(&data),
                _ => return Ok(None),
            };
            self.spend(data.len())?;
            if data.len() > STREAM_BYTES_MAX {
                return Err(PdfFault::TooMuchWork);
            }
        }
        Ok(Some(data))
    }

    /// Returns whether a stream stores differences, as images do.
    fn has_predictor(&self, dict: &Dict) -> Result<bool, PdfFault> {
        let parameters = self.resolve(get(dict, b"DecodeParms"))?;
        let has = |object: &Object| {
            let predictor = object.dict().and_then(|dict| number(dict, b"Predictor"));
            predictor.is_some_and(|predictor| predictor > 1.0)
        };
        Ok(match parameters.as_deref() {
            Some(Object::Array(items)) => items.iter().any(has),
            Some(object) => has(object),
            None => false,
        })
    }

    /// Calls `read` with each page and its resources, in the order of the pages.
    pub(super) fn each_page(&self, read: &mut PageReader<'_>) -> Result<(), PdfFault> {
        let Some(tree) = self.page_tree()? else {
            return Err(PdfFault::NoPages);
        };
        let mut nodes: Vec<(Object, Option<Rc<Dict>>, usize)> = vec![(tree, None, 0)];
        // A tree can lead back to itself.
        let mut seen = BTreeSet::new();
        while let Some((node, inherited, depth)) = nodes.pop() {
            if let Object::Reference(number) = node
                && !seen.insert(number)
            {
                continue;
            }
            let found = self.resolve(Some(&node))?;
            let Some(dict) = found.as_deref().and_then(Object::dict) else {
                continue;
            };
            let own = self.resolve(get(dict, b"Resources"))?;
            let resources = match own.as_deref().and_then(Object::dict) {
                Some(own) => Some(Rc::new(own.clone())),
                None => inherited,
            };
            let kids = self.resolve(get(dict, b"Kids"))?;
            if let Some(Object::Array(kids)) = kids.as_deref() {
                if depth >= TREE_DEPTH_MAX || nodes.len() + kids.len() > NODES_MAX {
                    return Err(PdfFault::TooManyPages);
                }
                for kid in kids.iter().rev() {
                    nodes.push((kid.clone(), resources.clone(), depth + 1));
                }
            } else if name(dict, b"Type") != Some(b"Pages") {
                read(dict, resources.as_deref())?;
            }
        }
        Ok(())
    }

    /// Returns the root of the tree of pages. If the trailer is damaged, looks for a catalog among all objects.
    fn page_tree(&self) -> Result<Option<Object>, PdfFault> {
        let root = self.resolve(self.root.as_ref())?;
        let root = root.as_deref().and_then(Object::dict);
        if let Some(tree) = root.and_then(|root| get(root, b"Pages")) {
            return Ok(Some(tree.clone()));
        }
        for place in self.places.keys() {
            if let Some((Object::Dict(dict), _)) = self.value(*place)?
                && name(&dict, b"Type") == Some(b"Catalog")
                && let Some(tree) = get(&dict, b"Pages")
            {
                return Ok(Some(tree.clone()));
            }
        }
        Ok(None)
    }

    /// Returns a font. One that pages share is read once.
    pub(super) fn font(&self, object: &Object) -> Result<Option<Rc<Font>>, PdfFault> {
        let number = match object {
            Object::Reference(number) => Some(*number),
            _ => None,
        };
        if let Some(font) = number.and_then(|number| self.fonts.borrow().get(&number).cloned()) {
            return Ok(Some(font));
        }
        let found = self.resolve(Some(object))?;
        let Some(dict) = found.as_deref().and_then(Object::dict) else {
            return Ok(None);
        };
        let font = Rc::new(Font::read(self, dict)?);
        if let Some(number) = number {
            self.fonts.borrow_mut().insert(number, font.clone());
        }
        Ok(Some(font))
    }
}

/// Reads a page, given its dictionary and its resources.
pub(super) type PageReader<'r> = dyn FnMut(&Dict, Option<&Dict>) -> Result<(), PdfFault> + 'r;

pub(super) fn get<'d>(dict: &'d Dict, key: &[u8]) -> Option<&'d Object> {
    dict.get(key)
}

pub(super) fn name<'d>(dict: &'d Dict, key: &[u8]) -> Option<&'d [u8]> {
    get(dict, key).and_then(Object::name)
}

pub(super) fn number(dict: &Dict, key: &[u8]) -> Option<f64> {
    get(dict, key).and_then(Object::number)
}

/// Returns the number of the object whose keyword `obj` is at `at`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    let back = |end: usize, is: fn(u8) -> bool| {
        let before = bytes[..end].iter().rev().take(NUMBER_BYTES_MAX);
        end - before.take_while(|byte| is(**byte)).count()
    };
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let generation_end = back(at, is_blank);
    let generation = back(generation_end, is_digit);
    let number_end = back(generation, is_blank);
    let number = back(number_end, is_digit);
    if generation == generation_end || number_end == generation {
        return None;
    }
    whole_number(&bytes[number..number_end])
}

/// Decompresses data, up to one byte more than a stream may have. Of damaged data, returns what comes before the damage.
fn inflate(data: &[u8]) -> Vec<u8> {
    let limit = STREAM_BYTES_MAX as u64 + 1;
    let mut inflated = Vec::new();
    let read = ZlibDecoder::new(data)
        .take(limit)
        .read_to_end(&mut inflated);
    if read.is_err() && inflated.is_empty() {
        // Some writers leave out the header. What fails here, too, has no data.
        let _ = DeflateDecoder::new(data)
            .take(limit)
            .read_to_end(&mut inflated);
    }
    inflated
}

fn ascii85(data: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let (mut group, mut count) = (0_u32, 0_usize);
    let push = |group: u32, byte: u8| group.wrapping_mul(85).wrapping_add(u32::from(byte));
    for byte in data {
        match byte {
            b'~' => break,
            b'z' if count == 0 => decoded.extend([0; 4]),
            b'!'..=b'u' => {
                group = push(group, byte - b'!');
                count += 1;
                if count == 5 {
                    decoded.extend(group.to_be_bytes());
                    (group, count) = (0, 0);
                }
            }
            _ => {}
        }
    }
    if count > 1 {
        for _ in count..5 {
            group = push(group, 84);
        }
        decoded.extend(&group.to_be_bytes()[..count - 1]);
    }
    decoded
}

fn ascii_hex(data: &[u8]) -> Vec<u8> {
    let digits = data.iter().take_while(|byte| **byte != b'>');
    let digits: Vec<u8> = digits.filter_map(|byte| hex(*byte)).collect();
    let pairs = digits.chunks(2);
    let bytes = pairs.map(|pair| pair[0] * 16 + pair.get(1).copied().unwrap_or_default());
    bytes.collect()
}

/// Where the header must be.
const HEAD_BYTES: usize = 1 << 10;
/// Maximum number of objects.
const OBJECTS_MAX: usize = 500_000;
/// Maximum number of digits, and of blanks, before the keyword of an object.
const NUMBER_BYTES_MAX: usize = 10;
/// Maximum number of references from one to the next.
const REFERENCES_MAX: usize = 8;
/// Maximum number of filters of a stream.
const FILTERS_MAX: usize = 4;
/// Maximum size of a decoded stream.
const STREAM_BYTES_MAX: usize = 16 << 20;
/// Maximum size of all object streams, which are held in memory.
const PACKED_BYTES_MAX: usize = 32 << 20;
/// Maximum depth of the tree of pages.
const TREE_DEPTH_MAX: usize = 32;
/// Maximum number of nodes of that tree that are waiting.
const NODES_MAX: usize = 10_000;
/// Maximum number of entries in all fonts.
const CODES_MAX: usize = 500_000;
