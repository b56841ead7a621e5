//! The parts of a package, with pending changes.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::super::BookError;

/// The parts of a package, with pending changes. Unchanged parts are copied without being unpacked.
pub(in super::super) struct Parts<'a> {
    package: ZipArchive<Cursor<&'a [u8]>>,
    changed: BTreeMap<String, Option<String>>,
}

impl<'a> Parts<'a> {
    pub(in super::super) fn open(package: &'a [u8]) -> Result<Self, BookError> {
        let package = ZipArchive::new(Cursor::new(package)).map_err(BookError::unreadable)?;
        Ok(Self {
            package,
            changed: BTreeMap::new(),
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.changed.contains_key(name) || self.package.index_for_name(name).is_some()
    }

    pub(in super::super) fn text(&mut self, name: &str) -> Result<Option<String>, BookError> {
        if let Some(changed) = self.changed.get(name) {
            return Ok(changed.clone());
        }
        if self.package.index_for_name(name).is_none() {
            return Ok(None);
        }
        let mut part = self.package.by_name(name).map_err(BookError::unreadable)?;
        let mut text = String::new();
        part.read_to_string(&mut text)
            .map_err(BookError::unreadable)?;
        Ok(Some(text))
    }

    pub(super) fn put(&mut self, name: &str, text: String) {
        self.changed.insert(name.to_owned(), Some(text));
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.changed.insert(name.to_owned(), None);
    }

    pub(super) fn written(mut self) -> Result<Vec<u8>, BookError> {
        let mut out = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default());
        for at in 0..self.package.len() {
            let part = self
                .package
                .by_index_raw(at)
                .map_err(BookError::unreadable)?;
            let name = part.name().map_err(BookError::unreadable)?.into_owned();
            match self.changed.remove(&name) {
                None => out.raw_copy_file(part).map_err(BookError::unwritable)?,
                Some(None) => {}
                Some(Some(text)) => {
                    out.start_file(name, options)
                        .map_err(BookError::unwritable)?;
                    out.write_all(text.as_bytes())
                        .map_err(BookError::unwritable)?;
                }
            }
        }
        for (name, text) in self.changed {
            let Some(text) = text else { continue };
            out.start_file(name, options)
                .map_err(BookError::unwritable)?;
            out.write_all(text.as_bytes())
                .map_err(BookError::unwritable)?;
        }
        Ok(out.finish().map_err(BookError::unwritable)?.into_inner())
    }
}
