//! Reads the folder of notes, and records what is skipped and why.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use archie_agent::thread_folders::{ThreadFolders, relative};
use archie_agent::user_folder::{
    Allowance, Entry, EntryKind, FileName, FolderError, FolderLimits, RelativePath, UserFolder,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use superstep::ThreadId;

use super::pdf;
use super::state::{Inputs, NoteImage, Skipped};

/// File name of the result, which is never read as a note.
pub const RESULT: &str = "analysis_result.md";

/// Limits on the folder: 1 MiB per note, 16 MiB in total, 200,000 entries, 32 folders deep.
pub const LIMITS: FolderLimits = FolderLimits {
    file_bytes_max: 1 << 20,
    total_bytes_max: 16 << 20,
    entries_max: 200_000,
    depth_max: 32,
};

/// Limits on PDF files, which hold pictures and fonts as well: 16 MiB per file, 64 MiB in total. Their text counts towards
/// [`LIMITS`].
pub const PDF_LIMITS: FolderLimits = FolderLimits {
    file_bytes_max: 16 << 20,
    total_bytes_max: 64 << 20,
    ..LIMITS
};

/// Limits on images: 3 MiB per file, 12 MiB in total. Every request of an interview has all of them.
pub const IMAGE_LIMITS: FolderLimits = FolderLimits {
    file_bytes_max: 3 << 20,
    total_bytes_max: 12 << 20,
    ..LIMITS
};

/// Maximum number of images.
pub const IMAGES_MAX: usize = 8;

/// Maximum number of notes.
pub const NOTES_MAX: usize = 1_000;

/// Notes read from a folder.
#[derive(Debug, Default, PartialEq)]
pub struct Read {
    /// Content of each note, by its path in the folder.
    pub contents: BTreeMap<String, String>,
    /// The folder, the checksums of the notes and the skipped entries.
    pub inputs: Inputs,
}

/// Reads the `.txt` and `.md` files of a folder, and the text of its `.pdf` files. Skips links, pipes, devices, results of earlier
/// analyses, files without text and everything over a limit, and records the reason for each. Fails if the folder or a subfolder
/// cannot be listed.
pub fn read_files(folder: &Path, recursive: bool) -> anyhow::Result<Read> {
    read_folder(folder, recursive, None)
}

/// Reads the notes of a folder as [`read_files`] does, and its images: `.png`, `.jpg`, `.jpeg`, `.gif` and `.webp` files.
pub fn read_files_and_images(folder: &Path, recursive: bool) -> anyhow::Result<Read> {
    read_folder(folder, recursive, Some(Allowance::new(IMAGE_LIMITS)))
}

fn read_folder(
    folder: &Path,
    recursive: bool,
    image_allowance: Option<Allowance>,
) -> anyhow::Result<Read> {
    let root = UserFolder::open(folder).map_err(|error| match &error {
        FolderError::NotAFolder { .. } => anyhow::anyhow!(
            "`{}` is not a folder; give the folder that holds your notes",
            folder.display()
        ),
        FolderError::Io { .. } => anyhow::Error::new(error).context(format!(
            "there is no folder `{}`; give one with --inputs",
            folder.display()
        )),
        _ => anyhow::Error::new(error).context("the notes cannot be read"),
    })?;
    let mut reading = Reading {
        allowance: Allowance::new(LIMITS),
        pdf_allowance: Allowance::new(PDF_LIMITS),
        pdf_work: pdf::Meter::new(pdf::FOLDER_WORK_MAX),
        image_allowance,
        recursive,
        read: Read::default(),
        skipped_more: 0,
    };
    reading.read.inputs.folder = folder.display().to_string();
    // A path that is not text cannot be stored as text; the path as given is used then.
    let absolute = std::path::absolute(folder).ok();
    reading.read.inputs.root = absolute
        .and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_default();
    reading.read.inputs.recursive = recursive;
    reading.folder(&root, &RelativePath::root())?;
    Ok(reading.finished())
}

/// Reads notes among the files of a thread: the files that `names` has, and everything below the folders that it has. Fails if one
/// of them has no note.
pub fn read_thread_files(
    folders: &ThreadFolders,
    thread: &ThreadId,
    names: &[String],
) -> anyhow::Result<Read> {
    if names.len() > NOTES_MAX {
        bail!("more than {NOTES_MAX} notes");
    }
    for name in names {
        relative(name)?;
    }
    let folder = folders.open(thread)?;
    let read = read_files(folder.path(), true);
    // The reason names the folder of the host, which callers need not know.
    let mut read = read.map_err(|_| anyhow::anyhow!("the files of the thread cannot be read"))?;
    let is_of = |path: &str, name: &str| {
        let below = path.strip_prefix(name);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    for name in names {
        if !read.contents.keys().any(|path| is_of(path, name)) {
            let skipped = read
                .inputs
                .skipped
                .iter()
                .find(|one| is_of(&one.name, name));
            let why = skipped.map_or("there is no such file; upload it first", |one| {
                one.why.as_str()
            });
            bail!(
                "`{}` is not a note of the thread: {why}",
                name.escape_debug()
            );
        }
    }
    let is_named = |path: &str| names.iter().any(|name| is_of(path, name));
    read.contents.retain(|path, _| is_named(path));
    read.inputs.hashes.retain(|path, _| is_named(path));
    read.inputs.skipped.retain(|one| is_named(&one.name));
    ThreadFolders::ROOT.clone_into(&mut read.inputs.folder);
    ThreadFolders::ROOT.clone_into(&mut read.inputs.root);
    Ok(read)
}

/// Progress of reading a folder.
struct Reading {
    allowance: Allowance,
    pdf_allowance: Allowance,
    pdf_work: pdf::Meter,
    /// `None`: images are not read.
    image_allowance: Option<Allowance>,
    recursive: bool,
    read: Read,
    skipped_more: usize,
}

impl Reading {
    fn folder(&mut self, folder: &UserFolder, at: &RelativePath) -> anyhow::Result<()> {
        let listing = folder.entries(self.allowance.entries());
        let listing =
            listing.with_context(|| format!("`{}` cannot be read", folder.path().display()))?;
        self.allowance.take_entries(listing.entries.len());
        for entry in &listing.entries {
            self.entry(folder, &at.join(&entry.name), entry)?;
        }
        if listing.is_cut {
            let why = format!("holds more than {} entries; the rest", LIMITS.entries_max);
            self.skip(&at.to_string(), &format!("{why} is not read"));
        }
        Ok(())
    }

    fn entry(
        &mut self,
        folder: &UserFolder,
        path: &RelativePath,
        entry: &Entry,
    ) -> anyhow::Result<()> {
        let Some(name) = path.as_line() else {
            self.skip(
                &path.to_string(),
                "its name is not text, or holds control characters",
            );
            return Ok(());
        };
        match entry.kind {
            EntryKind::Folder if self.recursive && !name.starts_with('.') => {
                if path.names().len() > LIMITS.depth_max {
                    self.skip(&name, "too many folders deep");
                    return Ok(());
                }
                match folder.folder(&entry.name.clone().into()) {
                    Ok(below) => return self.folder(&below, path),
                    Err(error) => self.skip(&name, &error.reason()),
                }
            }
            EntryKind::Folder => self.skip(&name, FOLDER),
            EntryKind::File if is_result(&entry.name) => self.skip(&name, EARLIER),
            EntryKind::File if is_image(&entry.name) && self.image_allowance.is_some() => {
                match self.image(folder, &entry.name) {
                    Ok((hash, image)) => {
                        self.read.inputs.hashes.insert(name.clone(), hash);
                        self.read.inputs.images.insert(name, image);
                    }
                    Err(why) => self.skip(&name, &why),
                }
            }
            EntryKind::File if !is_note(&entry.name) => self.skip(&name, NO_NOTE),
            EntryKind::File => match self.note(folder, &entry.name) {
                Ok((hash, text)) => {
                    self.read.inputs.hashes.insert(name.clone(), hash);
                    self.read.contents.insert(name, text);
                }
                Err(why) => self.skip(&name, &why),
            },
            kind => self.skip(&name, &format!("{kind}, which is not followed or read")),
        }
        Ok(())
    }

    /// Returns the checksum and the text of a note, or the reason to skip it.
    fn note(&mut self, folder: &UserFolder, name: &FileName) -> Result<(String, String), String> {
        if self.read.contents.len() >= NOTES_MAX {
            return Err(format!("more than {NOTES_MAX} notes"));
        }
        let is_pdf = name.as_os_str().to_str().is_some_and(pdf::is_pdf);
        let allowance = match is_pdf {
            true => &mut self.pdf_allowance,
            false => &mut self.allowance,
        };
        let bytes = read_within(folder, name, Some(allowance))?;
        let text = match is_pdf {
            true => {
                let text = pdf::read_text(&bytes, &self.pdf_work);
                let text = text.map_err(|fault| fault.to_string())?;
                self.allowance.take_file(text.len() as u64)?;
                text
            }
            false => decoded(&bytes).ok_or("not text in UTF-8 or UTF-16")?,
        };
        Ok((hash(&bytes), text))
    }

    /// Returns the checksum and the bytes of an image, or the reason to skip it. The program does not decode images.
    fn image(
        &mut self,
        folder: &UserFolder,
        name: &FileName,
    ) -> Result<(String, NoteImage), String> {
        if self.read.inputs.images.len() >= IMAGES_MAX {
            return Err(format!("more than {IMAGES_MAX} images"));
        }
        let bytes = read_within(folder, name, self.image_allowance.as_mut())?;
        let mime_type = image_type(&bytes).ok_or("not a PNG, JPEG, GIF or WebP image")?;
        let image = NoteImage {
            mime_type: mime_type.to_owned(),
            base64: BASE64_STANDARD.encode(&bytes),
        };
        Ok((hash(&bytes), image))
    }

    /// Records a skipped entry. After the first [`SKIPPED_MAX`], entries are only counted.
    fn skip(&mut self, name: &str, why: &str) {
        let skipped = &mut self.read.inputs.skipped;
        match skipped.len() < SKIPPED_MAX {
            true => skipped.push(Skipped {
                name: name.to_owned(),
                why: why.to_owned(),
            }),
            false => self.skipped_more += 1,
        }
    }

    fn finished(mut self) -> Read {
        if self.skipped_more > 0 {
            self.read.inputs.skipped.push(Skipped {
                name: format!("{} more", self.skipped_more),
                why: "not named one by one".to_owned(),
            });
        }
        self.read
    }
}

/// Returns whether a person expects this entry to be skipped, so that its name without a reason is enough.
pub fn is_ordinary(skipped: &Skipped) -> bool {
    [FOLDER, EARLIER, NO_NOTE].contains(&&*skipped.why)
}

fn is_note(name: &FileName) -> bool {
    ends_in(name, &["txt", "md", "pdf"])
}

fn is_image(name: &FileName) -> bool {
    ends_in(name, &["png", "jpg", "jpeg", "gif", "webp"])
}

fn ends_in(name: &FileName, endings: &[&str]) -> bool {
    let ending = Path::new(name.as_os_str()).extension();
    let ending = ending.and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| endings.contains(&ending.to_lowercase().as_str()))
}

/// Returns the MIME type of an image by its first bytes. A server that gets another type than the image has refuses it.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Reads a file if the allowance has room for it, before any byte of it is in memory.
fn read_within(
    folder: &UserFolder,
    name: &FileName,
    allowance: Option<&mut Allowance>,
) -> Result<Vec<u8>, String> {
    let path = RelativePath::from(name.clone());
    let bytes = folder.file_bytes(&path).map_err(|error| error.reason())?;
    if let Some(allowance) = allowance {
        allowance.take_file(bytes)?;
    }
    let bytes = folder.read(&path, bytes.max(GROWTH_BYTES_MAX));
    bytes.map_err(|error| error.reason())
}

/// Returns whether this is the result, or an earlier one that was kept.
fn is_result(name: &FileName) -> bool {
    let name = name.as_os_str().to_str().unwrap_or("");
    name == RESULT || (name.starts_with("analysis_result.") && name.ends_with(".md"))
}

/// Decodes text by its byte order mark, or as UTF-8 if it has none. Returns `None` if it is not text.
fn decoded(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| read([pair[0], pair[1]]))
            .collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xEF, 0xBB, 0xBF, text @ ..] => String::from_utf8(text.to_vec()).ok(),
        [0xFF, 0xFE, text @ ..] => wide(text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => wide(text, u16::from_be_bytes),
        text => String::from_utf8(text.to_vec())
            .ok()
            .filter(|text| !text.contains('\0')),
    }
}

/// Returns a checksum that detects changes to a file. It is not cryptographic and does not detect deliberate forgery.
pub fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

const FOLDER: &str = "a folder; --recursive reads those, too";
const EARLIER: &str = "the result of an earlier analysis";
const NO_NOTE: &str = "not a .txt, .md or .pdf file";

/// Maximum number of skipped entries that are listed by name.
const SKIPPED_MAX: usize = 200;

/// Limit for a note that grows while it is read, if it was smaller than this before.
const GROWTH_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TINY_PDF: &[u8] = b"%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] >> endobj
3 0 obj << /Type /Page /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >> endobj
4 0 obj << /Length 32 >> stream
BT /F1 9 Tf (Ten orders.) Tj ET
endstream endobj
5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
trailer << /Root 1 0 R >>
";

    #[test]
    fn a2_only_notes_are_read_and_the_rest_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("a.md", b"# Queue\n");
        write("B.TXT", b"\xFF\xFEh\0i\0");
        write("c.png", b"\x89PNG");
        write("d.txt", b"\xC3\x28");
        write("e.pdf", b"%PDF-1.7\ntrailer << /Encrypt 1 0 R >>");
        write("F.PDF", TINY_PDF);
        write("analysis_result.md", b"old");
        write("analysis_result.2.md", b"older");
        fs::create_dir(folder.path().join("sub")).unwrap();
        write("sub/e.md", b"deep");
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("out.txt")).unwrap();
        let read = read_files(folder.path(), false).unwrap();
        let names: Vec<_> = read.contents.keys().collect();
        assert_eq!(names, ["B.TXT", "F.PDF", "a.md"]);
        assert_eq!(read.contents["B.TXT"], "hi");
        assert_eq!(read.contents["F.PDF"], "--- page 1 ---\nTen orders.\n");
        let skipped: Vec<_> = read
            .inputs
            .skipped
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        assert_eq!(
            skipped,
            [
                "analysis_result.2.md",
                "analysis_result.md",
                "c.png",
                "d.txt",
                "e.pdf",
                "out.txt",
                "sub"
            ]
        );
        let why = &read.inputs.skipped[4].why;
        assert_eq!(why, "an encrypted PDF; save it without a password");
        assert!(!is_ordinary(&read.inputs.skipped[4]));
        let deep = read_files(folder.path(), true).unwrap();
        assert_eq!(deep.contents["sub/e.md"], "deep");
    }

    #[test]
    fn images_are_read_if_they_are_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("a.md", b"# Queue\n");
        write("plan.PNG", b"\x89PNG\r\n\x1A\nrest");
        write("text.jpg", b"no picture");
        let plain = read_files(folder.path(), false).unwrap();
        assert!(plain.inputs.images.is_empty());
        assert_eq!(plain.inputs.skipped.len(), 2);
        let read = read_files_and_images(folder.path(), false).unwrap();
        assert_eq!(read.contents.len(), 1);
        let image = &read.inputs.images["plan.PNG"];
        assert_eq!(image.mime_type, "image/png");
        assert_eq!(image.base64, "iVBORw0KGgpyZXN0");
        assert!(read.inputs.hashes.contains_key("plan.PNG"));
        let skipped = &read.inputs.skipped;
        assert_eq!(skipped.len(), 1);
        assert_eq!(skipped[0].why, "not a PNG, JPEG, GIF or WebP image");
        for number in 0..=IMAGES_MAX {
            write(&format!("{number}.gif"), b"GIF89a");
        }
        let many = read_files_and_images(folder.path(), false).unwrap();
        assert_eq!(many.inputs.images.len(), IMAGES_MAX);
        let skipped = many.inputs.skipped.iter();
        let last = skipped.filter(|skipped| skipped.why == "more than 8 images");
        assert_eq!(last.count(), 3, "the last GIF, the PNG and the JPEG");
    }

    #[test]
    fn only_named_files_of_the_thread_are_notes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let folders = ThreadFolders::new(move |thread| root.join(thread.name()));
        let thread = ThreadId::new("a").unwrap();
        let own = folders.open(&thread).unwrap().path().to_owned();
        for (name, text) in [
            ("a.md", "one"),
            ("notes/b.md", "two"),
            ("notesb.md", "three"),
        ] {
            let path = own.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(own.join("c.bin"), "x").unwrap();
        fs::write(folder.path().join("d.md"), "canary").unwrap();
        let read = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            read_thread_files(&folders, &thread, &names)
        };
        let notes = read(&["notes"]).unwrap();
        assert_eq!(notes.contents.keys().collect::<Vec<_>>(), ["notes/b.md"]);
        assert_eq!(notes.inputs.root, "files:");
        assert!(notes.inputs.is_of_thread());
        let both = read(&["a.md", "notes"]).unwrap();
        assert_eq!(both.inputs.hashes.len(), 2);
        for bad in [
            "../d.md",
            "d.md",
            "c.bin",
            "/etc/hostname",
            "",
            "notes/../../d.md",
        ] {
            let why = read(&["a.md", bad]).unwrap_err().to_string();
            assert!(!why.contains(folder.path().to_str().unwrap()), "{why}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_said_so() {
        let error = read_files(Path::new("/no/such/folder"), false).unwrap_err();
        assert!(error.to_string().contains("give one with --inputs"));
    }
}
