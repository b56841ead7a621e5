import type { Piece } from "../../../pure/page_diff.ts";
import { Word } from "../parts/Words.tsx";

/** A text with the words that went and came. */
export function Pieces({ pieces }: { pieces: Piece[] }) {
  return pieces.map((piece, at) => {
    const word = <Word key={at} text={piece.text} />;
    if (piece.kind === "added")
      return (
        <ins key={at} className="added">
          {word}
        </ins>
      );
    if (piece.kind === "removed")
      return (
        <del key={at} className="removed">
          {word}
        </del>
      );
    return word;
  });
}
