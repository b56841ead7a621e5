//! What callers may be allowed to do.

use std::fmt;

/// Something that a caller may be allowed to do. A caller may have any of them, and none follows from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Permission {
    /// Read assistants, threads, runs, files and the long-term store.
    Read = 1,
    /// Create threads and runs, cancel runs, upload files.
    Run = 2,
    /// Answer interrupts.
    Answer = 4,
    /// Change states and the long-term store, and delete threads, runs and files.
    Edit = 8,
    /// Manage assistants and API keys, read metrics and the audit log.
    Admin = 16,
}

impl Permission {
    /// Every permission, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Read, Self::Run, Self::Answer, Self::Edit, Self::Admin];

    /// Returns the name that settings and messages use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Answer => "answer",
            Self::Edit => "edit",
            Self::Admin => "admin",
        }
    }

    /// Returns the permission with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|found| found.name() == name)
    }
}

/// A set of permissions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Permissions(u8);

impl Permissions {
    /// Every permission.
    pub const ALL: Self = Self(31);

    /// Whether the set contains a permission.
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & permission as u8 != 0
    }

    /// Returns the permissions of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        let all = Permission::ALL.into_iter();
        all.filter(move |permission| self.contains(*permission))
    }

    /// Returns the number that stores keep.
    pub const fn to_number(self) -> u8 {
        self.0
    }

    /// Returns the set with this number. Bits without a meaning are dropped.
    pub const fn from_number(number: u8) -> Self {
        Self(number & Self::ALL.0)
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<T: IntoIterator<Item = Permission>>(permissions: T) -> Self {
        let numbers = permissions.into_iter().map(|permission| permission as u8);
        Self(numbers.fold(0, |set, number| set | number))
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[test]
fn a_set_holds_what_was_put_in_and_no_unknown_bits() {
    let set: Permissions = [Permission::Read, Permission::Answer].into_iter().collect();
    assert!(set.contains(Permission::Answer));
    assert!(!set.contains(Permission::Edit));
    assert_eq!(Permissions::from_number(set.to_number()), set);
    assert_eq!(Permissions::from_number(255), Permissions::ALL);
    assert_eq!(
        Permission::ALL.into_iter().collect::<Permissions>(),
        Permissions::ALL
    );
    assert_eq!(Permission::from_name("answer"), Some(Permission::Answer));
}
