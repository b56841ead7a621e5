import { type DescribedMeeting, recipientsOf } from "../../../pure/mail.ts";
import { agents } from "../../../text/agents.ts";
import { Facts } from "../parts/Facts.tsx";
import { Notes } from "../parts/Notes.tsx";
import { Word } from "../parts/Words.tsx";
import { ReceivedMailCard } from "./ReceivedMailCard.tsx";
import { Recipients } from "./Recipients.tsx";

const text = agents.mail;

/** A meeting that waits to be scheduled, with everyone who would be invited. */
export function MeetingView({ meeting }: { meeting: DescribedMeeting }) {
  const none = { cc: [], subject: "", attachments: [], isForward: false };
  const invited = recipientsOf({ ...none, from: meeting.organizer, to: meeting.attendees });
  return (
    <div className="stack">
      <Notes tone="bad" title={text.warning} notes={meeting.warning ? [meeting.warning] : []} />
      <Notes tone="bad" title={text.cannotSchedule} notes={meeting.problem ? [meeting.problem] : []} />
      <article className="agent-mail" data-kind="outgoing" aria-label={text.meeting}>
        <p className="agent-mail-kind small muted">{text.meeting}</p>
        <h3>
          <Word text={meeting.title} />
        </h3>
        <Facts
          facts={[
            [text.begins, <Word key="begins" text={meeting.begins} />],
            [text.ends, <Word key="ends" text={meeting.ends} />],
            [text.organizer, <Word key="organizer" text={meeting.organizer} />],
          ]}
        />
        <Recipients title={text.invited(invited.length)} recipients={invited} />
      </article>
      {meeting.original && <ReceivedMailCard mail={meeting.original} />}
      <Notes tone="plain" title={agents.notes} notes={meeting.notes} />
    </div>
  );
}
