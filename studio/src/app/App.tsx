import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useRef } from "react";

import { ApiProblem } from "../api/client.ts";
import { inboxQuery, meQuery } from "../api/queries.ts";
import { text } from "../text/index.ts";
import { Loading, Notice } from "../ui/Notice.tsx";
import { ErrorBoundary } from "./ErrorBoundary.tsx";
import { KeyForm } from "./KeyForm.tsx";
import { Link } from "./Link.tsx";
import { hrefOf, navigate, usePageLocation } from "./location.ts";
import { useMay } from "./me.ts";
import { OfflineBanner } from "./OfflineBanner.tsx";
import { Palette } from "./Palette.tsx";
import { useRevealed } from "./reveal.ts";
import { SECTIONS, type Section } from "./sections.ts";
import { ThemeMenu } from "./ThemeMenu.tsx";

/** The frame of the page: navigation, and the section that the address names. */
export function App() {
  const me = useQuery(meQuery);
  if (me.error instanceof ApiProblem && me.error.status === 401) return <KeyForm />;
  return (
    <div className="shell">
      <a className="button skip" href="#main">
        {text.common.skip}
      </a>
      <header className="shell-top">
        <Link className="shell-name" href={hrefOf(["inbox"])}>
          {text.common.product}
        </Link>
        <span className="spacer" />
        <Palette />
        <ThemeMenu />
      </header>
      <Navigation />
      <Main />
    </div>
  );
}

function Navigation() {
  const { path } = usePageLocation();
  const may = useMay();
  const inbox = useQuery(inboxQuery({ limit: 100, offset: 0 }));
  const waiting = inbox.data?.total ?? 0;
  const groups = ["work", "operate"] as const;
  const nav = useRef<HTMLElement>(null);
  const [current] = path;
  useRevealed(nav, "[aria-current]", current);
  return (
    <nav ref={nav} className="shell-nav" aria-label={text.common.navigation}>
      {groups.map((group) => (
        <section key={group}>
          <h2 className="small muted">{text.common.groups[group]}</h2>
          <ul>
            {SECTIONS.filter((section) => section.group === group && (!section.isAdmin || may("admin"))).map(
              (section) => (
                <li key={section.name}>
                  <Link
                    href={hrefOf([section.name])}
                    aria-current={current === section.name ? "page" : undefined}
                  >
                    {text.common.sections[section.name]}
                    {section.name === "inbox" && waiting > 0 && <span className="badge">{waiting}</span>}
                  </Link>
                </li>
              ),
            )}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function Main() {
  const { path } = usePageLocation();
  const section = SECTIONS.find(({ name }) => name === path[0]);
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    if (path.length === 0) navigate(hrefOf(["inbox"]), "replace");
  }, [path]);
  return (
    <main id="main" className="shell-main" tabIndex={-1} ref={main}>
      <OfflineBanner />
      {section ? <SectionView key={section.name} section={section} path={path.slice(1)} /> : <NoSection />}
    </main>
  );
}

function SectionView({ section, path }: { section: Section; path: string[] }) {
  const { View } = section;
  const name = text.common.sections[section.name];
  useEffect(() => {
    document.title = `${name} · ${text.common.product}`;
  }, [name]);
  return (
    <ErrorBoundary>
      <Suspense fallback={<Loading what={name} />}>
        <View path={path} />
      </Suspense>
    </ErrorBoundary>
  );
}

function NoSection() {
  return (
    <div className="view">
      <Notice title={text.common.notFoundTitle}>
        <Link href={hrefOf(["inbox"])}>{text.common.notFoundNext}</Link>
      </Notice>
    </div>
  );
}
