/** The open interrupts of one thread, with the forms to answer them. Nothing if there are none. */
export function ThreadInterrupts(_: { thread: string }) {
  return null;
}
