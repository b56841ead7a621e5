/** The sections of the page: what the navigation and the command palette list. */

import { type ComponentType, lazy } from "react";

import type { text } from "../text/index.ts";

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
  { name: "inbox", group: "work", View: lazy(() => import("../views/inbox/InboxView.tsx")) },
  { name: "threads", group: "work", View: lazy(() => import("../views/thread/ThreadsSection.tsx")) },
  { name: "start", group: "work", View: lazy(() => import("../views/start/StartView.tsx")) },
  { name: "assistants", group: "work", View: lazy(() => import("../views/start/AssistantsView.tsx")) },
  { name: "queue", group: "operate", View: lazy(() => import("../views/operate/QueueView.tsx")) },
  { name: "crons", group: "operate", View: lazy(() => import("../views/operate/CronsView.tsx")) },
  { name: "deliveries", group: "operate", View: lazy(() => import("../views/operate/DeliveriesView.tsx")) },
  { name: "store", group: "operate", View: lazy(() => import("../views/operate/StoreView.tsx")) },
  { name: "budgets", group: "operate", View: lazy(() => import("../views/operate/BudgetsView.tsx")) },
  { name: "usage", group: "operate", View: lazy(() => import("../views/operate/UsageView.tsx")) },
  {
    name: "keys",
    group: "operate",
    isAdmin: true,
    View: lazy(() => import("../views/operate/KeysView.tsx")),
  },
  {
    name: "audit",
    group: "operate",
    isAdmin: true,
    View: lazy(() => import("../views/operate/AuditView.tsx")),
  },
  { name: "health", group: "operate", View: lazy(() => import("../views/operate/HealthView.tsx")) },
];
