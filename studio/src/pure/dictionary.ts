/**
 * Returns words to look up by names that others chose. It has no names but its own: a graph that is called `constructor` must not
 * find what every object has under that name.
 */
export function dictionary<T>(words: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.freeze(Object.assign(Object.create(null) as Record<string, T>, words));
}
