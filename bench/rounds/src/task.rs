//! The command line of a side.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Failure;

/// What a side is asked to do, again in every round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What is done, such as `chain`.
    pub work: String,
    /// What keeps the threads: `none`, `sqlite` or `postgres`.
    pub store: String,
    settings: BTreeMap<String, String>,
}

impl Task {
    /// Reads `WORK STORE [name=value ...]`.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let (Some(work), Some(store)) = (words.next(), words.next()) else {
            return Err("a side takes WORK STORE [name=value ...]".into());
        };
        let setting = |word: String| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(format!("`{word}` is not name=value")),
        };
        Ok(Self {
            work,
            store,
            settings: words.map(setting).collect::<Result<_, _>>()?,
        })
    }

    /// A setting as it was given.
    pub fn text(&self, name: &str) -> Result<&str, Failure> {
        let found = self.settings.get(name);
        Ok(found.ok_or_else(|| format!("the setting `{name}` is missing"))?)
    }

    /// A setting that is a number.
    pub fn number(&self, name: &str) -> Result<usize, Failure> {
        Ok(self.text(name)?.parse()?)
    }

    /// How long a round goes on beginning new runs.
    pub fn time(&self) -> Result<Duration, Failure> {
        Ok(Duration::from_secs_f64(self.text("seconds")?.parse()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        Task::parse(line.split(' ').map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_line_is_work_store_and_settings() {
        let task = parse("chain sqlite seconds=0.5 at_once=16").unwrap();
        assert_eq!(
            (task.work.as_str(), task.store.as_str()),
            ("chain", "sqlite")
        );
        assert_eq!(task.number("at_once").unwrap(), 16);
        assert_eq!(task.time().unwrap(), Duration::from_millis(500));
        assert!(task.number("turns").is_err());
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(parse("chain").is_err());
        assert!(parse("chain none fast").is_err());
    }
}
