import type { Recipient } from "../../../pure/mail.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Word } from "../parts/Words.tsx";

const text = agents.mail;

/** Everyone who receives a mail, one by one. Nobody is folded away: each of them is a reason to say no. */
export function Recipients({ title, recipients }: { title: string; recipients: Recipient[] }) {
  const outside = recipients.filter((each) => each.isOutside).length;
  if (recipients.length === 0) return <p className="field-problem">{text.noRecipient}</p>;
  return (
    <div className="agent-recipients">
      <p className="row">
        <strong>{title}</strong>
        {outside > 0 && <Badge tone="warn">{text.outsideCount(outside)}</Badge>}
      </p>
      <ul>
        {recipients.map((each) => (
          <li key={`${each.role} ${each.address}`} data-outside={each.isOutside}>
            <span className="muted small">{each.role === "to" ? text.to : text.cc}</span>
            <Word text={each.address} />
            {each.isOutside && (
              <Badge tone="warn" title={text.outsideWhy}>
                {text.outside}
              </Badge>
            )}
            {each.isOdd && (
              <Badge tone="bad" title={text.oddWhy}>
                {text.odd}
              </Badge>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
