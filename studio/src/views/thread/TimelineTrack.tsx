import {
  type KeyboardEvent,
  memo,
  type PointerEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";

import {
  circlesOf,
  columnsOf,
  crossesOf,
  nearestPlace,
  pathOf,
  placeForKey,
  type Scale,
  type Timeline,
} from "../../pure/timeline.ts";
import { thread } from "../../text/thread.ts";

interface TimelineTrackProps {
  timeline: Timeline;
  scale: Scale;
  positions: Float64Array;
  place: number;
  valueText: string;
  onMove: (place: number, isFinal: boolean) => void;
}

/** The line with the marks, and the thumb on it. Marks are drawn again only if they change; a move moves the thumb. */
export function TimelineTrack({ timeline, scale, positions, place, valueText, onMove }: TimelineTrackProps) {
  const track = useRef<HTMLDivElement>(null);
  const drag = useRef<{ start: number; width: number; isRtl: boolean } | undefined>(undefined);
  const isRtl = () => track.current !== null && getComputedStyle(track.current).direction === "rtl";
  const placeAt = (event: PointerEvent): number => {
    const { start, width, isRtl } = drag.current ?? { start: 0, width: 1, isRtl: false };
    const part = Math.min(1, Math.max(0, (event.clientX - start) / width));
    return nearestPlace(positions, isRtl ? 1 - part : part);
  };
  const onPointerDown = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0) return;
    const box = event.currentTarget.getBoundingClientRect();
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { start: box.left, width: box.width, isRtl: isRtl() };
    onMove(placeAt(event), false);
  };
  const onPointerMove = (event: PointerEvent) => {
    if (!drag.current) return;
    const next = placeAt(event);
    if (next !== place) onMove(next, false);
  };
  const onPointerEnd = (event: PointerEvent) => {
    if (!drag.current) return;
    onMove(placeAt(event), true);
    drag.current = undefined;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = placeForKey(event.key, place, positions.length, isRtl());
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    onMove(next, false);
  };
  return (
    <div
      ref={track}
      className="timeline-track"
      role="slider"
      tabIndex={0}
      aria-label={thread.timeline.slider}
      aria-valuemin={1}
      aria-valuemax={positions.length}
      aria-valuenow={place + 1}
      aria-valuetext={valueText}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerEnd}
      onPointerCancel={onPointerEnd}
      onKeyDown={onKeyDown}
    >
      <Marks timeline={timeline} scale={scale} />
      <span className="timeline-thumb" style={{ insetInlineStart: `${(positions[place] ?? 0) * 100}%` }} />
    </div>
  );
}

const HEIGHT = 40;

/** However many checkpoints there are, these are five paths with at most one line for each pixel. */
const Marks = memo(function Marks({ timeline, scale }: { timeline: Timeline; scale: Scale }) {
  const svg = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!svg.current) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    observer.observe(svg.current);
    return () => observer.disconnect();
  }, []);
  const columns = useMemo(() => columnsOf(timeline, scale, width), [timeline, scale, width]);
  return (
    <svg ref={svg} className="timeline-marks" height={HEIGHT} aria-hidden="true">
      <path className="timeline-line" d={`M0 20.5h${width}`} />
      <path className="timeline-other" d={pathOf(columns.others, 27, 7)} />
      <path className="timeline-plain" d={pathOf(columns.plain, 15, 11)} />
      <path className="timeline-run" d={pathOf(columns.runs, 6, 28)} />
      <path className="timeline-interrupt" d={circlesOf(columns.interrupts, 8, 3.5)} />
      <path className="timeline-failure" d={crossesOf(columns.failures, 8, 3.5)} />
    </svg>
  );
});
