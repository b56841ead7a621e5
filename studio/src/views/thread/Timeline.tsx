import { useMemo, useState } from "react";
import { visibleText } from "../../pure/json_tree.ts";
import { type Mark, positionsOf, type Scale, type Timeline as TimelineData } from "../../pure/timeline.ts";
import { thread } from "../../text/thread.ts";
import { Button } from "../../ui/Button.tsx";
import { Time } from "../../ui/Time.tsx";
import { SPEEDS, usePlayback } from "./playback.ts";
import { TimelineTrack } from "./TimelineTrack.tsx";

interface TimelineProps {
  timeline: TimelineData;
  /** The newest checkpoint of the thread. */
  current: string | undefined;
  /** What is known of checkpoints that are not in it; `undefined` if it has all. */
  missing: Missing | undefined;
  /** `undefined` follows the newest. */
  selected: string | undefined;
  onSelect: (checkpoint: string | undefined, isFinal: boolean) => void;
}

interface Missing {
  loaded: number;
  isLoading: boolean;
}

const text = thread.timeline;

/** All checkpoints along a line, to move in time. */
export function Timeline({ timeline, current, missing, selected, onSelect }: TimelineProps) {
  const [scale, setScale] = useState<Scale>("step");
  const [speed, setSpeed] = useState(1);
  const positions = useMemo(() => positionsOf(timeline, scale), [timeline, scale]);
  const { marks, places } = timeline;
  const last = marks.length - 1;
  const place = (selected === undefined ? undefined : places.get(selected)) ?? last;
  const go = (next: number, isFinal: boolean) => {
    const id = marks[next]?.checkpoint.checkpoint_id;
    // Whoever goes to the end wants to see what comes next, too.
    if (id !== undefined) onSelect(id === current ? undefined : id, isFinal);
  };
  const playback = usePlayback({ place, last, speed, go });
  const mark = marks[place];
  if (!mark) return <p className="timeline muted">{text.empty}</p>;
  const step = (next: number) => {
    playback.stop();
    go(next, true);
  };
  return (
    <section className="timeline" aria-label={text.name}>
      <div className="row timeline-controls">
        <Button aria-label={text.previous} disabled={place === 0} onClick={() => step(place - 1)}>
          <span aria-hidden="true">‹</span>
        </Button>
        <Button onClick={playback.toggle}>{playback.isPlaying ? text.pause : text.play}</Button>
        <Button aria-label={text.next} disabled={place === last} onClick={() => step(place + 1)}>
          <span aria-hidden="true">›</span>
        </Button>
        <SpeedChoice speed={speed} onChange={setSpeed} />
        <ScaleChoice scale={scale} onChange={setScale} />
        <Position mark={mark} place={place} count={marks.length} isNewest={selected === undefined} />
        <span className="spacer" />
        <Button
          aria-pressed={selected === undefined}
          kind={selected === undefined ? "plain" : "primary"}
          title={text.newestHint}
          onClick={() => {
            playback.stop();
            onSelect(undefined, true);
          }}
        >
          {text.newest}
        </Button>
      </div>
      <TimelineTrack
        timeline={timeline}
        scale={scale}
        positions={positions}
        place={place}
        valueText={valueText(mark, place, marks.length, selected === undefined)}
        onMove={(next, isFinal) => {
          playback.stop();
          go(next, isFinal);
        }}
      />
      <Legend missing={missing} />
    </section>
  );
}

function valueText(mark: Mark, place: number, count: number, isNewest: boolean): string {
  const { source, next } = mark.checkpoint;
  const { hasInterrupt, hasFailure } = mark;
  const shown = next.map((name) => visibleText(name.slice(0, 60)));
  const isBeforeInput = source === "input";
  const at = { place: place + 1, count, source: text.sources[source], next: shown, isBeforeInput };
  return text.value({ ...at, hasInterrupt, hasFailure, isNewest });
}

function Position(props: { mark: Mark; place: number; count: number; isNewest: boolean }) {
  const { mark, place, count, isNewest } = props;
  return (
    <span className="small timeline-position">
      <bdi>{valueText(mark, place, count, isNewest)}</bdi>{" "}
      <span className="muted">
        <Time at={mark.checkpoint.created_at} />
      </span>
    </span>
  );
}

function SpeedChoice({ speed, onChange }: { speed: number; onChange: (speed: number) => void }) {
  return (
    <select
      className="timeline-select"
      aria-label={text.speed}
      value={speed}
      onChange={(event) => onChange(Number(event.target.value))}
    >
      {SPEEDS.map((each) => (
        <option key={each} value={each}>
          {text.speeds(each)}
        </option>
      ))}
    </select>
  );
}

function ScaleChoice({ scale, onChange }: { scale: Scale; onChange: (scale: Scale) => void }) {
  return (
    <fieldset className="choice">
      <legend className="visually-hidden">{text.scale}</legend>
      {(["step", "time"] as const).map((each) => (
        <label key={each}>
          <input
            type="radio"
            name="timeline-scale"
            checked={scale === each}
            onChange={() => onChange(each)}
          />
          <span>{text.scales[each]}</span>
        </label>
      ))}
    </fieldset>
  );
}

const LEGEND = ["plain", "run", "interrupt", "failure", "other"] as const;

function Legend({ missing }: { missing: Missing | undefined }) {
  return (
    <ul className="row small muted timeline-legend">
      {LEGEND.map((kind) => (
        <li key={kind} data-kind={kind}>
          {text.legend[kind]}
        </li>
      ))}
      {missing && <li>{missing.isLoading ? text.loadingOlder(missing.loaded) : text.cut(missing.loaded)}</li>}
    </ul>
  );
}
