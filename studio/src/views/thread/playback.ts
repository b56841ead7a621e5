import { useEffect, useRef, useState } from "react";

import { REDUCED_MOTION, useMedia } from "./media.ts";

export const SPEEDS = [0.5, 1, 2, 5, 20] as const;

/** How long a checkpoint is shown at speed 1. */
const STEP_MS = 700;
/** The shortest time for visitors who asked for less motion. */
const CALM_MS = 1000;

interface PlaybackOptions {
  place: number;
  last: number;
  speed: number;
  go: (place: number, isFinal: boolean) => void;
}

/** Moves from checkpoint to checkpoint by itself, from the beginning if it is at the end. */
export function usePlayback({ place, last, speed, go }: PlaybackOptions) {
  const [isPlaying, setPlaying] = useState(false);
  const isCalm = useMedia(REDUCED_MOTION);
  const latest = useRef({ place, last, go });
  latest.current = { place, last, go };
  useEffect(() => {
    if (!isPlaying) return;
    const ms = STEP_MS / speed;
    const timer = setInterval(
      () => {
        const now = latest.current;
        now.go(now.place + 1, false);
        if (now.place + 1 >= now.last) setPlaying(false);
      },
      isCalm ? Math.max(CALM_MS, ms) : ms,
    );
    return () => clearInterval(timer);
  }, [isPlaying, speed, isCalm]);
  const toggle = () => {
    if (!isPlaying && place >= last) go(0, false);
    setPlaying(!isPlaying && last > 0);
  };
  return { isPlaying, toggle, stop: () => setPlaying(false) };
}
