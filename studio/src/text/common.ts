export const common = {
  product: "Superstep Studio",
  loading: (what: string) => `Loading ${what}…`,
  tryAgain: "Try again",
  cancel: "Cancel",
  close: "Close",
  save: "Save",
  copy: "Copy",
  copied: "Copied",
  offline: "The server cannot be reached. What you see may be old; nothing that you typed is lost.",
  skip: "Skip to content",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },
  navigation: "Sections",
  palette: "Search and commands",
  keyTitle: "API key",
  keyWhy:
    "This server asks its callers who they are. The key stays in this tab and is forgotten when you close or reload it.",
  keyEnter: "Continue",
  keyWrong: "The server does not accept this key.",
  notFoundTitle: "This page does not exist.",
  notFoundNext: "Go to the inbox",
  /** What the visitor can do about a status. */
  whatToDo: (status: number): string => {
    if (status === 0)
      return "Check that the server is running. This view continues by itself when it is back.";
    if (status === 401) return "Enter an API key that is valid.";
    if (status === 403) return "Your API key does not allow this. Ask an administrator of the server.";
    if (status === 404) return "It was deleted, or it belongs to another tenant.";
    if (status === 409) return "Somebody else was faster. Look at the new state first.";
    if (status === 422) return "Check what you entered.";
    if (status === 429) return "Wait a moment: your tenant has used up what it may.";
    return "Try again. If it fails again, the log of the server says why.";
  },
  sections: {
    inbox: "Inbox",
    threads: "Threads",
    start: "Start",
    assistants: "Assistants",
    queue: "Queue",
    crons: "Crons",
    deliveries: "Webhooks",
    store: "Store",
    budgets: "Budgets",
    usage: "Usage",
    keys: "API keys",
    audit: "Audit log",
    health: "Health",
  },
  groups: { work: "Work", operate: "Operate" },
} as const;
