//! How often what happened, so that nobody takes a quiet trial for a sound machine.

/// How often what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes that died.
    pub crashes: u64,
    /// Calls of the store that failed, applied or not.
    pub faults: u64,
    /// Processes that went on after they were replaced.
    pub zombies: u64,
    /// Writes of zombies that were refused.
    pub fenced: u64,
    /// Questions that more than one answer raced for.
    pub races: u64,
    /// Questions that were answered.
    pub answers: u64,
    /// Answers that came while their thread was running.
    pub early_answers: u64,
    /// Pauses that did not happen because of one.
    pub unseen: u64,
    /// Jumps of the clock.
    pub jumps: u64,
    /// Attempts that took too long.
    pub timeouts: u64,
    /// Runs that were cancelled.
    pub cancels: u64,
    /// Runs that were drained.
    pub drains: u64,
    /// Writes that arrived after their process had died.
    pub packets: u64,
    /// Threads that went on from an older entry.
    pub forks: u64,
    /// States that were changed from outside.
    pub edits: u64,
    /// Runs that were suspended at a boundary.
    pub put_down: u64,
    /// Of those, to wait for a time.
    pub sleeps: u64,
    /// Boundaries at which a run was resumed after a death.
    pub taken_up_twice: u64,
    /// Reports of processes that were lost.
    pub unjournaled: u64,
    /// Tasks that were dispatched.
    pub handed_over: u64,
    /// Ends that were written down because others were away.
    pub told_later: u64,
    /// Ends of tasks that were dispatched, written down.
    pub receipts: u64,
    /// Tasks that were run by a process that had made them with others.
    pub made_once: u64,
    /// Tasks that were dispatched again after a death.
    pub calls_again: u64,
    /// Tasks that were asked for twice.
    pub calls_twice: u64,
    /// Writes of tasks that went on after their run was resumed, and were refused.
    pub helpers_fenced: u64,
    /// Starts and resumes that were tried again.
    pub orders_again: u64,
    /// Of those, the ones that were told it was done.
    pub orders_taken: u64,
    /// Log entries.
    pub entries: u64,
    /// Executions of tasks.
    pub tasks: u64,
    /// Effects that happened.
    pub effects: u64,
    /// Those that were repeats, each after a cut.
    pub repeated: u64,
    /// Times that something was checked.
    pub checks: u64,
}

impl Counts {
    /// Each count with its name.
    pub fn named(&self) -> [(&'static str, u64); 33] {
        [
            ("crashes", self.crashes),
            ("faults", self.faults),
            ("zombies", self.zombies),
            ("fenced", self.fenced),
            ("answers_raced", self.races),
            ("answers", self.answers),
            ("answers_while_running", self.early_answers),
            ("unseen_answers", self.unseen),
            ("clock_jumps", self.jumps),
            ("timeouts", self.timeouts),
            ("cancels", self.cancels),
            ("drains", self.drains),
            ("late_writes", self.packets),
            ("forks", self.forks),
            ("edits", self.edits),
            ("put_down", self.put_down),
            ("sleeps", self.sleeps),
            ("taken_up_twice", self.taken_up_twice),
            ("unjournaled", self.unjournaled),
            ("handed_over", self.handed_over),
            ("told_later", self.told_later),
            ("receipts", self.receipts),
            ("made_once", self.made_once),
            ("calls_again", self.calls_again),
            ("calls_twice", self.calls_twice),
            ("helpers_fenced", self.helpers_fenced),
            ("orders_again", self.orders_again),
            ("orders_taken", self.orders_taken),
            ("entries", self.entries),
            ("tasks", self.tasks),
            ("effects", self.effects),
            ("effects_repeated", self.repeated),
            ("checks", self.checks),
        ]
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.crashes += more.crashes;
        self.faults += more.faults;
        self.zombies += more.zombies;
        self.fenced += more.fenced;
        self.races += more.races;
        self.answers += more.answers;
        self.early_answers += more.early_answers;
        self.unseen += more.unseen;
        self.jumps += more.jumps;
        self.timeouts += more.timeouts;
        self.cancels += more.cancels;
        self.drains += more.drains;
        self.packets += more.packets;
        self.forks += more.forks;
        self.edits += more.edits;
        self.put_down += more.put_down;
        self.sleeps += more.sleeps;
        self.taken_up_twice += more.taken_up_twice;
        self.unjournaled += more.unjournaled;
        self.handed_over += more.handed_over;
        self.told_later += more.told_later;
        self.receipts += more.receipts;
        self.made_once += more.made_once;
        self.calls_again += more.calls_again;
        self.calls_twice += more.calls_twice;
        self.helpers_fenced += more.helpers_fenced;
        self.orders_again += more.orders_again;
        self.orders_taken += more.orders_taken;
        self.entries += more.entries;
        self.tasks += more.tasks;
        self.effects += more.effects;
        self.repeated += more.repeated;
        self.checks += more.checks;
    }
}
