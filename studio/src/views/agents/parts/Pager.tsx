import { agents } from "../../../text/agents.ts";
import { Button } from "../../../ui/Button.tsx";

interface PagerProps {
  /** What is counted, such as “Rows”. */
  noun: string;
  page: number;
  size: number;
  all: number;
  onPage: (page: number) => void;
}

/** Moves through the pages of a list. Nothing if there is one page. */
export function Pager({ noun, page, size, all, onPage }: PagerProps) {
  if (all <= size) return null;
  const last = Math.ceil(all / size) - 1;
  const [from, to] = [page * size + 1, Math.min((page + 1) * size, all)];
  return (
    <nav className="row agent-pager" aria-label={noun}>
      <Button disabled={page === 0} onClick={() => onPage(page - 1)}>
        {agents.previousPage}
      </Button>
      <span className="small" aria-live="polite">
        {agents.page(from, to, all, noun)}
      </span>
      <Button disabled={page === last} onClick={() => onPage(page + 1)}>
        {agents.nextPage}
      </Button>
    </nav>
  );
}
