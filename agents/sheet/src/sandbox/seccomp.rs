//! The system call filter of the sandbox, as a BPF program for the kernel.
//!
//! Missing privileges already block most of these calls; the filter is a second line of defence. It also blocks what resource
//! limits do not cover: other processes (so that the memory limit applies to the whole job), anonymous memory files, and
//! sockets.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Returns the filter in the format that bubblewrap reads.
pub(super) fn program() -> Result<Vec<u8>, BackendError> {
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules()?, SeccompAction::Allow, refused, arch)?;
    let filter: BpfProgram = filter.try_into()?;
    let mut bytes = Vec::new();
    for instruction in first().iter().chain(&filter) {
        bytes.extend(instruction.code.to_ne_bytes());
        bytes.extend([instruction.jt, instruction.jf]);
        bytes.extend(instruction.k.to_ne_bytes());
    }
    Ok(bytes)
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    // `clone` also creates threads; without `CLONE_THREAD` it creates a process.
    let no_thread = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(libc::CLONE_THREAD.unsigned_abs().into()),
        0,
    )?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![no_thread])?]);
    Ok(rules)
}

/// Returns the rules that a list of call numbers cannot express. `clone3` has its flags in memory, where a filter cannot read
/// them; if the kernel claims not to have it, the C library falls back to `clone`. Call numbers of the x32 ABI would bypass all
/// other rules.
fn first() -> Vec<sock_filter> {
    let load_number = sock_filter {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let equals = |k: u32| sock_filter {
        code: 0x15,
        jt: 0,
        jf: 1,
        k,
    };
    let at_least = |k: u32| sock_filter {
        code: 0x35,
        jt: 0,
        jf: 1,
        k,
    };
    let errno = |error: i32| sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: 0x0005_0000 | error.unsigned_abs(),
    };
    vec![
        load_number,
        equals(u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX)),
        errno(libc::ENOSYS),
        at_least(0x4000_0000),
        errno(libc::ENOSYS),
    ]
}

const REFUSED: &[i64] = &[
    // Access to other processes.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Network access, and everything else that uses sockets.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    // Changes to namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_mount_setattr,
    libc::SYS_personality,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Memory that the limits do not count.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // Kernel features that the code does not need.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_fanotify_init,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];
