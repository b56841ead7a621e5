//! Limits on how much of a folder is read.

/// Limits on how much of a folder is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderLimits {
    /// Maximum size of one file.
    pub file_bytes_max: u64,
    /// Maximum size of all files together.
    pub total_bytes_max: u64,
    /// Maximum number of listed entries: files, folders and everything else.
    pub entries_max: u64,
    /// Maximum depth of nested folders.
    pub depth_max: usize,
}

impl Default for FolderLimits {
    /// 8 MiB per file, 1 GiB in total, 500,000 entries, 64 folders deep.
    fn default() -> Self {
        Self {
            file_bytes_max: 8 << 20,
            total_bytes_max: 1 << 30,
            entries_max: 500_000,
            depth_max: 64,
        }
    }
}

/// What remains of [`FolderLimits`] while a folder is read.
#[derive(Clone, Debug)]
pub struct Allowance {
    limits: FolderLimits,
    entries: u64,
    bytes: u64,
}

impl Allowance {
    /// Creates an allowance with the full limits.
    pub fn new(limits: FolderLimits) -> Self {
        Self {
            limits,
            entries: limits.entries_max,
            bytes: limits.total_bytes_max,
        }
    }

    /// Returns the limits that this allowance started with.
    pub fn limits(&self) -> &FolderLimits {
        &self.limits
    }

    /// Returns how many more entries may be listed.
    pub fn entries(&self) -> usize {
        usize::try_from(self.entries).unwrap_or(usize::MAX)
    }

    /// Subtracts listed entries.
    pub fn take_entries(&mut self, count: usize) {
        self.entries = self.entries.saturating_sub(count as u64);
    }

    /// Subtracts a file of this size. If the file exceeds a limit, subtracts nothing and returns the reason to skip it.
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

/// Returns a size as text: `1 MiB`, `700 bytes`. Uses a larger unit only if the size is a multiple of it.
pub fn spell_bytes(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} bytes")
}
