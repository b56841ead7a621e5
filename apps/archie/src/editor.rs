//! Opens a text in the person's editor.

use std::ffi::OsString;
use std::io::Write;

use anyhow::{Context, bail};
use tokio::process::Command;

/// The person's editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Editor {
    program: String,
    args: Vec<String>,
}

impl Editor {
    /// Reads `VISUAL` or `EDITOR`, which may have arguments, such as `code --wait`.
    pub(crate) fn from_env() -> anyhow::Result<Self> {
        let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
        let Some(named) = set("VISUAL").or_else(|| set("EDITOR")) else {
            bail!("no editor is set; set EDITOR to one, for example `EDITOR=nano`");
        };
        Self::from_words(&named.to_string_lossy())
    }

    pub(crate) fn from_words(words: &str) -> anyhow::Result<Self> {
        let split = shlex::split(words).filter(|split| !split.is_empty());
        let mut split = split
            .with_context(|| format!("EDITOR is `{words}`, which is not a command"))?
            .into_iter();
        Ok(Self {
            program: split.next().unwrap_or_default(),
            args: split.collect(),
        })
    }

    /// Opens a text, waits until the person closes the editor, and returns what they saved. Only the person can read the file.
    pub(crate) async fn edit(&self, text: &str) -> anyhow::Result<String> {
        let mut file = tempfile::Builder::new()
            .prefix("archie-")
            .suffix(".txt")
            .tempfile()
            .context("cannot create a file to edit")?;
        file.write_all(text.as_bytes())?;
        file.flush()?;
        let status = Command::new(&self.program)
            .args(&self.args)
            .arg(file.path())
            .status()
            .await;
        let status =
            status.with_context(|| format!("the editor `{}` cannot be started", self.program))?;
        if !status.success() {
            bail!(
                "the editor `{}` ended with an error; nothing was changed",
                self.program
            );
        }
        // Some editors replace the file instead of writing to it, so read it by its name.
        std::fs::read_to_string(file.path()).context("the edited text cannot be read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_the_editor_saves_is_returned() {
        let editor = Editor::from_words("sed -i s/lunch/dinner/").unwrap();
        assert_eq!(
            editor.edit("lunch at eight\n").await.unwrap(),
            "dinner at eight\n"
        );
        let failing = Editor::from_words("false").unwrap();
        let error = failing.edit("x").await.unwrap_err().to_string();
        assert!(error.contains("nothing was changed"), "{error}");
        assert!(Editor::from_words("  ").is_err());
    }
}
