//! What can be wrong with a checkpointer.

/// What is wrong with a checkpointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    /// The next page begins with the next deadline.
    OverdueComparesDeadlines,
    FenceSkipped,
    RetryRefused,
    /// The epoch alone decides whether a commit was saved before.
    LoserToldSaved,
    CancelKeptByClaim,
    RecordReplaced,
    RecordUnfenced,
    AnswerReplaced,
    AnswerRetryRefused,
    /// The value alone decides whether an answer was stored before.
    EqualAnswerTaken,
    AnswersHalfStored,
    FalsyAnswerDropped,
    AnswerOverlooked,
    DeleteForgetsEpoch,
    PruneDropsTooMuch,
    TenantIgnored,
    ClockOrder,
    PageIgnored,
    CopyNotSealedAnew,
    ExportIgnoresTenant,
    ExportOfDeletedIsEmpty,
    ExportCutAtAPage,
    /// Where the thread stands is read after the rest.
    ExportTorn,
    ExportLosesSnapshots,
    ImportLosesRecords,
    ImportLosesCancel,
    ImportLosesListing,
    ImportLosesDeadlines,
    ImportLosesEpoch,
    /// Every answer counts as seen.
    ImportLosesSeen,
    /// A search takes what it once found for what it would find.
    ListingNeverComparedAgain,
    ImportReplaces,
    ImportTwiceRefused,
    ImportTakesAnyName,
    ImportTakesDamage,
    ImportNeedsEntries,
    GlanceOverlooksRecords,
    GlanceShowsEveryRecord,
    GlanceOverlooksCancel,
    GlanceOverlooksAnswers,
    GlanceOfLastEpoch,
    /// Whoever shares a write with one that is refused is refused too.
    CrowdSharesItsFate,
    ReleaseOfManyDropsAll,
    ClaimMakesAnEntry,
    DeletedTakenUpWithoutAClaim,
    DeleteKeepsEverything,
    CopyCutAtAPage,
    ExpireOfUnnamedTenantOnly,
    /// A sequence number is a signed one in the database.
    SeqIsSigned,
    DueMeansOpen,
    /// Metadata that are not given again are no longer searched.
    MetadataSearchedOnce,
    /// The status that is searched is written with a listing only.
    StatusOfTheListing,
    /// The first 64 fields are searched.
    LaterFieldsNotSearched,
    /// A text ends at the first NUL.
    TextEndsAtNul,
    RefusalsNameNothing,
    CancelNeverTold,
    LoadedHeadLags,
    LoadedWithoutSnapshot,
    MissingThreadIsNew,
    ReleaseOfResultDropsSteps,
    ReleaseDropsEveryTask,
    ClosedQuestionsLoaded,
    SeenAnswersForgotten,
    /// The thread is loaded before the answers are stored.
    LoadedBeforeItsAnswers,
    RefusedAnswersLoaded,
    QuestionsNewestFirst,
    QuestionsOfEveryThread,
    AnsweredIsOpen,
    StatusIgnored,
    CopyLosesListing,
    DeletedEpochNotRaised,
    PruneMiscounts,
    LeaseForgotten,
    LeaseNotAtAGlance,
    UnfinishedFromTheStart,
    LeaseMovedBySteps,
    LeaseRenewedByAnyone,
    LeaseNeverRenewed,
    LeaseOfThreadsThatRest,
    /// A thread that exists is made again.
    CreateReplaces,
    /// Every creation is said to have made a thread.
    CreateAlwaysTold,
    CreateForgetsEpoch,
    CreateOfDeletedRefused,
    CreatedNotListed,
    CreatedNotLoaded,
    /// The first commit of a run replaces the metadata that the thread was created with.
    FirstRunDropsMetadata,
    AnnotateReplaces,
    /// An annotation does not move when the row last changed.
    AnnotateIsNoChange,
    AnnotateMakesAThread,
    AnnotateAlwaysTold,
    AnnotateRenamesGraph,
    /// Threads are not found by metadata once these were annotated.
    AnnotationsNotSearched,
    RunningThreadsExpire,
    LifetimeFromCreation,
    LifetimeOverflows,
    LifetimeNeverRemoved,
    EndOfLifetimeForgotten,
    ExpiredWithoutLimit,
    ExpiredOfUnnamedTenantOnly,
    SizesOfAllTenants,
    SizesOfAllThreads,
    SizesIgnoreThePage,
    SizesSmallestFirst,
    SizesWithoutSnapshots,
    /// The next page begins with the next end of a lifetime.
    ExpiredComparesEnds,
    /// Every page is the first one.
    ExpiredBeginsAgain,
    CopyLosesLifetime,
    ArchiveHasTheLifetime,
    ForgetDoesNothing,
    ForgetDeletes,
    FirstStatusOnly,
    IdsIgnored,
    /// An empty list of ids is taken for none.
    NoIdsMeanAny,
    ExceptionsIgnored,
    /// What is nested in what a thread must contain is not compared.
    NestedIgnored,
    /// A contained number must be written in the same way.
    ContainedNumbersAsText,
    SortIgnored,
    CreatedIsUpdated,
    DirectionIgnored,
    /// Threads that are equal are in the reverse order of their names in a descending list.
    TiesFollowTheDirection,
    CountOfThePage,
    CountIgnoresConditions,
}
