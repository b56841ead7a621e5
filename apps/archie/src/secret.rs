//! Reads a secret from the terminal without echoing it, or from a pipe without repeating it.

use std::io::{self, BufRead, Read};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// Reads a line as it is. Returns `None` at the end of input.
pub(crate) fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Reads keys up to Enter without echoing them. Returns `None` on Ctrl-C, and on Ctrl-D if nothing was typed.
pub(crate) fn read_hidden() -> io::Result<Option<String>> {
    enable_raw_mode()?;
    let _restored = Restored;
    read_keys(&mut io::stdin().lock())
}

/// Restores the terminal's echo when dropped, also after an error.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = disable_raw_mode();
    }
}

/// Reads keys as a terminal in raw mode sends them: one or more bytes each, without line editing.
fn read_keys(keys: &mut impl Read) -> io::Result<Option<String>> {
    let mut typed = String::new();
    let mut letter = Vec::new();
    let mut key = [0];
    loop {
        if keys.read(&mut key)? == 0 {
            return Ok((!typed.is_empty()).then_some(typed));
        }
        match key[0] {
            b'\r' | b'\n' => return Ok(Some(typed)),
            CTRL_C => return Ok(None),
            CTRL_D if typed.is_empty() => return Ok(None),
            BACKSPACE | DELETE => {
                typed.pop();
            }
            CTRL_U => typed.clear(),
            ESCAPE => skip_sequence(keys)?,
            0..=31 => {}
            byte => {
                letter.push(byte);
                match std::str::from_utf8(&letter) {
                    Ok(whole) => {
                        typed.push_str(whole);
                        letter.clear();
                    }
                    // The character continues in the next bytes.
                    Err(error) if error.error_len().is_none() => {}
                    Err(_) => letter.clear(),
                }
            }
        }
    }
}

/// Skips the rest of an escape sequence, such as an arrow key.
fn skip_sequence(keys: &mut impl Read) -> io::Result<()> {
    let mut key = [0];
    while keys.read(&mut key)? > 0 {
        let is_begin = matches!(key[0], b'[' | b'O' | b';' | b'0'..=b'9');
        if !is_begin {
            break;
        }
    }
    Ok(())
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CTRL_U: u8 = 21;
const ESCAPE: u8 = 27;
const DELETE: u8 = 127;

#[test]
fn keys_are_edited_as_at_any_prompt() {
    let read = |keys: &str| read_keys(&mut keys.as_bytes()).unwrap();
    assert_eq!(read("hunter2\rrest").as_deref(), Some("hunter2"));
    assert_eq!(
        read("hö\u{7f}ö\u{1b}[A\u{1b}[3~x\n").as_deref(),
        Some("höx")
    );
    assert_eq!(read("wrong\u{15}right\r").as_deref(), Some("right"));
    assert_eq!(read("half\u{3}"), None);
    assert_eq!(read("\u{4}"), None);
    assert_eq!(read("\r").as_deref(), Some(""));
}
