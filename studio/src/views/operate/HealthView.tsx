import { useQuery } from "@tanstack/react-query";

import { serverBase } from "../../api/client.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { formatDuration } from "../../pure/format.ts";
import { common } from "../../text/common.ts";
import { operate } from "../../text/operate.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Loading } from "../../ui/Notice.tsx";
import { infoQuery, metricsQuery, readyQuery, storesQuery } from "./api.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign } from "./Foreign.tsx";
import { formatFigure, type HealthSign, healthSigns } from "./health.ts";
import { Frame } from "./parts.tsx";

const text = operate.health;

export default function HealthView() {
  const may = useMay();
  const ready = useQuery(readyQuery);
  const stores = useQuery(storesQuery);
  const info = useQuery(infoQuery);
  const metrics = useQuery({ ...metricsQuery, enabled: may("admin") });
  const signs = healthSigns({
    isReady: ready.data,
    readyError: ready.error,
    storesMs: stores.data,
    storesError: stores.error,
    metrics: metrics.error ? undefined : metrics.data,
  });
  return (
    <Frame title={text.title} lead={text.lead}>
      <section className="card" aria-labelledby="health-checks">
        <h2 id="health-checks">{text.checks}</h2>
        <p role="status" className="visually-hidden">
          {signs.length > 0 && text.toLookAt(signs.filter(({ state }) => state !== "good").length)}
        </p>
        {signs.length === 0 ? (
          <Loading what={text.what} />
        ) : (
          <ul className="operate-signs">
            {signs.map((sign) => (
              <Sign key={sign.name} sign={sign} />
            ))}
          </ul>
        )}
      </section>
      {!may("admin") && <p className="muted">{text.adminOnly}</p>}
      {metrics.data && <Figures metrics={metrics.data} />}
      <Documents version={info.data?.version} uptime={metrics.data?.uptime_seconds} />
    </Frame>
  );
}

function Sign({ sign }: { sign: HealthSign }) {
  const { name, state, says, next, section } = sign;
  return (
    <li>
      <strong>{text.signs[name]}</strong>
      <span>
        <Badge tone={state}>{text[state]}</Badge>
      </span>
      <div>
        <Foreign text={says} />
        {next && <p>{next}</p>}
        {section && <Link href={hrefOf([section])}>{common.sections[section]}</Link>}
      </div>
    </li>
  );
}

function Figures({ metrics }: { metrics: Readonly<Record<string, number>> }) {
  const columns: Column<[string, number]>[] = [
    { name: text.figure, isRowName: true, cell: ([name]) => text.metrics[name] ?? <Foreign text={name} /> },
    { name: text.amount, isNumber: true, cell: ([name, value]) => formatFigure(name, value) },
  ];
  return (
    <section className="stack" aria-labelledby="health-figures">
      <h2 id="health-figures">{text.figures}</h2>
      <DataTable
        caption={text.figuresCaption}
        columns={columns}
        rows={Object.entries(metrics)}
        keyOf={([name]) => name}
      />
    </section>
  );
}

/** Real links: these are pages of the server, not of this page. */
function Documents({ version, uptime }: { version: string | undefined; uptime: number | undefined }) {
  return (
    <section className="stack" aria-labelledby="health-documents">
      <h2 id="health-documents">{text.documents}</h2>
      <p className="row">
        <a href={`${serverBase()}/docs`}>{text.docs}</a>
        <a href={`${serverBase()}/openapi.json`}>{text.openapi}</a>
      </p>
      <p className="muted small">
        {version && <Foreign text={text.version(version)} />}
        {uptime !== undefined && `, ${text.uptime(formatDuration(uptime * 1000))}`}
      </p>
    </section>
  );
}
