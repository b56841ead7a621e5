/** The sections of the page: what the navigation and the command palette list. */

import type { ComponentType } from "react";
import type { text } from "../text/index.ts";
import InboxView from "../views/inbox/InboxView.tsx";
import { lazyView } from "./lazy_view.ts";

export interface Section {
  /** The first part of its path. */
  name: keyof typeof text.common.sections;
  group: "work" | "operate";
  /** Shown to administrators only. */
  isAdmin?: boolean;
  /** Gets the rest of the path. */
  View: ComponentType<{ path: string[] }>;
}

export const SECTIONS: Section[] = [
  { name: "inbox", group: "work", View: InboxView },
  { name: "threads", group: "work", View: lazyView(() => import("../views/thread/ThreadsSection.tsx")) },
  { name: "start", group: "work", View: lazyView(() => import("../views/start/StartView.tsx")) },
  { name: "assistants", group: "work", View: lazyView(() => import("../views/start/AssistantsView.tsx")) },
  { name: "queue", group: "operate", View: lazyView(() => import("../views/operate/QueueView.tsx")) },
  { name: "crons", group: "operate", View: lazyView(() => import("../views/operate/CronsView.tsx")) },
  {
    name: "deliveries",
    group: "operate",
    View: lazyView(() => import("../views/operate/DeliveriesView.tsx")),
  },
  { name: "store", group: "operate", View: lazyView(() => import("../views/operate/StoreView.tsx")) },
  { name: "budgets", group: "operate", View: lazyView(() => import("../views/operate/BudgetsView.tsx")) },
  { name: "usage", group: "operate", View: lazyView(() => import("../views/operate/UsageView.tsx")) },
  {
    name: "keys",
    group: "operate",
    isAdmin: true,
    View: lazyView(() => import("../views/operate/KeysView.tsx")),
  },
  {
    name: "audit",
    group: "operate",
    isAdmin: true,
    View: lazyView(() => import("../views/operate/AuditView.tsx")),
  },
  { name: "health", group: "operate", View: lazyView(() => import("../views/operate/HealthView.tsx")) },
];
