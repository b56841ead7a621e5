//! How much of a folder is read at most.

/// How much of a folder is read at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderLimits {
    /// Of any one file.
    pub file_bytes_max: u64,
    /// Of all files together.
    pub total_bytes_max: u64,
    /// Files, folders and everything else that is listed.
    pub entries_max: u64,
    /// Folders within folders.
    pub depth_max: usize,
}

impl Default for FolderLimits {
    /// 8 MiB a file, 1 GiB in all, 500,000 entries, 64 folders deep.
    fn default() -> Self {
        Self {
            file_bytes_max: 8 << 20,
            total_bytes_max: 1 << 30,
            entries_max: 500_000,
            depth_max: 64,
        }
    }
}

/// What is left of [`FolderLimits`] while a folder is read.
#[derive(Clone, Debug)]
pub struct Allowance {
    limits: FolderLimits,
    entries: u64,
    bytes: u64,
}

impl Allowance {
    /// All of it.
    pub fn new(limits: FolderLimits) -> Self {
        Self {
            limits,
            entries: limits.entries_max,
            bytes: limits.total_bytes_max,
        }
    }

    /// The limits that it began with.
    pub fn limits(&self) -> &FolderLimits {
        &self.limits
    }

    /// How many entries may still be listed.
    pub fn entries(&self) -> usize {
        usize::try_from(self.entries).unwrap_or(usize::MAX)
    }

    /// Takes so many entries.
    pub fn take_entries(&mut self, count: usize) {
        self.entries = self.entries.saturating_sub(count as u64);
    }

    /// Takes a file of this size, or says why it is not read.
    pub fn take_file(&mut self, bytes: u64) -> Result<(), String> {
        if bytes > self.limits.file_bytes_max {
            let limit = spell_bytes(self.limits.file_bytes_max);
            return Err(format!("larger than {limit}"));
        }
        if bytes > self.bytes {
            let limit = spell_bytes(self.limits.total_bytes_max);
            return Err(format!("more than {limit} in all"));
        }
        self.bytes -= bytes;
        Ok(())
    }
}

/// A size as people write it: `1 MiB`, `700 bytes`.
pub fn spell_bytes(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} bytes")
}
