// The graph `slow_chat`, as far as drives know it.

const SHEEP = ["One", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/** Returns the whole answer to a message. */
export function slowAnswer(heard) {
  const counted = SHEEP.map((number) => `${number} sheep`).join(", ");
  return `You said: ${heard}. ${counted}. Good night.`;
}
